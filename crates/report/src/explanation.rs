//! [`Explanation`] says why a plan puts a site into its tier and what would move it: the answer of `isotherm explain` to an id or label.
//!
//! Everything is computed from the plan alone, so it also holds for an edited plan. Where the tier
//! word was changed by hand, the policy's reason no longer fits, and the numbers show it.

use std::fmt;

use isotherm_model::plan::{Assignment, Plan};
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

use crate::words::{clip, grouped, percent, share};

/// Most sites in the list for an ambiguous text, so that the answer stays readable.
const LISTED: usize = 10;

/// Hotness is shown per MiB, because per byte most values would print as zero.
const MIB: f64 = 1_048_576.0;

/// Why there is no explanation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// No site of the plan has an id that begins with this text or a label that contains it.
    #[error(
        "no site of the plan has an id that begins with \"{text}\" or a label that contains it; the plan's `site` lines list them"
    )]
    Unknown {
        /// The text of the query.
        text: String,
    },
    /// Several sites have ids that begin with this text or labels that contain it.
    #[error("\"{text}\" fits {} sites; give one of the ids:{}", sites.len(), listed(sites))]
    Ambiguous {
        /// The text of the query.
        text: String,
        /// The sites with their labels, hottest first.
        sites: Vec<(SiteId, String)>,
    },
}

/// A line for each of the first sites, and one for the number of the others.
fn listed(sites: &[(SiteId, String)]) -> String {
    let line = |(site, label): &(SiteId, String)| format!("\n  {site}  {}", one_line(label));
    let lines: String = sites.iter().take(LISTED).map(line).collect();
    match sites.len().saturating_sub(LISTED) {
        0 => lines,
        more => format!("{lines}\n  and {more} more"),
    }
}

/// A site of a plan with the sites that compete for its tier.
#[derive(Clone, Debug)]
pub enum Explanation<'a> {
    /// A site with an assignment.
    Ranked(RankedSite<'a>),
    /// A small site: it goes with the arena that small sites share.
    Small(&'a Plan, SiteId),
}

impl<'a> Explanation<'a> {
    /// Explains the site for a text: its id, the beginning of its id, or a part of its label
    /// (case-sensitive). A text that means no site with an assignment may be the id of a small site, or its
    /// beginning.
    ///
    /// # Errors
    /// No site matches, or several sites match.
    pub fn new(plan: &'a Plan, text: &str) -> Result<Self, ExplainError> {
        match assigned(plan, text) {
            Ok(site) => Ok(Self::Ranked(RankedSite::new(plan, site))),
            Err(ExplainError::Unknown { .. }) => {
                let begins = |site: &SiteId| begins_with(*site, text);
                let fits = plan.small.keys().copied().filter(begins);
                let named = |site: &SiteId| (*site, "a small site".to_owned());
                let site = only(text, fits.collect(), named)?;
                Ok(Self::Small(plan, site))
            }
            Err(error) => Err(error),
        }
    }
}

/// The site with an assignment for a text.
fn assigned<'a>(plan: &'a Plan, text: &str) -> Result<&'a Assignment, ExplainError> {
    let whole = text.to_ascii_lowercase();
    let is_whole = |site: &&Assignment| site.site.to_string() == whole;
    if let Some(site) = plan.assignments.iter().find(is_whole) {
        return Ok(site);
    }
    // The id may also be written without its leading zeroes.
    let number = text.parse::<SiteId>().ok();
    let fits = plan.assignments.iter().filter(|site| {
        let by_label = !text.is_empty() && site.label.contains(text);
        by_label || begins_with(site.site, text) || Some(site.site) == number
    });
    only(text, fits.collect(), |site| (site.site, site.label.clone()))
}

fn begins_with(site: SiteId, text: &str) -> bool {
    !text.is_empty() && site.to_string().starts_with(&text.to_ascii_lowercase())
}

/// The single site that fits the text.
fn only<T: Copy>(
    text: &str,
    fits: Vec<T>,
    named: impl FnMut(&T) -> (SiteId, String),
) -> Result<T, ExplainError> {
    let text = text.to_owned();
    match fits.as_slice() {
        [] => Err(ExplainError::Unknown { text }),
        [site] => Ok(*site),
        sites => Err(ExplainError::Ambiguous {
            text,
            sites: sites.iter().map(named).collect(),
        }),
    }
}

/// A site between the hotter and the colder sites of its plan.
#[derive(Clone, Debug)]
pub struct RankedSite<'a> {
    plan: &'a Plan,
    site: &'a Assignment,
    /// The hotter sites, hottest first.
    hotter: Vec<&'a Assignment>,
    /// The colder sites, hottest first.
    colder: Vec<&'a Assignment>,
}

impl<'a> RankedSite<'a> {
    fn new(plan: &'a Plan, site: &'a Assignment) -> Self {
        let mut ranked: Vec<&Assignment> = plan.assignments.iter().collect();
        ranked.sort_by(|a, b| a.hotter_first(b));
        let is_hotter = |other: &&Assignment| other.hotter_first(site).is_lt();
        let (hotter, rest): (Vec<_>, Vec<_>) = ranked.into_iter().partition(is_hotter);
        let others = rest.into_iter().filter(|other| other.site != site.site);
        Self {
            plan,
            site,
            hotter,
            colder: others.collect(),
        }
    }

    /// The hotter sites in the fastest tier.
    fn before(&self) -> impl Iterator<Item = &'a Assignment> {
        let hotter = self.hotter.iter().copied();
        hotter.filter(|other| other.tier == TierIndex::FASTEST || in_fastest(other) > Bytes::ZERO)
    }

    /// The capacity that the fastest tier needs to hold the site beside the hotter ones.
    fn needed(&self) -> Bytes {
        let hotter: Bytes = self.before().map(in_fastest).sum();
        hotter.saturating_add(self.site.weight)
    }

    /// Describes how the hotter sites fill the fastest tier, and which site crossed its capacity.
    fn competition(&self) -> String {
        let Some(fastest) = self.plan.tiers.get(TierIndex::FASTEST) else {
            return "there is no tier".to_owned();
        };
        let (name, capacity) = (one_line(&fastest.name), fastest.capacity);
        let (mut count, mut used, mut crossed) = (0, Bytes::ZERO, None);
        for other in self.before() {
            count += 1;
            used += in_fastest(other);
            if used > capacity {
                crossed = crossed.or(Some(other.site));
            }
        }
        let all = self.hotter.len();
        let filled =
            format!("{name} holds {count} of {all} hotter sites, {used} of its {capacity}");
        match crossed {
            Some(site) => format!("{filled}; {site} crossed the capacity"),
            None => format!("{filled}; {} left", capacity.saturating_sub(used)),
        }
    }

    /// Describes the change of capacity or value that would move the site, by the order of hotness.
    fn to_move(&self) -> String {
        if self.plan.tiers.all().len() < 2 {
            return "there is no other tier".to_owned();
        }
        let fast = TierIndex::FASTEST;
        let (name, needed) = (tier_name(self.plan, fast), self.needed());
        if self.site.tier == fast {
            let next = self.colder.iter().find(|other| other.tier != fast);
            return match next {
                _ if needed == self.site.weight => format!(
                    "it is the hottest in {name}: only a plan by another policy or by hand moves it"
                ),
                Some(next) => format!(
                    "it stays in {name} while that holds {needed}, unless it cools below {} ({})",
                    next.site,
                    hotness(next)
                ),
                None => {
                    format!("it stays in {name} while that holds {needed}; no colder site competes")
                }
            };
        }
        let holds = format!("{name} of {needed} would hold it beside the hotter sites");
        let coldest_first = self.colder.iter().rev().chain(self.hotter.iter().rev());
        let mut valued = coldest_first.filter(|other| other.tier == fast && other.value > 0);
        match valued.next() {
            Some(coldest) if coldest.hotter_first(self.site).is_lt() => format!(
                "{holds}; or it must become hotter than {} ({}), the coldest with any value there",
                coldest.site,
                hotness(coldest)
            ),
            _ => holds,
        }
    }
}

/// Bytes of a site in the fastest tier, its parts there included.
fn in_fastest(site: &Assignment) -> Bytes {
    site.bytes_in(TierIndex::FASTEST)
}

impl fmt::Display for RankedSite<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { plan, site, .. } = self;
        let sites = &plan.assignments;
        let value = sites.iter().map(|a| a.value).fold(0, u64::saturating_add);
        let weight: Bytes = sites.iter().map(|a| a.weight).sum();
        writeln!(f, "{}  {}", site.site, one_line(&site.label))?;
        writeln!(f, "  tier     {}", tier(plan, site.tier))?;
        for part in &site.parts {
            writeln!(
                f,
                "  part     {} of {} to {} of each object: {}, {} in all",
                tier(plan, part.tier),
                part.start,
                part.end,
                plan.value_in_words(part.value),
                part.weight
            )?;
        }
        if let Some(first) = &site.leading {
            writeln!(
                f,
                "  first    the first {} that it allocates: {}, {}",
                first.bytes,
                tier(plan, first.tier),
                plan.value_in_words(first.value)
            )?;
        }
        if !site.reason.is_empty() {
            let (reason, policy) = (one_line(&site.reason), one_line(&plan.policy));
            writeln!(f, "  reason   {reason} ({policy})")?;
        }
        writeln!(
            f,
            "  value    {}, {} of all {}",
            plan.value_in_words(site.value),
            percent(share(site.value, value)),
            grouped(value)
        )?;
        writeln!(
            f,
            "  weight   {} ({}), {} of all {weight}",
            site.weight,
            plan.weight.word(),
            percent(share(site.weight.0, weight.0)),
        )?;
        let (rank, all) = (self.hotter.len() + 1, sites.len());
        writeln!(f, "  hotness  {}; rank {rank} of {all}", hotness(site))?;
        writeln!(f, "  before   {}", self.competition())?;
        writeln!(f, "  to move  {}", self.to_move())
    }
}

impl fmt::Display for Explanation<'_> {
    /// Prints some lines; no text of the plan can imitate one, because each stays on its line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranked(site) => site.fmt(f),
            Self::Small(plan, site) => {
                let (tier, noun) = (tier(plan, plan.small_tier()), plan.counted.noun());
                write!(
                    f,
                    "{site}  a small site\n  tier     {tier}\n  reason   neither memory nor {noun} was seen of it \
                     alone: it goes with the arena that small sites share\n"
                )
            }
        }
    }
}

fn one_line(text: &str) -> String {
    clip(text, usize::MAX)
}

fn tier_name(plan: &Plan, index: TierIndex) -> String {
    one_line(plan.tiers.get(index).map_or("?", |tier| &tier.name))
}

fn tier(plan: &Plan, index: TierIndex) -> String {
    let emulated = if plan.tiers.emulates() {
        " (emulated)"
    } else {
        ""
    };
    let colour = plan.colours.iter().find(|colour| colour.tier == index);
    let colour = colour.map_or(String::new(), |it| format!(", colour {}", it.colour.word()));
    format!("{}{emulated}{colour}", tier_name(plan, index))
}

fn hotness(site: &Assignment) -> String {
    match (site.value, site.weight.0) {
        (0, _) => "none".to_owned(),
        (_, 0) => "value without weight, hotter than any other".to_owned(),
        (value, weight) => format!("{:.3} a MiB", value as f64 * MIB / weight as f64),
    }
}
