//! The executors of an online run's actions.

use isotherm_abi::config::Mover;
use isotherm_act::dry_run::DryRun;
use isotherm_act::movement::in_program::InProgram;
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::Kernel;
use isotherm_act::movement::undo::Undo;
use isotherm_act::placement_requests::PlacementRequestWriter;
use isotherm_act::site_moves::SiteMoves;
use isotherm_model::batch::Extent;
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::port::{Executor, RangeExecutor};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::clock::MachineClock;

use crate::cli::RunArgs;
use crate::launch::Ready;
use isotherm_console::Console;

/// One executor for each kind of memory.
pub(super) enum SiteExecutor {
    Dry(DryRun),
    /// On the emulated pair the runtime moves data.
    Requests(PlacementRequestWriter),
    /// On real nodes we do, or the runtime at our request.
    Nodes(Box<SiteMoves<NodeMover, MachineClock>>),
}

/// Moves pages between nodes, and remembers their original nodes for `--undo`.
pub(super) enum NodeMover {
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
}

impl Executor for SiteExecutor {
    fn execute(&mut self, actions: &[Action], extents: &[Extent]) -> Vec<Outcome> {
        match self {
            Self::Dry(dry) => Executor::execute(dry, actions, extents),
            Self::Requests(requests) => requests.execute(actions, extents),
            Self::Nodes(nodes) => nodes.execute(actions, extents),
        }
    }
}

impl SiteExecutor {
    /// For a program that is held before its start.
    pub(super) fn new(args: &RunArgs, ready: &Ready, tiers: &Tiers, console: Console) -> Self {
        let sessions = ready.session.path().to_owned();
        if args.dry_run {
            return Self::Dry(DryRun);
        }
        if tiers.emulates() {
            if args.mover == Mover::Staged || args.undo {
                console.warn(
                    "--mover and --undo are for memory nodes; the emulated pair has its own \
                     mover, which ends with the program",
                );
            }
            return Self::Requests(PlacementRequestWriter::new(sessions));
        }
        let clock = MachineClock;
        let by_kernel = Migration::new(Kernel::default());
        let mover: Box<dyn RangeExecutor> = match args.mover {
            Mover::Kernel => Box::new(by_kernel),
            Mover::Staged => {
                let say = move |why: &str| {
                    console.warn(&format!(
                        "--mover staged: the kernel moves the pages instead: {why}"
                    ));
                };
                Box::new(InProgram::new(sessions.clone(), by_kernel, clock, say))
            }
        };
        let mover = match args.undo {
            true => NodeMover::Undoable(Undo::new(mover, Kernel::default())),
            false => NodeMover::Plain(mover),
        };
        // Half of each epoch: the other half is for the program, whose pages are not locked then.
        let time = Nanos(args.observing.epoch.0 / 2);
        let placement = PlacementRequestWriter::placing(sessions);
        Self::Nodes(Box::new(SiteMoves::new(
            placement, mover, clock, time, tiers,
        )))
    }

    /// Moves pages back to their original nodes, in the living processes, and reports the result.
    pub(super) fn undo(&mut self, console: Console) {
        let Self::Nodes(nodes) = self else { return };
        let NodeMover::Undoable(undo) = &mut nodes.mover else {
            return;
        };
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
