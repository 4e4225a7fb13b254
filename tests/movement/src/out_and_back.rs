//! Pages ranges of this process out to swap and back, in turn.

use isotherm_act::movement::page_out::PageOut;
use isotherm_act::movement::system::Kernel;
use isotherm_model::batch::Process;
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::paged::{IN_MEMORY, PAGED_OUT};
use isotherm_model::port::RangeExecutor;

/// Number of swap areas of this machine.
pub(crate) fn swap_areas() -> usize {
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    // The first line names the columns.
    swaps.lines().skip(1).count()
}

/// Pages two of three ranges out and the third back in, because writers bring their pages back themselves.
pub(crate) struct OutAndBack {
    inner: PageOut<Kernel>,
    turn: u32,
}

impl Default for OutAndBack {
    fn default() -> Self {
        Self {
            inner: PageOut::new(Kernel::default()),
            turn: 0,
        }
    }
}

impl RangeExecutor for OutAndBack {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        self.turn = self.turn.wrapping_add(1);
        let process = Process {
            pid: std::process::id(),
            ..action.process
        };
        let node = match self.turn % 3 {
            0 => IN_MEMORY,
            _ => PAGED_OUT,
        };
        self.inner.carry_out(RangeAction {
            process,
            node,
            ..action
        })
    }
}
