//! A [`SplitSite`] is a site that a plan places in parts: which ranges of its data objects, or how much of what it allocates first, go to
//! which tier, and how much of the site each is.
//!
//! ```text
//! 1 site is placed in parts: ranges of bytes from the start of each data object. Beside each range is its share of ...
//!   e1d0...  graph.cc:88 Graph::Graph(EdgeList const&)
//!     tier  in each object   bytes  heat
//!     fast  0 B to 32 MiB     10 %  62 %
//!     slow  everything else   90 %  38 %
//! ```
//!
//! Computed from the plan alone, so `isotherm report` and `isotherm compare` say the same.

use isotherm_model::plan::{Assignment, Plan};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use serde::Serialize;

use crate::table::DataTable;
use crate::words::{clip, counted, percent, share};

/// Sites with lines of their own in a text.
const SITES: usize = 10;
/// Ranges of a site that have a line of their own.
pub(crate) const RANGES: usize = 8;

/// A site of a plan with parts in more than one tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SplitSite {
    /// Its id in words.
    pub site: String,
    /// Its code location.
    pub location: String,
    /// Bytes of it that go to the fastest tier.
    pub fast_bytes: u64,
    /// `fast_bytes` as a share of the site's bytes.
    pub fast_bytes_share: f64,
    /// Value of it that the fastest tier serves, as a share of the site's.
    pub fast_value_share: f64,
    /// The ranges that the plan names, in order, and last the rest of the site.
    pub ranges: Vec<PlacedRange>,
}

/// A range of a site with parts, and its tier.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlacedRange {
    /// Bytes that the site allocates first, in place of a range of its objects.
    pub leading_bytes: Option<u64>,
    /// First byte from the start of each data object; none for leading bytes and for the rest of the site.
    pub start_bytes: Option<u64>,
    /// First byte past the range; likewise.
    pub end_bytes: Option<u64>,
    /// Name of the tier.
    pub tier: String,
    /// Bytes of it in all objects together.
    pub weight_bytes: u64,
    /// `weight_bytes` as a share of the site's bytes.
    pub bytes_share: f64,
    /// Value, in the unit of the plan.
    pub value: u64,
    /// `value` as a share of the site's value.
    pub value_share: f64,
}

impl PlacedRange {
    /// The range in words: `0 B to 32 MiB`.
    pub(crate) fn words(&self) -> String {
        if let Some(bytes) = self.leading_bytes {
            return format!("its first {}", Bytes(bytes));
        }
        match self.start_bytes.zip(self.end_bytes) {
            Some((start, end)) => format!("{} to {}", Bytes(start), Bytes(end)),
            None => "everything else".to_owned(),
        }
    }
}

/// The sites with parts, in the order of the plan: the hottest first.
#[must_use]
pub fn split_sites(plan: &Plan) -> Vec<SplitSite> {
    let sites = plan.assignments.iter();
    let split = sites.filter(|site| site.is_divided());
    split.map(|site| split_site(plan, site)).collect()
}

fn split_site(plan: &Plan, site: &Assignment) -> SplitSite {
    let parts = site.parts.iter().map(|part| (None, Some(part)));
    let leading = site.leading.iter();
    let leading = leading.map(|first| (Some(first.bytes.0), None));
    let places = parts.chain(leading).chain([(None, None)]);
    let ranges = places.zip(site.shares());
    let ranges = ranges.map(
        |((leading_bytes, part), (tier, value, weight))| PlacedRange {
            leading_bytes,
            start_bytes: part.map(|part| part.start.0),
            end_bytes: part.map(|part| part.end.0),
            tier: tier_name(plan, tier),
            weight_bytes: weight.0,
            bytes_share: share(weight.0, site.weight.0),
            value,
            value_share: share(value, site.value),
        },
    );
    let fast_bytes = site.bytes_in(TierIndex::FASTEST).0;
    SplitSite {
        site: site.site.to_string(),
        location: site.label.clone(),
        fast_bytes,
        fast_bytes_share: share(fast_bytes, site.weight.0),
        fast_value_share: share(site.value_in(TierIndex::FASTEST), site.value),
        ranges: ranges.collect(),
    }
}

fn tier_name(plan: &Plan, tier: TierIndex) -> String {
    let tier = plan.tiers.get(tier);
    tier.map_or_else(String::new, |tier| tier.name.clone())
}

/// A sentence on what the numbers of these sites mean. `valued` is the quantity of the plan's values.
pub(crate) fn title(sites: &[SplitSite], valued: &str) -> String {
    let are = if sites.len() == 1 { "is" } else { "are" };
    let mut ranges = sites.iter().flat_map(|site| &site.ranges);
    let or_first = match ranges.any(|range| range.leading_bytes.is_some()) {
        true => ", or the memory that is allocated first",
        false => "",
    };
    format!(
        "{} {are} placed in parts: ranges of bytes from the start of each data object{or_first}. Beside each range is its share of the \
         site's bytes and of its heat ({valued}).",
        counted(sites.len(), "site")
    )
}

/// For a terminal: the title, and a table for each site. Empty without sites.
#[must_use]
pub fn render(sites: &[SplitSite], valued: &str, columns: usize) -> String {
    if sites.is_empty() {
        return String::new();
    }
    let mut text = textwrap::fill(&title(sites, valued), columns) + "\n";
    for site in sites.iter().take(SITES) {
        let name = format!("{}  {}", site.site, site.location);
        text += &format!("  {}\n", clip(name.trim_end(), columns - 2));
        text.extend(ranges(site).lines().map(|line| format!("    {line}\n")));
    }
    if let Some(more @ 1..) = sites.len().checked_sub(SITES) {
        text += &format!("  and {} more; --json lists all\n", counted(more, "site"));
    }
    text
}

/// The ranges of a site that have a line: of many, those of most value, in order, and the rest that is in no range.
pub(crate) fn shown(site: &SplitSite) -> Vec<&PlacedRange> {
    let mut ranges: Vec<&PlacedRange> = site.ranges.iter().collect();
    if ranges.len() > RANGES {
        let rest = ranges.pop();
        ranges.sort_by_key(|range| std::cmp::Reverse(range.value));
        ranges.truncate(RANGES - 1);
        ranges.sort_by_key(|range| range.start_bytes);
        ranges.extend(rest);
    }
    ranges
}

fn ranges(site: &SplitSite) -> String {
    let shown = shown(site);
    let mut text = DataTable::of(&shown)
        .left("tier", |range| range.tier.clone())
        .left("in each object", |range| range.words())
        .right("bytes", |range| percent(range.bytes_share))
        .right("heat", |range| percent(range.value_share))
        .render();
    if let Some(more @ 1..) = site.ranges.len().checked_sub(shown.len()) {
        text += &format!("and {} more\n", counted(more, "range"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::{
        Assignment, Caller, LeadingBytes, PlacedPart, Plan, PlanBounds, Value, Weight,
    };
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::{TierIndex, Tiers};
    use isotherm_model::units::Bytes;

    use super::{RANGES, render, shown, split_sites};

    const MIB: u64 = 1 << 20;
    const FAST: TierIndex = TierIndex(0);
    const SLOW: TierIndex = TierIndex(1);

    /// A part of one MiB in each of two objects.
    fn part(number: u64, tier: TierIndex, value: u64) -> PlacedPart {
        PlacedPart {
            start: Bytes(number * MIB),
            end: Bytes((number + 1) * MIB),
            tier,
            value,
            weight: Bytes(2 * MIB),
        }
    }

    /// A plan with one site of 1,000 in value and two objects of 100 MiB, and one without parts.
    fn plan(tier: TierIndex, parts: Vec<PlacedPart>) -> Plan {
        let site = |id, parts| Assignment {
            site: SiteId(id),
            tier,
            value: 1000,
            weight: Bytes(200 * MIB),
            parts,
            leading: None,
            caller: Caller::None,
            reason: String::new(),
            label: "graph.cc:88 load: \u{1b}[2Jedges".to_owned(),
        };
        Plan {
            policy: "thermos".to_owned(),
            value: Value::Accesses,
            counted: CountUnit::Accesses,
            weight: Weight::PeakRss,
            command: Vec::new(),
            depth: 4,
            tiers: Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP),
            default_tier: SLOW,
            small: BTreeMap::new(),
            standing: PlanBounds::default(),
            colours: Vec::new(),
            expected: None,
            assignments: vec![site(5, parts), site(6, Vec::new())],
            frames: BTreeMap::new(),
        }
    }

    #[test]
    fn a_split_site_says_how_much_of_its_bytes_and_heat_is_fast() {
        let sites = split_sites(&plan(SLOW, vec![part(0, FAST, 600), part(7, FAST, 100)]));
        assert_eq!(sites.len(), 1);
        let site = &sites[0];
        assert_eq!(site.fast_bytes, 4 * MIB);
        assert_eq!((site.fast_bytes_share, site.fast_value_share), (0.02, 0.7));
        let facts = |at: usize| {
            let range = &site.ranges[at];
            (range.words(), range.value, range.weight_bytes / MIB)
        };
        assert_eq!(facts(0), ("0 B to 1 MiB".to_owned(), 600, 2));
        assert_eq!(facts(2), ("everything else".to_owned(), 300, 196));
    }

    #[test]
    fn of_a_fast_site_with_slow_parts_the_rest_is_fast() {
        let sites = split_sites(&plan(FAST, vec![part(3, SLOW, 50)]));
        assert_eq!(sites[0].fast_bytes, 198 * MIB);
        assert_eq!(sites[0].fast_value_share, 0.95);
    }

    #[test]
    fn leading_memory_is_a_part_too() {
        let mut plan = plan(SLOW, Vec::new());
        plan.assignments[1].leading = Some(LeadingBytes {
            site: plan.assignments[1].site,
            tier: FAST,
            bytes: Bytes(50 * MIB),
            value: 400,
        });
        let sites = split_sites(&plan);
        assert_eq!(sites.len(), 1);
        let site = &sites[0];
        assert_eq!((site.fast_bytes_share, site.fast_value_share), (0.25, 0.4));
        let facts: Vec<_> = site
            .ranges
            .iter()
            .map(|range| (range.words(), range.tier.as_str(), range.value))
            .collect();
        let first = ("its first 50 MiB".to_owned(), "fast", 400);
        let rest = ("everything else".to_owned(), "slow", 600);
        assert_eq!(facts, [first, rest]);
    }

    #[test]
    fn a_text_names_the_ranges_and_steers_no_terminal() {
        let sites = split_sites(&plan(SLOW, vec![part(7, FAST, 700)]));
        let text = render(&sites, "accesses", 80);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("1 site is placed in parts"), "{text}");
        let table = &lines[lines.len() - 4..];
        assert_eq!(
            table,
            [
                "  0000000000000005  graph.cc:88 load: ?[2Jedges",
                "    tier  in each object   bytes  heat",
                "    fast  7 MiB to 8 MiB   1.0 %  70 %",
                "    slow  everything else   99 %  30 %",
            ]
        );
        assert_eq!(render(&[], "accesses", 80), "");
    }

    #[test]
    fn of_many_ranges_those_with_most_value_are_shown_in_order() {
        let parts = (0..40)
            .map(|number| part(2 * number, FAST, number))
            .collect();
        let sites = split_sites(&plan(SLOW, parts));
        let starts: Vec<_> = shown(&sites[0])
            .iter()
            .map(|range| range.start_bytes)
            .collect();
        assert_eq!(starts.len(), RANGES);
        assert_eq!(starts[0], Some(66 * MIB));
        assert_eq!(starts[RANGES - 1], None, "what is in none is shown last");
        let text = render(&sites, "accesses", 80);
        assert!(text.ends_with("    and 33 ranges more\n"), "{text}");
    }
}
