//! The source of accessed bits that was asked for, where it can be had. What it does not see is looked at
//! by mappings.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::watch::AccessReport;

use super::damon::{Damon, PhysicalDamon};
use super::page_idle::PageIdle;
use super::scan_context::ScanContext;

/// Where accessed bits come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessedBitSource {
    /// From DAMON where it can be had, else by mappings where no sample is usable: a mapping tells little
    /// beside samples, and its pages cost the program more than those do.
    #[default]
    Auto,
    /// From DAMON.
    Damon,
    /// From DAMON by frame where it can be had, else by mappings.
    DamonPhysical,
    /// By mappings: `clear_refs` and `smaps`.
    Mappings,
    /// From the bitmap of idle pages where it can be had, else by mappings.
    PageIdle,
    /// From nowhere.
    Off,
}

/// One that knows more than mappings.
#[derive(Debug)]
pub(super) enum BitSource {
    /// Regions of the biggest processes.
    Damon(Damon),
    /// Regions of all memory.
    Physical(PhysicalDamon),
    /// Single pages.
    Idle(PageIdle),
}

impl BitSource {
    /// The source behind a setting, below this root; None where mappings or nothing was asked for.
    ///
    /// # Errors
    /// In words, with what would help.
    pub(super) fn open(
        bits: AccessedBitSource,
        root: &Path,
        state: Option<&Path>,
        budget_ppm: u64,
    ) -> Result<Option<Self>, String> {
        Ok(match bits {
            AccessedBitSource::Auto | AccessedBitSource::Damon => {
                Some(Self::Damon(Damon::open(root, state, budget_ppm)?))
            }
            AccessedBitSource::DamonPhysical => {
                let damon = PhysicalDamon::open(root, state, budget_ppm)?;
                Some(Self::Physical(damon))
            }
            AccessedBitSource::PageIdle => Some(Self::Idle(PageIdle::open(root, budget_ppm)?)),
            AccessedBitSource::Mappings | AccessedBitSource::Off => None,
        })
    }

    /// What it did so far.
    pub(super) const fn report(&self) -> &SourceReport {
        match self {
            Self::Damon(source) => source.report(),
            Self::Physical(source) => source.report(),
            Self::Idle(source) => source.report(),
        }
    }

    /// Changes its budget.
    pub(super) const fn set_budget(&mut self, budget_ppm: u64) {
        match self {
            Self::Damon(source) => source.set_budget(budget_ppm),
            Self::Physical(source) => source.set_budget(budget_ppm),
            Self::Idle(source) => source.set_budget(budget_ppm),
        }
    }

    /// Watches these processes, the biggest first, as far as it has to be told of them.
    pub(super) fn watch(&mut self, by_size: &[Process]) {
        if let Self::Damon(source) = self {
            source.watch(by_size);
        }
    }

    /// Begins what takes longer than the step may wait.
    pub(super) fn prepare(&mut self) {
        match self {
            Self::Damon(source) => source.prepare(),
            Self::Physical(source) => source.prepare(),
            // Its window is open for 50 ms at most.
            Self::Idle(_) => {}
        }
    }

    /// True where it sees a process.
    pub(super) fn sees(&self) -> impl Fn(&Process) -> bool + use<> {
        let some: Option<BTreeSet<Process>> = match self {
            Self::Damon(source) => Some(source.watched().collect()),
            Self::Physical(_) | Self::Idle(_) => None,
        };
        move |process| some.as_ref().is_none_or(|some| some.contains(process))
    }

    /// Adds what was accessed since the last call.
    pub(super) fn look(&mut self, look: &ScanContext<'_>, sightings: &mut Vec<AccessReport>) {
        match self {
            Self::Damon(source) => source.look(look, sightings),
            Self::Physical(source) => source.look(look, sightings),
            Self::Idle(source) => source.look(look, sightings),
        }
    }
}
