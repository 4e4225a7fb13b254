//! The programs of `isotherm colocate` in two forms: with whole sites as the objects that policies share, as CoMerge has them, and with
//! chunks of sites.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use isotherm_model::plan::Weight;
use isotherm_model::profile::Profile;
use isotherm_model::tier::SlowFactors;
use isotherm_model::units::Bytes;
use isotherm_pipeline::{SiteChunks, predicted_runs};
use isotherm_policy::sharing::{Colocation, FloorError, SharedPlan, SharingPolicy, slowdowns};
use isotherm_report::sharing::SharingOutcome;

use crate::sharing::{self, SharedObjects};

/// The programs with the same objects in each policy: sites or chunks of them.
pub(super) struct SharedPrograms {
    /// What the policies share.
    pub(super) objects: SharedObjects,
    /// The chunks of each program's sites, by its name.
    pub(super) chunks: BTreeMap<String, SiteChunks>,
    /// The predicted runs of all programs.
    pub(super) colocation: Colocation,
}

impl SharedPrograms {
    /// Predicts the runs of all programs.
    ///
    /// # Errors
    /// A profile that does not say how long its program waited.
    pub(super) fn of(
        objects: SharedObjects,
        profiles: &BTreeMap<&str, &Profile>,
        factors: SlowFactors,
        (weight, chunk): (Weight, Bytes),
    ) -> Result<Self> {
        let of_program = |(name, profile): (&&str, &&Profile)| {
            let chunks = match objects {
                SharedObjects::Sites => SiteChunks::whole_sites(),
                SharedObjects::Chunks => SiteChunks::of(profile, chunk),
            };
            ((*name).to_owned(), chunks)
        };
        let chunks: BTreeMap<_, _> = profiles.iter().map(of_program).collect();
        let mut programs = Vec::new();
        for (name, profile) in profiles {
            let runs = predicted_runs(name, profile, &chunks[*name], factors, weight);
            programs.push(runs.with_context(|| format!("program \"{name}\""))?);
        }
        Ok(Self {
            objects,
            chunks,
            colocation: Colocation::new(programs)?,
        })
    }

    /// The plan and the outcome of each policy, and the reason of those that have no plan.
    pub(super) fn share(
        &self,
        floors: &BTreeMap<String, u32>,
        capacity: Bytes,
    ) -> Vec<(SharingOutcome, Result<SharedPlan, FloorError>)> {
        let of_policy = |policy: Box<dyn SharingPolicy>| {
            let shared = policy.share(&self.colocation, capacity);
            let made = shared.as_ref().ok();
            let outcome = SharingOutcome {
                policy: policy.name().to_owned(),
                shares: self.objects.word(),
                utility: made.map_or(0.0, SharedPlan::utility),
                slowdowns: made.map_or(Vec::new(), |plan| slowdowns(&self.colocation, plan)),
                refused: shared.as_ref().err().map(ToString::to_string),
            };
            (outcome, shared)
        };
        let policies = sharing::policies(floors).into_iter();
        policies.map(of_policy).collect()
    }
}
