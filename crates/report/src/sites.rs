//! Makes a [`SiteRow`] for each placeable site of a profile: its figures in a report, and its place on the curve of cumulative capacity
//! against accesses (MemBrain, Figure 2). The rows are hottest first, as the curve needs them; reports list them by their share of
//! the accesses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use isotherm_model::count_unit::CountUnit;
use isotherm_model::hotness::hotter_first;
use isotherm_model::plan::{Assignment, PlacedPart, Plan};
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes};
use serde::{Serialize, Serializer};

use crate::capacity_curve::{CapacityCurve, Piece};
use crate::code_lines::{CodeLine, lines_by_site};
use crate::energy::joules;
use crate::location::{Location, locations};
use crate::noise::{NOISE_CAPACITY, NOISE_SAMPLES, samples_of, wilson};
use crate::words::{counted, percent, share};

/// A site, its share and its place on the curve.
#[derive(Clone, Debug, Serialize)]
pub struct SiteRow {
    /// Its id.
    #[serde(skip)]
    pub id: SiteId,
    /// The id in words, as plans name it.
    pub site: String,
    /// The word of its kind, such as `heap`, `mapping` or `static`.
    pub kind: &'static str,
    /// The caller that says most, the innermost with a source line of the program's own:
    /// `graph.cc:88 load_graph: edges`; no two sites have the same.
    pub location: String,
    /// The location in parts, which can be cut where there is little room.
    #[serde(skip)]
    pub(crate) place: Location,
    /// Callers, innermost first.
    pub callers: Vec<SiteCaller>,
    /// Accesses seen, in the unit of `totals.counted`.
    pub accesses: u64,
    /// The same number as `accesses`, named by what it leaves out: the accesses beyond the caches.
    pub heat_beyond_caches: u64,
    /// Accesses beside these that the caches served, by an estimate; 0 where the source sees the caches itself.
    pub served_by_caches: u64,
    /// Share of the accesses to all sites.
    pub accesses_share: f64,
    /// Samples that the accesses were concluded from; none where no source says how many it took.
    pub samples: Option<u64>,
    /// Lower limit of the 95 % confidence interval of the share (Wilson).
    pub accesses_share_low: Option<f64>,
    /// Upper limit of that interval.
    pub accesses_share_high: Option<f64>,
    /// True where samples and size are both too small to say anything.
    pub below_noise: bool,
    /// Bytes of memory that its data takes in a second of the run, where runs measured it in isolation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_bytes_per_second: Option<u64>,
    /// Energy of the memory that its data took, by the power model that the report was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled_energy_joules: Option<f64>,
    /// The code that accesses its data, most accesses first; absent where no instruction is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<CodeLine>,
    /// Most bytes resident at one time.
    pub peak_rss_bytes: u64,
    /// Peak RSS as a share of the footprint.
    pub capacity_share: f64,
    /// Hotness: accesses for each MiB of peak RSS; none where no RSS was seen.
    pub accesses_per_mib: Option<f64>,
    /// Peak RSS of this site and all hotter ones.
    pub cumulative_bytes: u64,
    /// `cumulative_bytes` as a share of the footprint; above 1 where sites peak at different times.
    pub cumulative_capacity_share: f64,
    /// Accesses of this site and all hotter ones.
    pub cumulative_accesses: u64,
    /// `cumulative_accesses` as a share of the accesses to all sites.
    pub cumulative_accesses_share: f64,
    /// Allocations.
    pub allocations: u64,
    /// Bytes asked for over the run.
    pub requested_bytes: u64,
    /// Most bytes asked for and not freed at one time; 0 where it could not be told.
    pub peak_requested_bytes: u64,
    /// Tier that the plan puts it into.
    pub tier: Option<String>,
    /// Parts of its data objects that the plan puts elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartRow>,
    /// The reason for the tier, in the plan's words; none for a site that the plan does not name.
    pub reason: Option<String>,
}

/// A range of each data object of a site that has another tier than the site.
#[derive(Clone, Debug, Serialize)]
pub struct PartRow {
    /// First byte from the object's start.
    pub start_bytes: u64,
    /// First byte past it.
    pub end_bytes: u64,
    /// Its tier.
    pub tier: Option<String>,
    /// Its value in the plan.
    pub value: u64,
    /// Bytes of it in all objects together.
    pub weight_bytes: u64,
}

/// One caller.
#[derive(Clone, Debug, Serialize)]
pub struct SiteCaller {
    /// The best that is known: function and line, function and module, or module and offset.
    pub text: String,
    /// Function, where symbols were found.
    pub function: Option<String>,
    /// Source file, where debugging information was found.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Column, where the compiler noted it.
    pub column: Option<u32>,
    /// The variable that the call's result is assigned to, where the source says so beyond doubt.
    pub variable: Option<String>,
    /// Path of the module.
    pub module: String,
    /// Return address within the module, hexadecimal.
    pub offset: String,
}

impl SiteRow {
    /// Its bandwidth in words; empty where it is not known.
    pub(crate) fn bandwidth(&self) -> String {
        let bandwidth = self.bandwidth_bytes_per_second;
        bandwidth.map_or(String::new(), |bytes| format!("{}/s", Bytes(bytes)))
    }

    /// Its modelled energy in words; empty where there is none.
    pub(crate) fn modelled_energy(&self) -> String {
        self.modelled_energy_joules.map_or(String::new(), joules)
    }

    /// Of all accesses to the site, the share that the caches served; 0 where none was seen.
    pub(crate) fn share_in_caches(&self) -> f64 {
        let all = self.accesses.saturating_add(self.served_by_caches);
        share(self.served_by_caches, all)
    }
}

/// Every site that can be placed, hottest first.
fn hottest_first(profile: &Profile, accesses: &BTreeMap<SiteId, Accesses>) -> Vec<Site> {
    let sites = profile.placeable_sites();
    let mut sites: BTreeMap<SiteId, Site> = sites.map(|site| (site.id, site.clone())).collect();
    for id in accesses.keys().filter(|id| id.is_placeable()) {
        let site = sites.entry(*id);
        site.or_insert_with(|| Site::new(*id, SiteKind::Heap));
    }
    let seen = |site: &Site| accesses.get(&site.id).map_or(0, |accesses| accesses.0);
    let mut sites: Vec<Site> = sites.into_values().collect();
    sites.sort_by(|a, b| hotter_first((seen(a), a.peak_rss, a.id), (seen(b), b.peak_rss, b.id)));
    sites
}

fn part_rows(plan: &Plan, site: &Assignment) -> Vec<PartRow> {
    let row = |part: &PlacedPart| PartRow {
        start_bytes: part.start.0,
        end_bytes: part.end.0,
        tier: plan.tiers.get(part.tier).map(|tier| tier.name.clone()),
        value: part.value,
        weight_bytes: part.weight.0,
    };
    site.parts.iter().map(row).collect()
}

/// A row for every site that can be placed, hottest first.
pub(crate) fn rows(
    profile: &Profile,
    accesses: &BTreeMap<SiteId, Accesses>,
    plan: Option<&Plan>,
) -> Vec<SiteRow> {
    let seen = |site: SiteId| accesses.get(&site).map_or(0, |accesses| accesses.0);
    let by_caches = profile.served_by_site();
    let sites = hottest_first(profile, accesses);
    let total = sites.iter().map(|site| seen(site.id));
    let total = total.fold(0, u64::saturating_add);
    let footprint = profile.footprint().0;
    // Those to no site and those that the caches served included.
    let everywhere: Accesses = accesses.values().chain(by_caches.values()).copied().sum();
    let samples = |accesses| samples_of(accesses, everywhere.0, &profile.sources);
    let all_samples = samples(total);
    let assignments = plan.into_iter().flat_map(|plan| &plan.assignments);
    let assignments: HashMap<SiteId, &Assignment> =
        assignments.map(|site| (site.site, site)).collect();
    let mut code = lines_by_site(profile, seen);
    let (mut bytes, mut sum) = (Bytes::ZERO, 0_u64);
    let mut rows: Vec<SiteRow> = sites
        .iter()
        .zip(locations(&sites))
        .map(|(site, place)| {
            let accesses = seen(site.id);
            bytes += site.peak_rss;
            sum = sum.saturating_add(accesses);
            let assignment = assignments.get(&site.id).copied();
            let parts = plan.zip(assignment);
            let parts = parts.map(|(plan, assignment)| part_rows(plan, assignment));
            let samples = samples(accesses);
            let interval = samples.zip(all_samples);
            let interval = interval.map(|(samples, all)| wilson(samples, all));
            SiteRow {
                id: site.id,
                site: site.id.to_string(),
                kind: site.kind.word(),
                location: place.to_string(),
                place,
                callers: site.frames.iter().map(caller).collect(),
                accesses,
                heat_beyond_caches: accesses,
                served_by_caches: by_caches.get(&site.id).map_or(0, |served| served.0),
                accesses_share: share(accesses, total),
                samples,
                accesses_share_low: interval.map(|(low, _)| low),
                accesses_share_high: interval.map(|(_, high)| high),
                below_noise: false,
                bandwidth_bytes_per_second: None,
                modelled_energy_joules: None,
                code: code.remove(&site.id).unwrap_or_default(),
                peak_rss_bytes: site.peak_rss.0,
                capacity_share: share(site.peak_rss.0, footprint.0),
                accesses_per_mib: accesses_per_mib(accesses, site.peak_rss),
                cumulative_bytes: bytes.0,
                cumulative_capacity_share: share(bytes.0, footprint.0),
                cumulative_accesses: sum,
                cumulative_accesses_share: share(sum, total),
                allocations: site.allocations,
                requested_bytes: site.requested.0,
                peak_requested_bytes: site.peak_requested.0,
                tier: plan.and_then(|plan| tier_name(plan, assignment, site.id)),
                parts: parts.unwrap_or_default(),
                reason: assignment.map(|assignment| assignment.reason.clone()),
            }
        })
        .collect();
    mark_noise(&mut rows);
    rows
}

/// The tier in which a plan places a site.
fn tier_name(plan: &Plan, assignment: Option<&Assignment>, site: SiteId) -> Option<String> {
    let tier = assignment.map_or_else(|| plan.unassigned_tier(site), |site| site.tier);
    plan.tiers.get(tier).map(|tier| tier.name.clone())
}

fn accesses_per_mib(accesses: u64, bytes: Bytes) -> Option<f64> {
    let mebibytes = bytes.0 as f64 / f64::from(1 << 20);
    (bytes > Bytes::ZERO).then(|| accesses as f64 / mebibytes)
}

fn caller(frame: &Frame) -> SiteCaller {
    SiteCaller {
        text: frame.to_string(),
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
        column: frame.column,
        variable: frame.variable.clone(),
        module: frame.module.to_string(),
        offset: format!("0x{:x}", frame.offset),
    }
}

/// Marks the rows below the noise: none where that would be all.
fn mark_noise(rows: &mut [SiteRow]) {
    let below = |row: &SiteRow| {
        row.samples.is_some_and(|samples| samples < NOISE_SAMPLES)
            && row.capacity_share < NOISE_CAPACITY
    };
    if rows.iter().all(below) {
        return;
    }
    for row in rows {
        row.below_noise = below(row);
    }
}

/// The rows by share, the largest first; of equals, the larger one, then by id.
pub(crate) fn by_share(rows: &[SiteRow]) -> Vec<&SiteRow> {
    let mut sorted: Vec<&SiteRow> = rows.iter().collect();
    sorted.sort_by_key(|row| (Reverse((row.accesses, row.peak_rss_bytes)), row.id));
    sorted
}

/// Writes the rows as [`by_share`] has them.
pub(crate) fn serialize_by_share<S: Serializer>(
    rows: &[SiteRow],
    to: S,
) -> Result<S::Ok, S::Error> {
    by_share(rows).serialize(to)
}

/// A sentence on the rows below the noise; none where there are none.
pub(crate) fn folded(rows: &[SiteRow], unit: CountUnit) -> Option<String> {
    let below: Vec<&SiteRow> = rows.iter().filter(|row| row.below_noise).collect();
    let share: f64 = below.iter().map(|row| row.accesses_share).sum();
    let bytes = below.iter().map(|row| row.peak_rss_bytes);
    let bytes = Bytes(bytes.fold(0, u64::saturating_add));
    (!below.is_empty()).then(|| {
        format!(
            "{} below the noise (fewer than {NOISE_SAMPLES} samples and {:.0} % of the footprint each): together {} of the \
             {}, {bytes}",
            counted(below.len(), "site"),
            NOISE_CAPACITY * 100.0,
            percent(share),
            unit.noun()
        )
    })
}

/// The curve of these sites, which are hottest first.
pub(crate) fn curve(sites: &[SiteRow]) -> CapacityCurve {
    let piece = |site: &SiteRow| Piece {
        accesses: Accesses(site.accesses),
        bytes: Bytes(site.peak_rss_bytes),
    };
    CapacityCurve::new(sites.iter().map(piece).collect())
}

#[cfg(test)]
mod tests {
    use super::{curve, rows};
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes};

    fn three() -> Vec<super::SiteRow> {
        let mut profile = Profile::new(Meta::default());
        for (id, rss) in [(10, 100), (11, 300), (12, 600)] {
            let mut site = Site::new(SiteId(id), SiteKind::Heap);
            site.peak_rss = Bytes(rss);
            profile.sites.push(site);
        }
        let seen = [(10, 20), (11, 75), (12, 5), (0, 900)];
        let accesses = seen.map(|(id, n)| (SiteId(id), Accesses(n))).into();
        rows(&profile, &accesses, None)
    }

    #[test]
    fn the_curve_rises_by_hotness_and_ends_at_everything() {
        let rows = three();
        let order: Vec<_> = rows.iter().map(|row| row.accesses).collect();
        assert_eq!(order, [75, 20, 5], "11 is hottest, and 0 cannot be placed");
        let sums: Vec<_> = rows.iter().map(|row| row.cumulative_bytes).collect();
        assert_eq!(sums, [300, 400, 1000]);
    }

    #[test]
    fn a_site_that_fits_in_part_counts_in_part() {
        let rows = three();
        for (capacity, wanted) in [
            (0, 0.0),
            (150, 0.375),
            (300, 0.75),
            (700, 0.975),
            (9999, 1.0),
        ] {
            let got = curve(&rows).share_at(Bytes(capacity));
            assert!((got - wanted).abs() < 1e-9, "{capacity}: {got}");
        }
    }
}
