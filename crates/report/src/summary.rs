//! [`Summary`] has every figure of a report, computed once. Serialised, this is the JSON report; units are in the names. `docs/formats.md`
//! documents each field.

use isotherm_model::batch::{Count, OBJECTS_FOLDED, OBJECTS_LOST, SourceReport};
use isotherm_model::plan::Plan;
use isotherm_model::profile::{Ending, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

pub use crate::code_functions::{CodeFunction, FunctionSite};
pub use crate::code_lines::CodeLine;
pub use crate::heat::{HeatCell, HeatColumn, HeatGrid, HeatRow};
pub use crate::parts::{PlacedRange, SplitSite};
pub use crate::plan::{PlanSummary, TierUse};
pub use crate::resident::{ResidentSeries, SiteSeries};
pub use crate::sites::{SiteCaller, SiteRow};
pub use crate::totals::{HOT_SHARE, SummaryTotals};

use crate::capacity_curve::CapacityCurve;
use crate::energy::EnergyRow;
use crate::java::JavaSummary;
use crate::words::percent;
use crate::{code_functions, energy, paged_run, parts, shell, sites, words};

/// Version of the JSON report. Fields may be added within a version; none is renamed or changed.
pub const SCHEMA_VERSION: u32 = 1;

/// All figures of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The main finding about the run, in words.
    pub headline: String,
    /// Notes that limit the meaning of the numbers, shown before the tables.
    pub notes: Vec<String>,
    /// The run: its program, its machine and its settings.
    pub run: Run,
    /// Sums over the run.
    pub totals: SummaryTotals,
    /// Sites that can be placed, hottest first; in the JSON report by share, the largest first.
    #[serde(serialize_with = "crate::sites::serialize_by_share")]
    pub sites: Vec<SiteRow>,
    /// Accesses that the hottest sites take at each capacity.
    #[serde(skip)]
    pub(crate) curve: CapacityCurve,
    /// The functions that access data, most accesses first; absent where no instruction is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<CodeFunction>,
    /// Accesses by time and place.
    pub heat: HeatGrid,
    /// Resident bytes by time and site.
    pub resident: ResidentSeries,
    /// The plan, where one was given.
    pub plan: Option<PlanSummary>,
    /// The sites that the plan places in parts, hottest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub split_sites: Vec<SplitSite>,
    /// The samples that each source of the profile delivered.
    pub sources: Vec<SourceSummary>,
    /// Energy of the run, measured and modelled; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<EnergyRow>,
    /// Figures of a Java program; absent of other programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub java: Option<JavaSummary>,
    /// Counters at the end of the run.
    pub counters: Vec<CounterSummary>,
    /// Commands worth running next.
    pub next: Vec<Next>,
}

/// The run: its program, its machine and its settings.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// File name of the program.
    pub program: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Start, RFC 3339.
    pub started: String,
    /// Version of Isotherm that recorded it.
    pub isotherm: String,
    /// `exited`, `signalled`, `detached` or `unknown`.
    pub ending: &'static str,
    /// Exit status or signal.
    pub ending_value: Option<i32>,
    /// True where the slow tier was emulated.
    pub emulated: bool,
    /// Length of the run.
    pub span_ns: u64,
    /// Number of epochs.
    pub epochs: usize,
    /// Length of an epoch as asked for.
    pub epoch_length_ns: u64,
    /// Size of a chunk.
    pub chunk_bytes: u64,
    /// Callers in a calling context.
    pub context_depth: u32,
    /// The machine: name and value of each fact.
    pub machine: Vec<(String, String)>,
}

/// A command and what it is for.
#[derive(Clone, Debug, Serialize)]
pub struct Next {
    /// What it does, in words.
    pub what: String,
    /// The command.
    pub command: String,
}

/// The samples that one source delivered, and their cost.
#[derive(Clone, Debug, Serialize)]
pub struct SourceSummary {
    /// Its name.
    pub name: String,
    /// Samples taken.
    pub taken_samples: u64,
    /// Samples that yielded a data address.
    pub usable_samples: u64,
    /// Samples dropped.
    pub lost_samples: u64,
    /// Time the source itself used.
    pub cost_ns: u64,
    /// Its known cost to the program.
    pub cost_note: String,
    /// Why it is off or weak; empty where all is well.
    pub warning: String,
    /// True where it delivered nothing.
    pub silent: bool,
}

/// A counter at the end of the run.
#[derive(Clone, Debug, Serialize)]
pub struct CounterSummary {
    /// Its name, unit last.
    pub name: String,
    /// Process id; none for the whole run.
    pub pid: Option<u32>,
    /// Image of the process.
    pub image: Option<u32>,
    /// Its value.
    pub value: u64,
}

impl Summary {
    /// Computes every figure of a profile and, where there is one, a plan for it. There are no commands yet.
    #[must_use]
    pub fn new(profile: &Profile, plan: Option<&Plan>) -> Self {
        let accesses = profile.accesses_by_site();
        let sites = sites::rows(profile, &accesses, plan);
        let run = Run::new(profile, plan);
        let elsewhere = accesses.get(&SiteId::UNATTRIBUTED).map_or(0, |all| all.0);
        let curve = sites::curve(&sites);
        let totals = SummaryTotals::new(profile, sites.len(), &curve, elsewhere);
        let sources: Vec<_> = profile.sources.iter().map(SourceSummary::new).collect();
        let split_sites = plan.map(|plan| named_as(&sites, parts::split_sites(plan)));
        let plan = plan.map(|plan| PlanSummary::new(plan, &sites, &totals));
        let mut summary = Self {
            schema_version: SCHEMA_VERSION,
            headline: headline(&run, &totals),
            notes: Vec::new(),
            functions: code_functions::functions(profile, &sites),
            heat: HeatGrid::new(profile, &sites),
            resident: ResidentSeries::new(profile, &sites),
            run,
            totals,
            sites,
            curve,
            plan,
            split_sites: split_sites.unwrap_or_default(),
            sources,
            energy: energy::measured(profile),
            java: JavaSummary::of(profile),
            counters: profile.counts.iter().map(CounterSummary::new).collect(),
            next: Vec::new(),
        };
        summary.notes = notes(&summary, &profile.counts);
        summary.notes.extend(paged_run::note(&profile.counts));
        summary
    }

    /// True where the bandwidth of any site is known.
    pub(crate) fn has_bandwidths(&self) -> bool {
        let mut sites = self.sites.iter();
        sites.any(|site| site.bandwidth_bytes_per_second.is_some())
    }

    /// True where the energy of any site was modelled.
    pub(crate) fn has_energies(&self) -> bool {
        let mut sites = self.sites.iter();
        sites.any(|site| site.modelled_energy_joules.is_some())
    }
}

/// Sites with parts, named as the rows of the same sites are.
fn named_as(rows: &[SiteRow], mut split: Vec<SplitSite>) -> Vec<SplitSite> {
    for site in &mut split {
        if let Some(row) = rows.iter().find(|row| row.site == site.site) {
            site.location.clone_from(&row.location);
        }
    }
    split
}

impl Run {
    fn new(profile: &Profile, plan: Option<&Plan>) -> Self {
        let meta = &profile.meta;
        let path = meta.command.first().map_or("", String::as_str);
        let program = path.rsplit('/').next().filter(|name| !name.is_empty());
        let (ending, ending_value) = match profile.ending {
            Ending::Exited(status) => ("exited", Some(status)),
            Ending::Signalled(signal) => ("signalled", Some(signal)),
            Ending::Detached => ("detached", None),
            Ending::Unknown => ("unknown", None),
        };
        Self {
            program: program.unwrap_or("the program").to_owned(),
            command: meta.command.clone(),
            started: meta.started.clone(),
            isotherm: meta.isotherm.clone(),
            ending,
            ending_value,
            emulated: meta.emulated || plan.is_some_and(|plan| plan.tiers.emulates()),
            span_ns: profile.span().0,
            epochs: profile.epochs.len(),
            epoch_length_ns: meta.epoch_length.0,
            chunk_bytes: meta.chunk.0,
            context_depth: meta.depth,
            machine: meta.machine.clone(),
        }
    }

    /// The command as a shell reads it.
    #[must_use]
    pub fn command_line(&self) -> String {
        shell::line(&self.command)
    }

    /// How it ended, in words.
    #[must_use]
    pub fn ending_words(&self) -> String {
        match (self.ending, self.ending_value) {
            ("exited", Some(status)) => format!("exited with status {status}"),
            ("signalled", Some(signal)) => format!("died of signal {signal}"),
            ("detached", _) => "recorded while it ran".to_owned(),
            _ => "recording was cut short".to_owned(),
        }
    }
}

impl SourceSummary {
    fn new(report: &SourceReport) -> Self {
        Self {
            name: report.name.clone(),
            taken_samples: report.taken,
            usable_samples: report.usable,
            lost_samples: report.lost,
            cost_ns: report.cost.0,
            cost_note: report.cost_note.clone(),
            warning: report.warning.clone(),
            // A row that only reports a cost (session files, resident set) has nothing to deliver.
            silent: report.usable == 0 && !report.warning.is_empty(),
        }
    }
}

impl CounterSummary {
    fn new(count: &Count) -> Self {
        Self {
            name: count.name.clone(),
            pid: count.process.map(|process| process.pid),
            image: count.process.map(|process| process.image),
            value: count.value,
        }
    }
}

fn headline(run: &Run, totals: &SummaryTotals) -> String {
    let ran = format!(
        "{} ran for {} with a footprint of {}.",
        words::clip(&run.program, 60),
        Nanos(run.span_ns),
        Bytes(totals.footprint_bytes)
    );
    let counted = totals.counted.noun();
    let taught = match (totals.accesses, totals.unattributed_accesses) {
        (0, 0) => "No accesses were seen, so nothing can be said of what is hot.".to_owned(),
        (0, _) => {
            "No access fell on data that it allocated, so there is nothing to place.".to_owned()
        }
        _ => format!(
            "The hottest {} of it ({}) takes {} of the {counted}.",
            percent(totals.hot_capacity_share),
            Bytes(totals.hot_capacity_bytes),
            percent(totals.hot_accesses_share)
        ),
    };
    format!("{ran} {taught}")
}

/// The note on data objects without places, if there are any.
fn without_places(counts: &[Count]) -> Option<String> {
    let all = |name: &str| Count::total(counts, name);
    let objects = all(OBJECTS_FOLDED).saturating_add(all(OBJECTS_LOST));
    (objects > 0).then(|| {
        format!(
            "The program allocated more data objects than a recorder keeps: {} count for their sites only, without the places of \
             the accesses in them.",
            words::counted(objects, "smaller one")
        )
    })
}

fn notes(summary: &Summary, counts: &[Count]) -> Vec<String> {
    let mut notes = Vec::new();
    if summary.sources.is_empty() {
        let none = "No source reported: the profile does not say how accesses were seen.";
        notes.push(none.to_owned());
    }
    for source in summary.sources.iter().filter(|source| source.silent) {
        let (name, warning) = (&source.name, &source.warning);
        notes.push(format!("Source {name} delivered nothing: {warning}."));
    }
    let weak = |source: &&SourceSummary| {
        !source.silent && source.usable_samples < source.taken_samples / 2
    };
    for source in summary.sources.iter().filter(weak) {
        notes.push(format!(
            "Source {} found the address of the data in {} of its {}; shares are of these alone.",
            source.name,
            words::grouped(source.usable_samples),
            words::counted(source.taken_samples, "sample")
        ));
    }
    notes.extend(without_places(counts));
    if let Some(plan) = &summary.plan {
        notes.extend(plan.doubts(&summary.totals));
    }
    if summary.run.ending == "unknown" {
        let cut = "The recording was cut short; what is shown is what was recorded until then.";
        notes.push(cut.to_owned());
    }
    notes
}
