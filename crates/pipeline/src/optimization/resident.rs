//! Groups the resident pages of each process by tier, for an optimization.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::spans;
use isotherm_model::watch::ResidentRun;

/// The resident pages of each process by tier.
pub(super) struct ResidentByTier(BTreeMap<Process, [Vec<Range<u64>>; 2]>);

impl ResidentByTier {
    pub(super) fn of(resident: &BTreeMap<Process, Vec<ResidentRun>>) -> Self {
        let of_tier = |runs: &[ResidentRun], is_fast: bool| {
            let runs = runs.iter().filter(|run| run.is_fast == is_fast);
            spans::joined(runs.map(|run| run.range.start..run.range.end()).collect())
        };
        let of_process = |(process, runs): (&Process, &Vec<ResidentRun>)| {
            (*process, [of_tier(runs, false), of_tier(runs, true)])
        };
        Self(resident.iter().map(of_process).collect())
    }

    pub(super) fn slow_of(&self, process: Process) -> &[Range<u64>] {
        self.0.get(&process).map_or(&[], |[slow, _]| slow)
    }

    pub(super) fn fast_of(&self, process: Process) -> &[Range<u64>] {
        self.0.get(&process).map_or(&[], |[_, fast]| fast)
    }

    pub(super) fn fast(&self) -> impl Iterator<Item = (Process, &[Range<u64>])> {
        self.0
            .iter()
            .map(|(process, [_, fast])| (*process, fast.as_slice()))
    }
}
