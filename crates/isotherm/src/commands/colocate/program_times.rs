//! `ProfiledProgram` finds the run times by which `isotherm colocate` gives a program its share: those of timed runs in its profile, if
//! these were made on the same tiers and some had all data fast and some all data slow, else predicted ones. Predictions also stand in for
//! sites that were not timed alone and for chunks of sites; where timed runs are there and none can be predicted, the objects are whole
//! sites.

use anyhow::{Context, Result};
use isotherm_console::Console;
use isotherm_model::plan::Weight;
use isotherm_model::profile::Profile;
use isotherm_model::sensitivity_runs::{SensitivityRuns, TierPair};
use isotherm_model::tier::{SlowFactors, Tiers};
use isotherm_pipeline::{SiteChunks, measured_runs, predicted_runs};
use isotherm_policy::sharing::MeasuredProgram;
use isotherm_report::sharing::SharingSource;

/// A program, and its timed runs on the shared tiers.
pub(super) struct ProfiledProgram<'a> {
    pub profile: &'a Profile,
    timed: Option<&'a SensitivityRuns>,
}

/// The times of a program, and whether they were measured.
pub(super) struct ProgramTimes {
    pub runs: MeasuredProgram,
    /// The chunks of its sites that are its objects.
    pub chunks: SiteChunks,
    pub source: SharingSource,
}

impl<'a> ProfiledProgram<'a> {
    /// Takes the timed runs of this profile, and warns if they are of other tiers.
    pub(super) fn new(name: &str, profile: &'a Profile, tiers: &Tiers, console: Console) -> Self {
        let pair = TierPair::of(tiers);
        let timed = profile.sensitivity.as_ref();
        if let Some(timed) = timed.filter(|timed| timed.tiers != pair) {
            console.warn(&format!(
                "program \"{name}\" was measured on {}, and these tiers are {pair}: its times are predicted",
                timed.tiers
            ));
        }
        let timed = timed.filter(|timed| timed.tiers == pair);
        Self { profile, timed }
    }

    /// Its times, with these chunks as its objects where they can be told apart.
    ///
    /// # Errors
    /// The profile has no timed runs for these tiers, and none can be predicted.
    pub(super) fn times(
        &self,
        name: &str,
        chunks: SiteChunks,
        factors: Option<SlowFactors>,
        weight: Weight,
    ) -> Result<ProgramTimes> {
        if let Some(timed) = self.timed
            && let Some(made) =
                measured_runs(name, (self.profile, &chunks), timed, factors, weight)?
        {
            return Ok(ProgramTimes {
                runs: made.runs,
                chunks: match made.has_chunks {
                    true => chunks,
                    false => SiteChunks::whole_sites(),
                },
                source: SharingSource::Measured {
                    rounds: timed.rounds(),
                    measured_sites: made.timed_sites,
                    sites: made.sites,
                    unknown_sites: made.unknown_sites,
                },
            });
        }
        let factors = factors.context(
            "the tiers do not say how much slower the slow one is, so no run can be predicted; `isotherm tiers --measure` finds it, or \
             name emulated:cxl; `isotherm sensitivity -o PROFILE` measures the runs",
        )?;
        Ok(ProgramTimes {
            runs: predicted_runs(name, self.profile, &chunks, factors, weight)?,
            chunks,
            source: SharingSource::Predicted,
        })
    }
}
