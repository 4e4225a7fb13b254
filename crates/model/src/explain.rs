//! Explains in words why a plan puts a site into its tier; used by `isotherm explain`.
//!
//! Everything is computed from the plan alone, so it also holds for an edited plan. Where the tier
//! word was changed by hand, the policy's reason no longer fits, and the numbers show it.

use std::fmt::{self, Write as _};

use crate::plan::{Assignment, Plan};
use crate::site::SiteId;
use crate::tier::{Tier, TierIndex};
use crate::units::Bytes;
use crate::words;

/// Most sites in the list for an ambiguous text, so that the answer stays readable.
const LISTED: usize = 10;

/// Hotness is shown per MiB, because per byte most values would print as zero.
const MIB: f64 = 1_048_576.0;

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExplainError {
    /// No site of the plan has an id that begins with this text or a label that contains it.
    Unknown {
        /// The text of the query.
        text: String,
    },
    /// Several sites have ids that begin with this text or labels that contain it.
    Ambiguous {
        /// The text of the query.
        text: String,
        /// The sites with their labels, hottest first.
        sites: Vec<(SiteId, String)>,
    },
}

impl fmt::Display for ExplainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { text } => write!(
                f,
                "no site of the plan has an id that begins with \"{text}\" or a label that contains it; the \
                 plan's `site` lines list them"
            ),
            Self::Ambiguous { text, sites } => {
                write!(
                    f,
                    "\"{text}\" fits {} sites; give one of the ids:",
                    sites.len()
                )?;
                for (site, label) in sites.iter().take(LISTED) {
                    write!(f, "\n  {site}  {label}")?;
                }
                if sites.len() > LISTED {
                    write!(f, "\n  and {} more", sites.len() - LISTED)?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ExplainError {}

/// Finds the site for a text: its id, the beginning of its id, or a part of its label
/// (case-sensitive).
///
/// # Errors
/// No site matches, or several sites match.
pub fn find<'a>(plan: &'a Plan, text: &str) -> Result<&'a Assignment, ExplainError> {
    let beginning = text.to_ascii_lowercase();
    let whole = plan
        .assignments
        .iter()
        .find(|a| a.site.to_string() == beginning);
    if let Some(site) = whole {
        return Ok(site);
    }
    // The id may also be written without its leading zeroes.
    let number = text.parse::<SiteId>().ok();
    let fits: Vec<&Assignment> = plan
        .assignments
        .iter()
        .filter(|_| !text.is_empty())
        .filter(|a| {
            a.label.contains(text)
                || a.site.to_string().starts_with(&beginning)
                || Some(a.site) == number
        })
        .collect();
    match fits.as_slice() {
        [] => Err(ExplainError::Unknown { text: text.into() }),
        [site] => Ok(site),
        _ => Err(ExplainError::Ambiguous {
            text: text.into(),
            sites: fits.iter().map(|a| (a.site, a.label.clone())).collect(),
        }),
    }
}

/// Why is this here: the rank, value, weight and hotness of a site, what stands before it, and what
/// would have to change for it to move. A text that means none of the sites with an assignment may be the id of a small
/// site, or its beginning.
///
/// # Errors
/// The text matches no site, or several sites.
pub fn explain(plan: &Plan, text: &str) -> Result<String, ExplainError> {
    let site = match find(plan, text) {
        Ok(site) => site,
        Err(ExplainError::Unknown { text }) => return explain_small(plan, text),
        Err(error) => return Err(error),
    };
    let mut ranked: Vec<&Assignment> = plan.assignments.iter().collect();
    ranked.sort_by(|a, b| a.hotter_first(b));
    let rank = ranked.iter().position(|a| a.site == site.site).unwrap_or(0);
    let mut out = String::new();
    let mut line = |text: String| {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{text}");
    };
    line(format!("{}  {}", site.site, site.label));
    line(format!(
        "  tier     {}{}",
        tier_name(plan, site.tier),
        emulated(plan)
    ));
    if !site.reason.is_empty() {
        line(format!("  reason   {} ({})", site.reason, plan.policy));
    }
    let all = ranked.iter().map(|a| a.value);
    line(format!(
        "  value    {}, {} of all {}",
        plan.value_in_words(site.value),
        percent(u128::from(site.value), all.clone()),
        words::grouped(all.fold(0, u64::saturating_add)),
    ));
    line(format!(
        "  weight   {} ({}), {} of all {}",
        site.weight,
        plan.weight.word(),
        percent(u128::from(site.weight.0), ranked.iter().map(|a| a.weight.0)),
        ranked.iter().map(|a| a.weight).sum::<Bytes>(),
    ));
    line(format!(
        "  hotness  {}; rank {} of {}",
        hotness(site),
        rank + 1,
        ranked.len()
    ));
    line(format!("  before   {}", before(plan, &ranked[..rank])));
    line(format!("  to move  {}", to_move(plan, &ranked, rank)));
    Ok(out)
}

/// Why a small site is where it is.
fn explain_small(plan: &Plan, text: String) -> Result<String, ExplainError> {
    let beginning = text.to_ascii_lowercase();
    let fits: Vec<SiteId> = plan
        .small
        .keys()
        .copied()
        .filter(|site| !text.is_empty() && site.to_string().starts_with(&beginning))
        .collect();
    match fits.as_slice() {
        [] => Err(ExplainError::Unknown { text }),
        [site] => Ok(format!(
            "{site}  a small site\n  tier     {}{}\n  reason   neither memory nor {} was seen of it alone: it goes with the \
             arena that small sites share\n",
            tier_name(plan, plan.small_tier()),
            emulated(plan),
            plan.counted.noun()
        )),
        _ => Err(ExplainError::Ambiguous {
            text,
            sites: fits
                .iter()
                .map(|site| (*site, "a small site".to_owned()))
                .collect(),
        }),
    }
}

fn tier_name(plan: &Plan, index: TierIndex) -> &str {
    plan.tiers.get(index).map_or("?", |tier| &tier.name)
}

fn emulated(plan: &Plan) -> &'static str {
    if plan.tiers.emulates() {
        " (emulated)"
    } else {
        ""
    }
}

fn percent(part: u128, of: impl Iterator<Item = u64>) -> String {
    let all: u128 = of.map(u128::from).sum();
    if all == 0 {
        words::percent(0.0)
    } else {
        words::percent(part as f64 / all as f64)
    }
}

fn hotness(site: &Assignment) -> String {
    match (site.value, site.weight.0) {
        (0, _) => "none".to_owned(),
        (_, 0) => "value without weight, hotter than any other".to_owned(),
        (value, weight) => format!("{:.3} a MiB", value as f64 * MIB / weight as f64),
    }
}

/// Describes how the hotter sites fill the fastest tier, and which site crossed its capacity.
fn before(plan: &Plan, hotter: &[&Assignment]) -> String {
    let Some(fastest) = plan.tiers.get(TierIndex::FASTEST) else {
        return "there is no tier".to_owned();
    };
    let placed = hotter.iter().filter(|a| a.tier == TierIndex::FASTEST);
    let mut used = Bytes::ZERO;
    let mut crossed = None;
    for site in placed.clone() {
        used += site.weight;
        if used > fastest.capacity && crossed.is_none() {
            crossed = Some(site.site);
        }
    }
    let room = fastest.capacity.saturating_sub(used);
    let count = placed.count();
    let Tier { name, capacity, .. } = fastest;
    let filled = format!(
        "{name} holds {count} of {} hotter sites, {used} of its {capacity}",
        hotter.len()
    );
    match crossed {
        Some(site) => format!("{filled}; {site} crossed the capacity"),
        None => format!("{filled}; {room} left"),
    }
}

/// Describes the change of capacity or value that would move the site, by the order of hotness.
fn to_move(plan: &Plan, ranked: &[&Assignment], rank: usize) -> String {
    let site = ranked[rank];
    let fast = TierIndex::FASTEST;
    let used = ranked[..rank]
        .iter()
        .filter(|a| a.tier == fast)
        .map(|a| a.weight)
        .sum::<Bytes>();
    if plan.tiers.all().len() < 2 {
        return "there is no other tier".to_owned();
    }
    let name = tier_name(plan, fast);
    if site.tier == fast {
        let next = ranked[rank + 1..].iter().find(|a| a.tier != fast);
        return match next {
            _ if used == Bytes::ZERO => format!(
                "it is the hottest in {name}: only a plan by another policy or by hand moves it"
            ),
            Some(next) => format!(
                "it stays in {name} while that holds {}, unless it cools below {} ({})",
                used.saturating_add(site.weight),
                next.site,
                hotness(next)
            ),
            None => format!(
                "it stays in {name} while that holds {}; no colder site competes",
                used.saturating_add(site.weight)
            ),
        };
    }
    let needed = used.saturating_add(site.weight);
    let coldest = ranked.iter().rev().find(|a| a.tier == fast && a.value > 0);
    match coldest {
        Some(coldest) if coldest.hotter_first(site).is_lt() => format!(
            "{name} of {needed} would hold it beside the hotter sites; or it must become hotter \
             than {} ({}), the coldest with any value there",
            coldest.site,
            hotness(coldest)
        ),
        _ => format!("{name} of {needed} would hold it beside the hotter sites"),
    }
}

#[cfg(test)]
mod tests {
    use super::{ExplainError, explain, find};
    use crate::plan_text::read;
    use crate::site::SiteId;

    const PLAN: &str = "isotherm-plan 1
policy thermos
value accesses
counted accesses
weight peak-rss
depth 4
command \"./bfs\"
tier fast emulated-fast capacity 4KiB placement preferred
tier slow emulated-slow capacity 1GiB placement preferred period 1s access 10us hot 13us migrate 50us
default slow
standing planned 90 first-touch 10 bound 95 total 100
site 0000000000000010 fast value 90 weight 3KiB # main (bfs.cc:7) -- taken: it fits
site 0000000000000020 slow value 9 weight 2KiB # load (bfs.cc:9) -- refused: too little
site 0000000000000030 slow value 1 weight 2KiB # main (bfs.cc:11)
";

    #[test]
    fn the_answer_names_rank_share_what_stands_before_and_what_would_move_it() {
        let plan = read(PLAN).unwrap();
        let text = explain(&plan, "load").unwrap();
        for part in [
            "slow (emulated)",
            "refused: too little (thermos)",
            "9 accesses, 9.0 % of all 100",
            "2 KiB (peak-rss), 29 % of all 7 KiB",
            "rank 2 of 3",
            "fast holds 1 of 1 hotter sites, 3 KiB of its 4 KiB; 1 KiB left",
            "fast of 5 KiB would hold it",
            "hotter than 0000000000000010 (30720.000 a MiB)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let hottest = explain(&plan, "10").unwrap();
        assert!(hottest.contains("it is the hottest in fast"), "{hottest}");
    }

    #[test]
    fn the_value_is_named_for_what_was_counted() {
        for (headers, expected) in [
            (
                "counted time",
                "9 samples of time waiting for memory, 9.0 % of all 100",
            ),
            ("counted misses", "9 misses, 9.0 % of all 100"),
            ("", "9 samples, 9.0 % of all 100"),
        ] {
            let plan = read(&PLAN.replace("counted accesses", headers)).unwrap();
            let text = explain(&plan, "20").unwrap();
            assert!(text.contains(expected), "{text}");
        }
        let bandwidth = read(&PLAN.replace("value accesses", "value bandwidth")).unwrap();
        let text = explain(&bandwidth, "20").unwrap();
        assert!(text.contains("9 accesses a second"), "{text}");
    }

    #[test]
    fn the_beginning_of_an_id_is_enough_where_no_other_begins_so() {
        let plan = PLAN
            .replace("0000000000000010", "1cde455c00000010")
            .replace("0000000000000020", "1cde455d00000020");
        let plan = read(&plan).unwrap();
        let found = |text| find(&plan, text).map(|a| a.site);
        for text in ["1cde455c", "1CDE455C", "1cde455c00000010"] {
            assert_eq!(found(text), Ok(SiteId(0x1cde_455c_0000_0010)), "{text}");
        }
        // Site 1 is the shared arena, and the other ids begin with `1`.
        let shared = PLAN
            .replace("0000000000000010", "1cde455c00000010")
            .replace("0000000000000020", "shared");
        assert!(find(&read(&shared).unwrap(), "1").is_err());
        assert!(find(&read(&shared).unwrap(), "shared").is_ok());
        let error = found("1cde455").unwrap_err().to_string();
        for part in ["fits 2 sites", "1cde455c00000010", "1cde455d00000020"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_small_site_is_explained_by_the_arena_that_small_sites_share() {
        let small = "site shared slow value 0 weight 4KiB\n\
                     small none 1cde455c00000010 1cde455d00000010\n";
        let plan = read(&format!(
            "{}{small}",
            PLAN.replace("default slow", "default fast")
        ))
        .unwrap();
        let text = explain(&plan, "1CDE455C").unwrap();
        for part in [
            "1cde455c00000010",
            "tier     slow (emulated)",
            "the arena that small sites share",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let error = explain(&plan, "1cde455").unwrap_err().to_string();
        assert!(error.contains("fits 2 sites"), "{error}");
        assert!(explain(&plan, "2cde").is_err());
    }

    #[test]
    fn a_text_that_fits_several_labels_lists_them_and_one_that_fits_none_says_so() {
        let plan = read(PLAN).unwrap();
        let error = explain(&plan, "main").unwrap_err();
        assert!(error.to_string().contains("fits 2 sites"), "{error}");
        assert!(
            error
                .to_string()
                .contains("0000000000000030  main (bfs.cc:11)")
        );
        for text in ["nowhere", "", "unattributed"] {
            assert!(
                matches!(find(&plan, text), Err(ExplainError::Unknown { .. })),
                "{text}"
            );
        }
        assert_eq!(find(&plan, "20").map(|a| a.site), Ok(SiteId(0x20)));
    }
}
