//! `Floors` finds the processes that the [`SavingRule`](super::SavingRule) spares: their control group has at most its floor in memory.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::Process;
use isotherm_model::paged::PagedObservation;
use isotherm_model::sums::sums;
use isotherm_model::units::Bytes;

use crate::unit_step::{GroupLimit, entry_of};

/// Processes whose memory the budget may not page out.
pub(super) struct Floors(BTreeSet<Process>);

impl Floors {
    /// The processes of all groups that have a floor and no more than that in memory.
    pub(super) fn find(seen: &PagedObservation, groups: &BTreeMap<String, GroupLimit>) -> Self {
        let mut of_process = BTreeMap::new();
        for watched in &seen.seen.processes {
            if let Some((_, name)) = entry_of(groups, &watched.control_group) {
                of_process.insert(watched.process, name);
            }
        }
        let units = seen.units.iter();
        let named =
            units.filter_map(|held| Some((*of_process.get(&held.unit.process)?, held.present)));
        let present = sums(named);
        let is_low = |name: &str| {
            let floor = groups.get(name).map_or(Bytes::ZERO, |group| group.floor);
            present.get(name).is_some_and(|present| *present <= floor)
        };
        let low = of_process.iter().filter(|(_, name)| is_low(name));
        Self(low.map(|(process, _)| *process).collect())
    }

    /// True for a process whose memory stays.
    pub(super) fn keeps(&self, process: Process) -> bool {
        self.0.contains(&process)
    }
}
