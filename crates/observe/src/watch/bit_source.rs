//! The configured source of accessed bits, where the machine has it, for the watcher. The processes that
//! it does not cover are read by mappings.

use std::collections::BTreeSet;
use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::watch::AccessReport;

use super::damon::{Damon, PhysicalDamon};
use super::page_idle::PageIdle;
use super::scan_context::ScanContext;

/// The configured source of accessed bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessedBitSource {
    /// DAMON where available, else mappings if no sample is usable: a mapping adds little to samples, and
    /// its pages cost the program more than those do.
    #[default]
    Auto,
    /// DAMON.
    Damon,
    /// DAMON by frame where available, else mappings.
    DamonPhysical,
    /// Mappings: `clear_refs` and `smaps`.
    Mappings,
    /// The bitmap of idle pages where available, else mappings.
    PageIdle,
    /// No accessed bits.
    Off,
}

/// A source finer than mappings.
#[derive(Debug)]
pub(super) enum BitSource {
    /// Regions of the largest processes.
    Damon(Damon),
    /// Regions of all memory.
    Physical(PhysicalDamon),
    /// Single pages.
    Idle(PageIdle),
}

impl BitSource {
    /// Opens the source of a setting, below this root; None where the setting is mappings or off.
    ///
    /// # Errors
    /// A message with the reason and the remedy.
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

    /// The report of this source so far.
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

    /// Watches these processes, sorted by size with the largest first, if the source watches single
    /// processes.
    pub(super) fn watch(&mut self, by_size: &[Process]) {
        if let Self::Damon(source) = self {
            source.watch(by_size);
        }
    }

    /// Starts the work that takes longer than the step may wait.
    pub(super) fn prepare(&mut self) {
        match self {
            Self::Damon(source) => source.prepare(),
            Self::Physical(source) => source.prepare(),
            // Its window is 50 ms at most.
            Self::Idle(_) => {}
        }
    }

    /// True where the source covers a process.
    pub(super) fn sees(&self) -> impl Fn(&Process) -> bool + use<> {
        let some: Option<BTreeSet<Process>> = match self {
            Self::Damon(source) => Some(source.watched().collect()),
            Self::Physical(_) | Self::Idle(_) => None,
        };
        move |process| some.as_ref().is_none_or(|some| some.contains(process))
    }

    /// Adds the accesses since the last call.
    pub(super) fn look(&mut self, look: &ScanContext<'_>, sightings: &mut Vec<AccessReport>) {
        match self {
            Self::Damon(source) => source.look(look, sightings),
            Self::Physical(source) => source.look(look, sightings),
            Self::Idle(source) => source.look(look, sightings),
        }
    }
}
