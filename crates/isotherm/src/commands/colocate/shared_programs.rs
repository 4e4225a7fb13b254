//! `SharedPrograms` has the run times, measured or predicted, of the programs of `isotherm colocate` with one kind of object: whole sites
//! (as in CoMerge), or chunks of sites where their times can be told apart. By them `share` divides the fast tier among the objects of all
//! programs, once by each sharing policy, and finds the slow-downs that are expected of each division.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use isotherm_model::plan::Weight;
use isotherm_model::tier::SlowFactors;
use isotherm_model::units::Bytes;
use isotherm_pipeline::SiteChunks;
use isotherm_policy::sharing::{
    Colocation, FloorError, LeastSlowdown, MeasuredProgram, PaperPolicy, SharedPlan, SharingPolicy,
    slowdowns,
};
use isotherm_report::sharing::{SharingOutcome, SharingSource, WorstProgram};

use super::program_times::ProfiledProgram;
use crate::sharing::{self, SharedObjects};

/// The programs with the same objects in each policy: sites or chunks of them.
pub(super) struct SharedPrograms {
    /// What the policies share.
    pub(super) objects: SharedObjects,
    /// The chunks of each program's sites, by its name.
    pub(super) chunks: BTreeMap<String, SiteChunks>,
    /// The runs of all programs, measured or predicted.
    pub(super) colocation: Colocation,
    /// Whether the runs of a program are measured or predicted, by its name.
    pub(super) sources: BTreeMap<String, SharingSource>,
}

impl SharedPrograms {
    /// Takes the runs of all programs: measured where a profile has them, else predicted.
    ///
    /// # Errors
    /// A profile that has no timed runs and does not say how long its program waited.
    pub(super) fn of(
        objects: SharedObjects,
        programs: &BTreeMap<&str, ProfiledProgram<'_>>,
        factors: Option<SlowFactors>,
        (weight, chunk): (Weight, Bytes),
    ) -> Result<Self> {
        let (mut chunks, mut sources) = (BTreeMap::new(), BTreeMap::new());
        let mut runs = Vec::new();
        for (name, program) in programs {
            let wanted = match objects {
                SharedObjects::Sites => SiteChunks::whole_sites(),
                SharedObjects::Chunks => SiteChunks::of(program.profile, chunk),
            };
            let times = program.times(name, wanted, factors, weight);
            let times = times.with_context(|| format!("program \"{name}\""))?;
            runs.push(times.runs);
            chunks.insert((*name).to_owned(), times.chunks);
            sources.insert((*name).to_owned(), times.source);
        }
        Ok(Self {
            objects,
            chunks,
            colocation: Colocation::new(runs)?,
            sources,
        })
    }

    /// The programs' names, in their order.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.colocation.programs().iter().map(MeasuredProgram::name)
    }

    /// The plan and the outcome of each policy, and the reason of those that have no plan.
    pub(super) fn share(
        &self,
        ours: &LeastSlowdown,
        capacity: Bytes,
    ) -> Vec<(SharingOutcome, Result<SharedPlan, FloorError>)> {
        let of_plan = |plan: &SharedPlan| slowdowns(&self.colocation, plan);
        let equal = PaperPolicy::EqualSplit.share(&self.colocation, capacity);
        let equal = equal.as_ref().map_or(Vec::new(), of_plan);
        let of_policy = |policy: Box<dyn SharingPolicy>| {
            let shared = policy.share(&self.colocation, capacity);
            let made = shared.as_ref().ok();
            let slowdowns = made.map_or(Vec::new(), of_plan);
            let over_equal = slowdowns.iter().zip(&equal).map(|(by, equal)| by / equal);
            let outcome = SharingOutcome {
                policy: policy.name().to_owned(),
                shares: self.objects.word(),
                utility: made.map_or(0.0, SharedPlan::utility),
                worst: WorstProgram::of(self.names(), slowdowns.iter().copied()),
                worst_over_equal_split: WorstProgram::of(self.names(), over_equal),
                slowdowns,
                refused: shared.as_ref().err().map(ToString::to_string),
            };
            (outcome, shared)
        };
        let policies = sharing::policies(ours.clone());
        policies.map(of_policy).collect()
    }
}
