//! Says how well a `Fitted` plan fits the build: in messages, as JSON, and whether the plan is foreign, because none of its sites is there.

use isotherm_model::calls::MatchedBy;
use isotherm_model::site::SiteId;
use isotherm_model::words::counted;

use super::{Fitted, Found, sites};
use isotherm_console::Console;

/// The most sites that the message names of those that were not found.
const LISTED: usize = 3;

impl Fitted {
    /// Sites of the plan, those found, and the share of the plan's value that these have.
    fn shares(&self) -> (usize, usize, f64) {
        let (mut all, mut known, mut value, mut found) = (0, 0, 0_u128, 0_u128);
        for site in sites(&self.original) {
            all += 1;
            value += u128::from(site.value);
            if let Some(Found::As(..)) = self.found.get(&site.site) {
                known += 1;
                found += u128::from(site.value);
            }
        }
        let share = match value {
            0 => known as f64 / all.max(1) as f64,
            _ => found as f64 / value as f64,
        };
        (all, known, share)
    }

    /// Prints before the program starts how much of the plan was found in its build, and that its Java sites are not placed.
    pub(crate) fn say(&self, console: Console) {
        if self.java_sites > 0 {
            console.info(&format!(
                "{} of the plan guide nothing: an unchanged virtual machine places no object by its site, and that of `isotherm run --java` does",
                counted(self.java_sites, "Java site")
            ));
        }
        self.say_found(console);
    }

    /// Prints how much of the plan was found in the build.
    pub(crate) fn say_found(&self, console: Console) {
        let (all, known, share) = self.shares();
        if all == 0 {
            return;
        }
        if !self.is_rebuilt() {
            console.info(&format!(
                "the plan fits this build: all of its {all} sites are known by name"
            ));
            return;
        }
        let files = self.changed.iter().map(|path| path.display().to_string());
        let files = files.collect::<Vec<_>>().join(", ");
        if known == 0 {
            return console.warn(&self.foreign(all, &files));
        }
        console.info(&format!(
            "{files}: rebuilt since the plan was made; {known} of its {all} sites ({:.0} % of its value) were found \
             again{}",
            share * 100.0,
            self.ways()
        ));
        if known < all {
            console.warn(&format!(
                "{} of the plan's sites were not found in this build ({}); their data, and all data unknown to the plan, is \
                 placed by first touch: fast while there is room, then slow",
                all - known,
                self.lost()
            ));
        }
        for path in &self.unknown {
            console.warn(&format!(
                "{}: holds none of the functions that the plan names; is it stripped? Build it with symbols and -g, or record \
                 and plan again",
                path.display()
            ));
        }
    }

    /// True if the plan has sites and this build has none of them.
    pub(crate) fn is_foreign(&self) -> bool {
        let (all, known, _) = self.shares();
        all > 0 && known == 0
    }

    /// The whole message on a plan of which this build has no site.
    fn foreign(&self, all: usize, files: &str) -> String {
        let files = match files {
            "" => "this build",
            files => files,
        };
        let stripped = match self.unknown.is_empty() {
            true => "",
            false => " (is it stripped? Build it with symbols and -g)",
        };
        format!(
            "this plan was made for another program or another version ({}): of its {} none is in {files}{stripped}, so all \
             data is placed by first touch: fast while there is room, then slow; record and plan again",
            self.original.command.join(" "),
            counted(all, "site")
        )
    }

    /// `: 7 by line, 1 by order`.
    fn ways(&self) -> String {
        let counted = MatchedBy::ALL.into_iter().filter_map(|way| {
            let so = |found: &&Found| matches!(found, Found::As(_, by) if *by == way);
            match self.found.values().filter(so).count() {
                0 => None,
                count => Some(format!("{count} by {}", way.word())),
            }
        });
        match counted.collect::<Vec<_>>().join(", ") {
            ways if ways.is_empty() => ways,
            ways => format!(": {ways}"),
        }
    }

    /// The hottest of the sites that were not found, with the reason.
    fn lost(&self) -> String {
        let lost: Vec<String> = sites(&self.original)
            .filter_map(|site| match self.found.get(&site.site)? {
                Found::As(..) => None,
                Found::Nothing => Some(shown(site.site, &site.label, "no such call")),
                Found::Ambiguous => Some(shown(
                    site.site,
                    &site.label,
                    "one of several similar calls",
                )),
            })
            .collect();
        let more = match lost.len() {
            count if count > LISTED => format!("; and {} more", count - LISTED),
            _ => String::new(),
        };
        format!("{}{more}", lost[..lost.len().min(LISTED)].join("; "))
    }

    /// The fit as JSON, with the way in which each site was found.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let (all, known, share) = self.shares();
        let list = self.found.iter().map(|(site, found)| {
            let (by, names) = match found {
                Found::As(names, by) => (by.word(), names.iter().map(SiteId::to_string).collect()),
                Found::Nothing => ("nothing", Vec::new()),
                Found::Ambiguous => ("several", Vec::new()),
            };
            serde_json::json!({ "site": site.to_string(), "found_by": by, "sites_now": names })
        });
        serde_json::json!({
            "rebuilt": self.is_rebuilt(),
            "changed_files": self.changed.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
            "planned_sites": all,
            "found_sites": known,
            "found_value_share": share,
            "sites": list.collect::<Vec<_>>(),
        })
    }
}

/// A site, its innermost caller, and the reason why it was not found.
fn shown(site: SiteId, label: &str, why: &str) -> String {
    let innermost = label.split(" < ").next().unwrap_or_default();
    format!("{site} {innermost}, {why}")
}
