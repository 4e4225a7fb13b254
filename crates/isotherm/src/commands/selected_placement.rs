//! `SelectedPlacement` is a plan with chosen sites fast and all others slow, for the runs by which `isotherm record --isolate` and
//! `isotherm sensitivity` measure single sites; it also tells whether a run allocated a site.

use std::path::Path;

use isotherm_act::configuration::Configuration;
use isotherm_model::plan::Weight;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

use super::plan::of_selected;
use super::run::covered;
use crate::fit::{self, Fitted};
use crate::launch::EndedProgram;
use crate::session_summary::recorded_sites;
use crate::static_data::StaticPlacement;

/// A plan of a profile's sites in the build that is to run.
pub(super) struct SelectedPlacement {
    pub fitted: Fitted,
}

impl SelectedPlacement {
    /// Selected sites are fast and all others slow; data that the plan does not name goes to the default tier. `name` names the selection.
    pub(super) fn new(
        profile: &Profile,
        (tiers, default_tier): (&Tiers, TierIndex),
        name: &str,
        program: &Path,
        is_fast: impl Fn(SiteId) -> bool,
    ) -> Self {
        let plan = of_selected(profile, (tiers, Weight::PeakRss), name, is_fast);
        let mut fitted = fit::fitted(&plan, program);
        fitted.plan.default_tier = default_tier;
        Self { fitted }
    }

    /// The runtime's configuration. `cache` is the size of the caches on machines emulated by time, where it is given.
    pub(super) fn configuration(&self, program: &Path, cache: Option<Bytes>) -> Configuration {
        StaticPlacement::Plan.guided(&self.fitted.plan, program, cache)
    }

    /// Whether a run made data of a site: without it, it measured nothing of the site.
    pub(super) fn was_made(&self, site: SiteId, ended: &EndedProgram) -> bool {
        let is_made = || {
            let made = covered(&self.fitted, &recorded_sites(&ended.session));
            made.matched.contains(&site)
        };
        site == SiteId::SHARED || is_made()
    }

    /// The command that the profile was recorded of.
    pub(super) fn recorded_command(&self) -> String {
        self.fitted.original.command.join(" ")
    }
}
