//! [`ProfileDifference`] is the output of `isotherm diff`: the figures of two profiles of a program and of each site, and what changed
//! beyond the noise. It is the JSON form; `text` formats it for a terminal, `verdict` evaluates the conditions under which the command
//! fails.
//!
//! A site is *hotter* where its share of the heat grew, *slower* where the program waits longer for its data, *larger* where more of
//! it is resident. Shares and times of samples are only said to differ where their 95 % intervals allow it.

use std::collections::HashMap;

use isotherm_model::batch::OBJECT_AT_LEAST;
use isotherm_model::calls::MatchedBy;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::{Ending, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::site_pair::SitePair;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::variant_words;
use serde::Serialize;

use crate::location::Location;
use crate::noise::{SampledAmount, differ, wilson};
use crate::shell;
use crate::sites::{self, SiteRow};
use crate::words::{self, counted, grouped, share};

mod text;
mod verdict;

/// Version of the JSON form.
pub const SCHEMA_VERSION: u32 = 1;

/// A change of a share, of the heat before or of a site's size, that is too small to speak of.
const LEAST_SHARE: f64 = 0.005;
/// A change of a site's size, as a share of it, that is too small to speak of.
const LEAST_GROWTH: f64 = 0.01;

variant_words! {
    /// A change of a site.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SiteChangeKind {
        /// Only the later profile has it.
        New = "new",
        /// Only the earlier profile has it.
        Gone = "gone",
        /// A larger share of the heat.
        Hotter = "hotter",
        /// A smaller share of the heat.
        Cooler = "cooler",
        /// The program waits longer for its data.
        Slower = "slower",
        /// The program waits less for its data.
        Faster = "faster",
        /// More bytes resident.
        Larger = "larger",
        /// Fewer bytes resident.
        Smaller = "smaller",
    }
}

/// The figures of one of the runs.
#[derive(Clone, Debug, Serialize)]
pub struct DifferenceRun {
    /// Path of the profile, as it was given.
    pub profile: String,
    /// The command that ran.
    pub command: String,
    /// Start, RFC 3339.
    pub started: String,
    /// Unit of its heat.
    #[serde(serialize_with = "words::noun")]
    pub counted: CountUnit,
    /// Length of the run.
    pub time_ns: u64,
    /// The footprint.
    pub footprint_bytes: u64,
    /// Accesses to all sites.
    pub accesses: u64,
    /// The accesses in the unit that both runs have; none where they have none in common.
    pub heat: Option<u64>,
    /// Samples of these accesses; none where no source counts its samples.
    pub samples: Option<u64>,
    /// Allocations.
    pub allocations: u64,
    /// Bytes requested over the run.
    pub requested_bytes: u64,
    /// Sites.
    pub sites: usize,
}

/// The figures of a place of the source in one of the profiles: of all its sites together.
#[derive(Clone, Debug, Serialize)]
pub struct SiteFigures {
    /// Ids of the sites.
    pub sites: Vec<String>,
    /// Accesses.
    pub accesses: u64,
    /// The accesses as a share of those to all sites.
    pub accesses_share: f64,
    /// The accesses in the unit that both runs have.
    pub heat: Option<u64>,
    /// Samples of the accesses.
    pub samples: Option<u64>,
    /// Most bytes resident at one time, of several sites the sum.
    pub peak_rss_bytes: u64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes requested over the run.
    pub requested_bytes: u64,
}

/// A place of the source in both profiles.
#[derive(Clone, Debug, Serialize)]
pub struct SiteDifference {
    /// Its changes beyond the noise.
    pub changes: Vec<SiteChangeKind>,
    /// Its location, in the later profile if it is there.
    pub location: String,
    /// The location in parts, which can be cut where there is little room.
    #[serde(skip)]
    place: Location,
    /// Callers, innermost first.
    pub callers: Vec<String>,
    /// Kind of the site.
    pub kind: &'static str,
    /// How the sites were found: `name`, `line`, `variable` or `order`.
    pub matched_by: Option<&'static str>,
    /// Figures of the earlier profile.
    pub before: Option<SiteFigures>,
    /// Figures of the later profile.
    pub after: Option<SiteFigures>,
}

/// How many places were found in both profiles.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FoundSites {
    /// Places of the earlier profile that were accessed or resident.
    pub before: usize,
    /// Places of `before` that the later profile has, too.
    pub found: usize,
    /// Share of the earlier heat that the found places have.
    pub found_accesses_share: f64,
    /// Places by the method that found them, the most exact first.
    pub by: Vec<(&'static str, usize)>,
}

/// A condition, and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct ConditionResult {
    /// The condition as it was given.
    pub condition: String,
    /// Whether it holds; none where the profiles cannot tell.
    pub holds: Option<bool>,
    /// The values that decided it, or why there are none, in words.
    pub reason: String,
}

/// The comparison of two profiles.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileDifference {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Notes that limit the meaning of the numbers.
    pub notes: Vec<String>,
    /// Unit of each `heat`: `ns`, `accesses`, `misses`, `page touches` or `bytes`; none where the runs have none in common.
    pub heat_unit: Option<&'static str>,
    /// The earlier run.
    pub before: DifferenceRun,
    /// The later run.
    pub after: DifferenceRun,
    /// How many places were found in both profiles.
    pub found: FoundSites,
    /// Every place of the source, the largest change first.
    pub sites: Vec<SiteDifference>,
    /// The conditions, in the order in which they were given.
    pub conditions: Vec<ConditionResult>,
}

impl ProfileDifference {
    /// Computes every figure of two profiles and the pairs of their sites; `names` are the paths of the profiles.
    #[must_use]
    pub fn new(
        (before, after): (&Profile, &Profile),
        pairs: &[SitePair],
        names: (&str, &str),
    ) -> Self {
        let unit = HeatUnit::common(before, after);
        let sides = (
            Side::new(before, unit, names.0),
            Side::new(after, unit, names.1),
        );
        let sites = pairs.iter();
        let sites = sites.filter_map(|pair| site_difference(&sides, pair));
        let mut sites: Vec<SiteDifference> = sites.collect();
        let weight = |site: &SiteDifference| weight(&sides, site);
        sites.sort_by(|a, b| {
            let by_weight = weight(b).total_cmp(&weight(a));
            by_weight.then_with(|| a.location.cmp(&b.location))
        });
        Self {
            schema_version: SCHEMA_VERSION,
            notes: notes((before, after), unit, &sites),
            heat_unit: unit.map(HeatUnit::word),
            found: found(&sites),
            before: sides.0.run,
            after: sides.1.run,
            sites,
            conditions: Vec::new(),
        }
    }
}

/// The unit in which the heat of two runs can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeatUnit {
    /// Time: samples of a timer times its interval.
    Time,
    /// Counts of a source that counts all, or weighs its samples.
    Counts(CountUnit),
}

impl HeatUnit {
    /// `None` for different units, for units without a scale, and for a timer with an unknown interval.
    fn common(before: &Profile, after: &Profile) -> Option<Self> {
        let unit = before.counted();
        if unit != after.counted() {
            return None;
        }
        let intervals = (before.meta.sample_interval, after.meta.sample_interval);
        match unit {
            CountUnit::Time if intervals.0.is_some() && intervals.1.is_some() => Some(Self::Time),
            CountUnit::Accesses | CountUnit::Misses | CountUnit::Touches | CountUnit::Bytes => {
                Some(Self::Counts(unit))
            }
            CountUnit::Time | CountUnit::Latency | CountUnit::Samples | CountUnit::Unknown => None,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Time => "ns",
            Self::Counts(unit) => unit.noun(),
        }
    }

    /// Accesses of a profile in this unit.
    fn of(self, profile: &Profile, accesses: u64) -> u64 {
        match self {
            Self::Time => {
                let interval = profile.meta.sample_interval.unwrap_or(Nanos::ZERO);
                accesses.saturating_mul(interval.0)
            }
            Self::Counts(_) => accesses,
        }
    }
}

/// One of the two profiles.
struct Side<'a> {
    profile: &'a Profile,
    unit: Option<HeatUnit>,
    run: DifferenceRun,
    rows: HashMap<SiteId, SiteRow>,
}

impl<'a> Side<'a> {
    fn new(profile: &'a Profile, unit: Option<HeatUnit>, name: &str) -> Self {
        let rows = sites::rows(profile, &profile.accesses_by_site(), None);
        let sum = |value: fn(&SiteRow) -> u64| rows.iter().map(value).fold(0, u64::saturating_add);
        let accesses = sum(|row| row.accesses);
        let samples = rows.iter().map(|row| row.samples);
        let samples = samples.sum::<Option<u64>>();
        let run = DifferenceRun {
            profile: name.to_owned(),
            command: shell::line(&profile.meta.command),
            started: profile.meta.started.clone(),
            counted: profile.counted(),
            time_ns: profile.span().0,
            footprint_bytes: profile.footprint().0.0,
            accesses,
            heat: unit.map(|unit| unit.of(profile, accesses)),
            samples: samples.filter(|_| !rows.is_empty()),
            allocations: sum(|row| row.allocations),
            requested_bytes: sum(|row| row.requested_bytes),
            sites: rows.len(),
        };
        Self {
            profile,
            unit,
            run,
            rows: rows.into_iter().map(|row| (row.id, row)).collect(),
        }
    }

    /// The figures of these sites together; `None` where none of them can be placed.
    fn figures(&self, sites: &[SiteId]) -> Option<SiteFigures> {
        let rows: Vec<&SiteRow> = sites.iter().filter_map(|id| self.rows.get(id)).collect();
        if rows.is_empty() {
            return None;
        }
        let sum = |value: fn(&SiteRow) -> u64| {
            let values = rows.iter().map(|row| value(row));
            values.fold(0, u64::saturating_add)
        };
        let accesses = sum(|row| row.accesses);
        Some(SiteFigures {
            sites: rows.iter().map(|row| row.site.clone()).collect(),
            accesses,
            accesses_share: share(accesses, self.run.accesses),
            heat: self.unit.map(|unit| unit.of(self.profile, accesses)),
            samples: rows.iter().map(|row| row.samples).sum(),
            peak_rss_bytes: sum(|row| row.peak_rss_bytes),
            allocations: sum(|row| row.allocations),
            requested_bytes: sum(|row| row.requested_bytes),
        })
    }
}

fn site_difference(sides: &(Side<'_>, Side<'_>), pair: &SitePair) -> Option<SiteDifference> {
    let (before, after) = (sides.0.figures(&pair.before), sides.1.figures(&pair.after));
    let row = |side: &Side<'_>, sites: &[SiteId]| {
        let mut rows = sites.iter().filter_map(|id| side.rows.get(id));
        rows.next().cloned()
    };
    let row = row(&sides.1, &pair.after).or_else(|| row(&sides.0, &pair.before))?;
    let is_telling =
        |side: &Option<SiteFigures>| side.as_ref().is_some_and(SiteFigures::is_telling);
    let changes = match is_telling(&before) || is_telling(&after) {
        true => changes(sides, before.as_ref(), after.as_ref()),
        false => Vec::new(),
    };
    Some(SiteDifference {
        changes,
        location: row.location,
        place: row.place,
        callers: row.callers.into_iter().map(|caller| caller.text).collect(),
        kind: row.kind,
        matched_by: pair.by.map(MatchedBy::word),
        before,
        after,
    })
}

/// The changes of a site beyond the noise.
fn changes(
    sides: &(Side<'_>, Side<'_>),
    before: Option<&SiteFigures>,
    after: Option<&SiteFigures>,
) -> Vec<SiteChangeKind> {
    use SiteChangeKind::{Cooler, Faster, Gone, Hotter, Larger, New, Slower, Smaller};
    let (before, after) = match (before, after) {
        (None, _) => return vec![New],
        (_, None) => return vec![Gone],
        (Some(before), Some(after)) => (before, after),
    };
    let mut changes = Vec::new();
    let mut add = |is_other: bool, growth: f64, [more, less]: [SiteChangeKind; 2]| {
        changes.extend(is_other.then_some(if growth > 0.0 { more } else { less }));
    };
    let growth = after.accesses_share - before.accesses_share;
    let is_other = shares_differ(sides, before, after) && growth.abs() >= LEAST_SHARE;
    add(is_other, growth, [Hotter, Cooler]);
    if sides.0.unit == Some(HeatUnit::Time) {
        let (slow, fast) = (before.sampled(), after.sampled());
        let all = sides.0.run.heat.unwrap_or(0).max(1) as f64;
        let growth = fast.amount - slow.amount;
        let is_other = differ(slow, fast) && growth.abs() / all >= LEAST_SHARE;
        add(is_other, growth, [Slower, Faster]);
    }
    let (small, large) = (before.peak_rss_bytes, after.peak_rss_bytes);
    let growth = small.abs_diff(large);
    let is_other = growth >= OBJECT_AT_LEAST.0 && share(growth, small.max(large)) >= LEAST_GROWTH;
    let growth = large as f64 - small as f64;
    add(is_other, growth, [Larger, Smaller]);
    changes
}

/// True where the intervals that the samples leave of both shares do not overlap.
fn shares_differ(sides: &(Side<'_>, Side<'_>), before: &SiteFigures, after: &SiteFigures) -> bool {
    let interval = |site: &SiteFigures, run: &DifferenceRun| {
        Some(wilson(site.samples?, run.samples.filter(|all| *all > 0)?))
    };
    let intervals = (
        interval(before, &sides.0.run),
        interval(after, &sides.1.run),
    );
    match intervals {
        (Some((low, high)), Some((other_low, other_high))) => high < other_low || other_high < low,
        // Every access was counted.
        _ => true,
    }
}

impl SiteDifference {
    /// False for a site that was neither accessed nor resident in either run: it has no names, and nothing to say.
    fn is_telling(&self) -> bool {
        let mut figures = [&self.before, &self.after].into_iter().flatten();
        figures.any(SiteFigures::is_telling)
    }
}

impl SiteFigures {
    const fn is_telling(&self) -> bool {
        self.accesses > 0 || self.peak_rss_bytes > 0
    }

    /// The heat, with the samples that it follows from.
    fn sampled(&self) -> SampledAmount {
        SampledAmount {
            amount: self.heat.unwrap_or(self.accesses) as f64,
            samples: self.samples,
        }
    }
}

/// The size of a change: the greater one of its shares of the heat and of the footprint before.
fn weight(sides: &(Side<'_>, Side<'_>), site: &SiteDifference) -> f64 {
    let (before, after) = (&site.before, &site.after);
    let of = |figures: &Option<SiteFigures>, value: fn(&SiteFigures) -> f64| {
        figures.as_ref().map_or(0.0, value)
    };
    let changed = |value: fn(&SiteFigures) -> f64| (of(after, value) - of(before, value)).abs();
    let heat = match sides.0.run.heat.filter(|heat| *heat > 0) {
        Some(all) => changed(|site| site.heat.unwrap_or(0) as f64) / all as f64,
        None => changed(|site| site.accesses_share),
    };
    let footprint = sides.0.run.footprint_bytes.max(1) as f64;
    heat.max(changed(|site| site.peak_rss_bytes as f64) / footprint)
}

fn found(sites: &[SiteDifference]) -> FoundSites {
    let is_former =
        |site: &&SiteDifference| site.before.as_ref().is_some_and(SiteFigures::is_telling);
    let former: Vec<&SiteDifference> = sites.iter().filter(is_former).collect();
    let found = former.iter().filter(|site| site.after.is_some());
    let share_of = |site: &&SiteDifference| {
        let before = site.before.as_ref();
        before.map_or(0.0, |before| before.accesses_share)
    };
    let by = MatchedBy::ALL.into_iter().map(|by| {
        let so = |site: &&&SiteDifference| site.matched_by == Some(by.word());
        (by.word(), former.iter().filter(so).count())
    });
    FoundSites {
        before: former.len(),
        found: found.clone().count(),
        found_accesses_share: found.map(share_of).sum(),
        by: by.filter(|(_, count)| *count > 0).collect(),
    }
}

fn notes(
    (before, after): (&Profile, &Profile),
    unit: Option<HeatUnit>,
    sites: &[SiteDifference],
) -> Vec<String> {
    let mut notes = Vec::new();
    let (counted_before, counted_after) = (before.counted(), after.counted());
    if unit.is_none() {
        notes.push(match counted_before == counted_after {
            true => format!(
                "{} cannot be compared between runs; only shares of the heat are compared.",
                counted_before.units()
            ),
            false => format!(
                "The earlier profile counts {}, the later one {}: only shares of the heat are compared.",
                counted_before.units(),
                counted_after.units()
            ),
        });
    }
    if before.meta.command != after.meta.command {
        notes.push("The command lines differ.".to_owned());
    }
    if before.meta.depth != after.meta.depth && before.meta.depth.min(after.meta.depth) > 0 {
        notes.push(format!(
            "The profiles have contexts of {} and of {}; they are compared at the smaller depth.",
            counted(before.meta.depth, "caller"),
            counted(after.meta.depth, "caller")
        ));
    }
    if before.meta.emulated != after.meta.emulated {
        notes.push(
            "One of the runs was on emulated tiers, whose times are longer, and the other was not."
                .to_owned(),
        );
    }
    for (profile, which) in [(before, "earlier"), (after, "later")] {
        if profile.ending == Ending::Unknown {
            notes.push(format!("The {which} recording was cut short."));
        }
    }
    let is_lost = |site: &&SiteDifference| {
        let heated = site.before.as_ref().is_some_and(|site| site.accesses > 0);
        site.after.is_none() && heated
    };
    let nameless = sites.iter().filter(is_lost).filter(|site| {
        let mut callers = site.callers.iter();
        callers.any(|caller| caller.contains("+0x"))
    });
    match nameless.count() {
        0 => {}
        lost => notes.push(format!(
            "The earlier profile has {} with callers without a function name, found in the same build only; \
             record programs with symbols, best with -g.",
            counted(lost, "hot site")
        )),
    }
    notes
}

/// Heat in words; empty where there is none in common.
fn heat_in_words(heat: Option<u64>, unit: Option<&str>) -> String {
    match (heat, unit) {
        (Some(heat), Some("ns")) => Nanos(heat).to_string(),
        (Some(heat), Some("bytes")) => Bytes(heat).to_string(),
        (Some(heat), _) => grouped(heat),
        (None, _) => String::new(),
    }
}
