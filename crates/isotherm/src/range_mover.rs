//! `RangeMover` moves ranges of a running program's data to the fast tier or to the slow ones, for an optimization: on the emulated pair
//! the runtime moves them on request, on memory nodes several threads of this process do, or a thread of the runtime (`--mover staged`),
//! and a dry run prints the moves. `NodeMover`, its part for memory nodes, serves online runs, too, and can take its moves back (`--undo`).

use std::path::PathBuf;

use isotherm_abi::config::Mover;
use isotherm_act::movement::in_program::InProgram;
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::page_requests::PageRequestWriter;
use isotherm_act::movement::parallel::{Parallel, processors_of};
use isotherm_act::movement::pieces::{PIECE, pieces};
use isotherm_act::movement::system::Kernel;
use isotherm_act::movement::undo::Undo;
use isotherm_console::Console;
use isotherm_model::movement::{NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, NO_ROOM, Reason, SHARED};
use isotherm_model::port::RangeExecutor;
use isotherm_model::stay::{StayReason, StayedRange};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::clock::MachineClock;
use isotherm_pipeline::ProcessRange;

use crate::cli::RunArgs;

/// How long a runtime may obey nothing until its requests count as refused: a program that waits in the kernel obeys none.
const PATIENCE: Nanos = Nanos(1_000_000_000);

/// Moves pages between nodes, and remembers their original nodes for `--undo`.
pub(crate) enum NodeMover {
    Plain(Box<dyn RangeExecutor>),
    Undoable(Undo<Box<dyn RangeExecutor>, Kernel>),
}

impl RangeExecutor for NodeMover {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        match self {
            Self::Plain(mover) => mover.carry_out(action),
            Self::Undoable(undo) => undo.carry_out(action),
        }
    }

    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        match self {
            Self::Plain(mover) => mover.execute(actions),
            Self::Undoable(undo) => undo.execute(actions),
        }
    }
}

impl NodeMover {
    /// The mover that the flags name; `by_kernel` moves what a thread of the runtime does not.
    pub(crate) fn new(
        args: &RunArgs,
        by_kernel: impl RangeExecutor + 'static,
        sessions: PathBuf,
        console: Console,
    ) -> Self {
        let mover: Box<dyn RangeExecutor> = match args.mover {
            Mover::Kernel => Box::new(by_kernel),
            Mover::Staged => {
                let say = move |why: &str| {
                    console.warn(&format!(
                        "--mover staged: the kernel moves the pages instead: {why}"
                    ));
                };
                Box::new(InProgram::new(sessions, by_kernel, MachineClock, say))
            }
        };
        match args.undo {
            true => Self::Undoable(Undo::new(mover, Kernel::default())),
            false => Self::Plain(mover),
        }
    }

    /// Moves pages back to their original nodes, in the living processes, and reports the result.
    pub(crate) fn undo(&mut self, console: Console) {
        let Self::Undoable(undo) = self else { return };
        let outcomes = undo.undo();
        if outcomes.is_empty() {
            return;
        }
        let bytes = |like: fn(&Fate) -> bool| -> Bytes {
            let each = outcomes.iter().map(|outcome| outcome.bytes_of(like));
            each.sum()
        };
        let back = bytes(|fate| matches!(fate, Fate::Moved));
        let stays = bytes(|fate| matches!(fate, Fate::Busy(_) | Fate::Denied(_)));
        console.info(&format!(
            "{back} moved back to where it was, {stays} could not be"
        ));
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct MovedRanges {
    pub moved: Vec<ProcessRange>,
    /// What stays, and why.
    pub stayed: Vec<StayedRange>,
}

impl MovedRanges {
    /// Adds parts of ranges that stay for a reason.
    pub(crate) fn stay(&mut self, parts: Vec<ProcessRange>, reason: StayReason) {
        let parts = parts.into_iter();
        self.stayed
            .extend(parts.map(|(process, range)| StayedRange {
                process,
                range,
                reason,
            }));
    }
}

pub(crate) enum RangeMover {
    Dry(Console),
    /// Pages of the emulated pair.
    Requests(PageRequestWriter),
    /// Pages of memory nodes.
    Nodes {
        mover: NodeMover,
        fast: Vec<NodeId>,
        slow: Vec<NodeId>,
    },
}

impl RangeMover {
    /// The mover for a program with these session files.
    pub(crate) fn new(args: &RunArgs, sessions: PathBuf, tiers: &Tiers, console: Console) -> Self {
        if args.dry_run {
            return Self::Dry(console);
        }
        if tiers.emulates() {
            return Self::Requests(PageRequestWriter::new(sessions));
        }
        let by_kernel = Parallel::new(|| Migration::new(Kernel::default()), processors_of);
        let (fast, slow) = tiers.all().split_at(1);
        Self::Nodes {
            mover: NodeMover::new(args, by_kernel, sessions, console),
            fast: fast.iter().flat_map(NodeId::of).collect(),
            slow: slow.iter().flat_map(NodeId::of).collect(),
        }
    }

    /// Moves ranges, and returns when that is done as far as it can be: with what moved, where the mover knows it.
    pub(crate) fn move_to(
        &mut self,
        ranges: &[ProcessRange],
        to_fast: bool,
    ) -> Option<MovedRanges> {
        match self {
            Self::Dry(console) => {
                say(ranges, to_fast, *console);
                Some(MovedRanges {
                    moved: ranges.to_vec(),
                    stayed: Vec::new(),
                })
            }
            Self::Requests(writer) => {
                request(writer, ranges, to_fast);
                None
            }
            Self::Nodes { mover, fast, slow } => {
                let nodes = if to_fast { fast } else { slow };
                Some(to_nodes(mover, ranges, nodes))
            }
        }
    }

    /// Takes the moves back, as [`NodeMover::undo`].
    pub(crate) fn undo(&mut self, console: Console) {
        if let Self::Nodes { mover, .. } = self {
            mover.undo(console);
        }
    }
}

/// Moves ranges to the first of these nodes that have room.
fn to_nodes(mover: &mut NodeMover, ranges: &[ProcessRange], nodes: &[NodeId]) -> MovedRanges {
    // Pages refused by a full node may fit on the tier's next one.
    let mut busy: Vec<(ProcessRange, StayReason)> = ranges
        .iter()
        .map(|range| (*range, StayReason::NoRoom))
        .collect();
    let mut result = MovedRanges::default();
    for node in nodes {
        let left: Vec<ProcessRange> = busy.drain(..).map(|(range, _)| range).collect();
        for outcome in mover.execute(&actions(&left, *node)) {
            for (range, fate) in outcome.ranges() {
                let range = (outcome.action.process, range);
                match stays(fate) {
                    Some(reason) if matches!(fate, Fate::Busy(_)) => {
                        busy.push((range, reason));
                    }
                    Some(reason) => result.stay(vec![range], reason),
                    None if *fate == Fate::Moved => result.moved.push(range),
                    None => {}
                }
            }
        }
    }
    for (range, reason) in busy {
        result.stay(vec![range], reason);
    }
    result
}

/// Why a page with this fate stays; `None` where it is on the node, or is to be there.
fn stays(fate: &Fate) -> Option<StayReason> {
    match fate {
        Fate::Moved | Fate::AlreadyThere | Fate::Requested => None,
        Fate::NotAttempted(Reason::DryRun) => None,
        Fate::Busy(why) if why == NO_ROOM => Some(StayReason::NoRoom),
        Fate::Busy(_) | Fate::NotAttempted(Reason::OutOfTime) => Some(StayReason::InUse),
        Fate::Denied(why) if why == SHARED => Some(StayReason::Shared),
        Fate::Denied(_) => Some(StayReason::Refused),
        // A process that has ended has no pages either.
        Fate::NotAttempted(Reason::NotTouched | Reason::Other(_)) => Some(StayReason::NotTouched),
    }
}

fn say(ranges: &[ProcessRange], to_fast: bool, console: Console) {
    let tier = if to_fast { "fast" } else { "slow" };
    for (process, range) in ranges {
        console.info(&format!(
            "would move {} at {:#x} of process {} to {tier} memory",
            range.bytes, range.start, process.pid
        ));
    }
}

/// Requests moves from the runtime, and waits for them; the tiers of the emulated machine are numbered as nodes.
fn request(writer: &mut PageRequestWriter, ranges: &[ProcessRange], to_fast: bool) {
    let mut processes: Vec<_> = ranges.iter().map(|(process, _)| *process).collect();
    processes.dedup();
    // The runtime's progress shows only when it has obeyed a request, so requests are small.
    let whole = actions(ranges, NodeId(u32::from(!to_fast)));
    let small = whole.into_iter().flat_map(|action| pieces(action, PIECE));
    let mut left: Vec<RangeAction> = small.collect();
    while !left.is_empty() {
        let outcomes = writer.execute(&left);
        writer.wait(&processes, &MachineClock, PATIENCE);
        let requested = |outcome: &&RangeOutcome| {
            let waits = |fate: &Fate| matches!(fate, Fate::Requested);
            outcome.bytes_of(waits) > Bytes::ZERO
        };
        // The ring took none: the runtime obeys no more, or the process has ended.
        if !outcomes.iter().any(|outcome| requested(&outcome)) {
            return;
        }
        let late = outcomes.iter().filter(|outcome| !requested(outcome));
        left = late.map(|outcome| outcome.action).collect();
    }
}

fn actions(ranges: &[ProcessRange], node: NodeId) -> Vec<RangeAction> {
    let action = |(process, range): &ProcessRange| RangeAction {
        process: *process,
        range: *range,
        node,
    };
    ranges.iter().map(action).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{NodeMover, ProcessRange, to_nodes};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, NO_ROOM, Reason, SHARED};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::stay::{StayReason, StayedBytes};
    use isotherm_model::units::Bytes;

    const PAGE: u64 = 4096;

    /// Gives the page at an address the fate that is written down for it; on node 1 there is room.
    struct Written(BTreeMap<u64, Fate>);

    impl RangeExecutor for Written {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            let mut outcome = RangeOutcome::begin(action);
            for page in (action.range.start..action.range.end()).step_by(PAGE as usize) {
                let fate = match &self.0[&page] {
                    Fate::Busy(why) if why == NO_ROOM && action.node == NodeId(1) => Fate::Moved,
                    fate => fate.clone(),
                };
                outcome.push(Bytes(PAGE), fate);
            }
            outcome
        }
    }

    #[test]
    fn each_page_moves_or_stays_for_one_reason() {
        let fates = [
            Fate::Moved,
            Fate::AlreadyThere,
            Fate::Busy(NO_ROOM.into()),
            Fate::Busy("in use".into()),
            Fate::Denied(SHARED.into()),
            Fate::Denied("the node is not there".into()),
            Fate::NotAttempted(Reason::NotTouched),
            Fate::NotAttempted("the process has ended".into()),
        ];
        let process = Process { pid: 7, image: 0 };
        let range = AddressRange {
            start: PAGE,
            bytes: Bytes(fates.len() as u64 * PAGE),
        };
        let ranges: [ProcessRange; 1] = [(process, range)];
        let pages = (1..).map(|page| page * PAGE);
        let written: BTreeMap<u64, Fate> = pages.zip(fates).collect();
        let to = |nodes: &[NodeId]| {
            let mut mover = NodeMover::Plain(Box::new(Written(written.clone())));
            to_nodes(&mut mover, &ranges, nodes)
        };
        let stayed = |nodes: &[NodeId]| {
            let stayed: StayedBytes = to(nodes).stayed.iter().collect();
            StayReason::ALL.map(|reason| stayed.of(reason).0 / PAGE)
        };
        let moved = |nodes: &[NodeId]| -> Vec<u64> {
            let moved = to(nodes).moved.into_iter();
            moved.map(|(_, range)| range.start / PAGE).collect()
        };
        assert_eq!(moved(&[NodeId(0)]), [1]);
        assert_eq!(stayed(&[NodeId(0)]), [0, 0, 2, 0, 1, 1, 1, 1]);
        // The next node of the tier has room.
        let both = [NodeId(0), NodeId(1)];
        assert_eq!(
            moved(&both),
            [1, 3],
            "the first, and the one that had no room"
        );
        assert_eq!(stayed(&both), [0, 0, 2, 0, 0, 1, 1, 1]);
        // A tier without nodes has none.
        assert_eq!(stayed(&[])[StayReason::NoRoom as usize], 8);
    }
}
