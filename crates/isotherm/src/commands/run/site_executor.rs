//! `SiteExecutor` carries out the actions of an online run: a dry run makes none, the runtime makes them on the emulated pair, and this
//! process or the runtime between memory nodes, where `--undo` takes them back.

use isotherm_abi::config::Mover;
use isotherm_act::dry_run::DryRun;
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::Kernel;
use isotherm_act::placement_requests::PlacementRequestWriter;
use isotherm_act::site_moves::SiteMoves;
use isotherm_model::batch::Extent;
use isotherm_model::outcome::{Action, Outcome};
use isotherm_model::port::Executor;
use isotherm_model::tier::Tiers;
use isotherm_model::units::Nanos;
use isotherm_observe::clock::MachineClock;

use crate::cli::RunArgs;
use crate::launch::Ready;
use crate::range_mover::NodeMover;
use isotherm_console::Console;

/// One executor for each kind of memory.
pub(super) enum SiteExecutor {
    Dry(DryRun),
    /// On the emulated pair the runtime moves data.
    Requests(PlacementRequestWriter),
    /// On memory nodes this process moves data, or the runtime at its request.
    Nodes(Box<SiteMoves<NodeMover, MachineClock>>),
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
    /// The executor for a program that is held before its start.
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
        let by_kernel = Migration::new(Kernel::default());
        let mover = NodeMover::new(args, by_kernel, sessions.clone(), console);
        // Half of each epoch: the other half is for the program, whose pages are not locked then.
        let time = Nanos(args.observing.epoch.0 / 2);
        let placement = PlacementRequestWriter::placing(sessions);
        Self::Nodes(Box::new(SiteMoves::new(
            placement,
            mover,
            MachineClock,
            time,
            tiers,
        )))
    }

    /// Moves pages back to their original nodes, in the living processes, and reports the result.
    pub(super) fn undo(&mut self, console: Console) {
        if let Self::Nodes(nodes) = self {
            nodes.mover.undo(console);
        }
    }
}
