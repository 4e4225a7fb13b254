//! Reads and writes the `small` lines of a plan, which list the small sites by caller. A small site has no arena of its own: its data goes
//! where that of `site shared` goes.

use std::collections::BTreeMap;

use isotherm_model::plan::{Caller, Plan};
use isotherm_model::site::{CallerId, SiteId};

use super::line::{Line, PlanTextError};

/// Sites of a line, so that it can be read and compared: 16 digits and a blank each.
const LINE_SITES: usize = 8;

/// The lines of all small sites, by caller, below a comment that says what they are.
pub(super) fn write(plan: &Plan) -> Vec<String> {
    let mut by_caller = BTreeMap::<String, Vec<SiteId>>::new();
    for (site, caller) in &plan.small {
        let sites = by_caller.entry(caller_word(*caller)).or_default();
        sites.push(*site);
    }
    let line = |caller: &str, sites: &[SiteId]| {
        let sites: Vec<String> = sites.iter().map(SiteId::to_string).collect();
        format!("small {caller} {}", sites.join(" "))
    };
    let lines = by_caller.iter().flat_map(|(caller, sites)| {
        let lines = sites.chunks(LINE_SITES);
        lines.map(move |sites| line(caller, sites))
    });
    let heading = (!plan.small.is_empty()).then(|| {
        "# Small sites, behind their caller: they go where `site shared` goes.".to_owned()
    });
    heading.into_iter().chain(lines).collect()
}

fn caller_word(caller: Caller) -> String {
    match caller {
        Caller::Unknown => "unknown".to_owned(),
        Caller::None => "none".to_owned(),
        Caller::Direct { id, .. } => id.to_string(),
    }
}

fn caller(line: &Line, word: &str) -> Result<Caller, PlanTextError> {
    match word {
        "unknown" => Ok(Caller::Unknown),
        "none" => Ok(Caller::None),
        id => {
            let id: SiteId = line.quantity("caller", id)?;
            Ok(Caller::Direct {
                id: CallerId(id.0),
                has_others: false,
            })
        }
    }
}

/// The small sites with their callers. None of them may have a line of its own or be listed twice.
pub(super) fn sites(
    lines: &[Line],
    is_planned: impl Fn(SiteId) -> bool,
) -> Result<BTreeMap<SiteId, Caller>, PlanTextError> {
    let mut small = BTreeMap::new();
    for line in lines {
        let [_, word, sites @ ..] = line.words.as_slice() else {
            return line.wrong("a small line is `small CALLER SITE ...`");
        };
        let caller = caller(line, word)?;
        for word in sites {
            let site: SiteId = line.quantity("site", word)?;
            if site <= SiteId::SHARED {
                return line.wrong(format!("{site} is no site of its own; remove it"));
            }
            if is_planned(site) || small.insert(site, caller).is_some() {
                return line.wrong(format!(
                    "site {site} stands already in another line or twice in this one; a site has one tier"
                ));
            }
        }
    }
    Ok(small)
}
