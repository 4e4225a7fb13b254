//! [`DryRun`] is the executor of a dry run and of a replay: it makes no move, and reports the moves that would be made, summed by process
//! and direction or, with `--verbose`, one by one.
//!
//! ```text
//! would: move 32 MiB in 14 ranges of process 7700 to fast memory      a line for each process and direction
//! would: move 2MiB at 0x55a457000000 of process 7700 to fast memory   with --verbose: imagined tiers
//! would: move_pages(7700, 512 pages in 0x55..-0x55.., node 0, ..)     with --verbose: the nodes of a machine
//! ```

use std::collections::BTreeMap;
use std::fmt;

use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::{DrySystem, Kernel};
use isotherm_model::movement::{NodeId, Part, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_report::words::counted;

/// The tiers that the moves would be between.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target<'a> {
    /// Imagined tiers, of which this node is the fast one; the kernel does not have it.
    Imagined(NodeId),
    /// The nodes of this machine, of which these are fast.
    Machine(&'a [NodeId]),
}

impl Target<'_> {
    fn tier(self, node: NodeId) -> &'static str {
        let is_fast = match self {
            Self::Imagined(fast) => node == fast,
            Self::Machine(fast) => fast.contains(&node),
        };
        if is_fast { "fast" } else { "slow" }
    }
}

/// Records the moves of an epoch without making them.
#[derive(Debug)]
pub(crate) struct DryRun<'a> {
    target: Target<'a>,
    /// Each single move; none without `--verbose`.
    calls: Option<Vec<String>>,
    /// Number and bytes of the ranges, by process and tier.
    sums: BTreeMap<(u32, &'static str), (u64, Bytes)>,
}

impl<'a> DryRun<'a> {
    pub(crate) fn new(target: Target<'a>, verbose: bool) -> Self {
        Self {
            target,
            calls: verbose.then(Vec::new),
            sums: BTreeMap::new(),
        }
    }

    /// A line for each process and direction, or with `--verbose` for each move.
    pub(crate) fn lines(&self) -> String {
        let sum = |(&(pid, tier), &(ranges, bytes)): (&(u32, &str), &(u64, Bytes))| {
            let ranges = counted(ranges, "range");
            format!("move {bytes} in {ranges} of process {pid} to {tier} memory")
        };
        let lines = match &self.calls {
            Some(calls) => calls.clone(),
            None => self.sums.iter().map(sum).collect(),
        };
        lines
            .iter()
            .map(|line| format!("would: {line}\n"))
            .collect()
    }

    /// Counts the bytes that the action would move: no pages that are there already or not touched, and none of an ended process.
    fn sum(&mut self, action: RangeAction, outcome: &RangeOutcome) {
        let would = |part: &&Part| part.fate == Fate::NotAttempted(Reason::DryRun);
        let moved: Bytes = outcome
            .parts
            .iter()
            .filter(would)
            .map(|part| part.bytes)
            .sum();
        if moved > Bytes::ZERO {
            let key = (action.process.pid, self.target.tier(action.node));
            let (ranges, bytes) = self.sums.entry(key).or_default();
            *ranges += 1;
            *bytes += moved;
        }
    }

    fn imagine(&mut self, action: RangeAction) -> RangeOutcome {
        let (range, pid, tier) = (
            action.range,
            action.process.pid,
            self.target.tier(action.node),
        );
        if let Some(calls) = &mut self.calls {
            let (bytes, start) = (range.bytes.exact(), range.start);
            calls.push(format!(
                "move {bytes} at {start:#x} of process {pid} to {tier} memory"
            ));
        }
        RangeOutcome::whole(action, Fate::NotAttempted(Reason::DryRun))
    }
}

impl RangeExecutor for DryRun<'_> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let outcome = match self.target {
            Target::Imagined(_) => self.imagine(action),
            Target::Machine(_) => {
                let say = |call: fmt::Arguments<'_>| {
                    self.calls
                        .iter_mut()
                        .for_each(|calls| calls.push(call.to_string()))
                };
                Migration::new(DrySystem::new(Kernel::default(), say))
                    .splitting()
                    .carry_out(action)
            }
        };
        self.sum(action, &outcome);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::{DryRun, Target};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;

    fn moved(pid: u32, start: u64, node: u32) -> RangeAction {
        RangeAction {
            process: Process { pid, image: 0 },
            range: AddressRange {
                start,
                bytes: Bytes(2 << 20),
            },
            node: NodeId(node),
        }
    }

    #[test]
    fn a_line_sums_the_moves_of_a_process_in_one_direction_and_verbose_ones_are_all_there() {
        let actions = [
            moved(7, 0, 0),
            moved(7, 8 << 20, 0),
            moved(7, 2 << 20, 1),
            moved(9, 0, 0),
        ];
        let lines = |verbose| {
            let mut dry_run = DryRun::new(Target::Imagined(NodeId(0)), verbose);
            let outcomes = dry_run.execute(&actions);
            assert_eq!(outcomes.len(), actions.len());
            dry_run.lines()
        };
        assert_eq!(
            lines(false),
            "would: move 4 MiB in 2 ranges of process 7 to fast memory\n\
             would: move 2 MiB in 1 range of process 7 to slow memory\n\
             would: move 2 MiB in 1 range of process 9 to fast memory\n"
        );
        let verbose = lines(true);
        assert_eq!(verbose.lines().count(), actions.len());
        assert!(
            verbose.starts_with("would: move 2MiB at 0x0 of process 7 to fast memory\n"),
            "{verbose}"
        );
    }
}
