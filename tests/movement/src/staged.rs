//! [`Staged`] is the executor of staged copies: it moves memory of this process.

use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_sys::staged::{StagedCopy, UnitFate};

use crate::fork_lock::ForkLock;

/// Moves ranges of this process by [`StagedCopy`].
pub struct Staged<'a> {
    mover: StagedCopy,
    lock: &'a ForkLock,
}

impl<'a> Staged<'a> {
    /// An executor with this mover; a thread that forks must hold `lock`.
    ///
    /// # Safety
    /// Every range that is moved is as [`StagedCopy::move_range`] requires.
    #[must_use]
    pub const unsafe fn new(mover: StagedCopy, lock: &'a ForkLock) -> Self {
        Self { mover, lock }
    }
}

impl RangeExecutor for Staged<'_> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let range = action.range.start as usize..action.range.end() as usize;
        let mut outcome = RangeOutcome::begin(action);
        // SAFETY: the promise of the caller of `new`.
        unsafe {
            self.mover
                .move_range(range, action.node.0, self.lock, |part, fate| {
                    outcome.push(Bytes(part.len() as u64), fate_of(fate));
                });
        }
        outcome
    }
}

fn fate_of(fate: UnitFate) -> Fate {
    match fate {
        UnitFate::Moved(_) => Fate::Moved,
        UnitFate::AlreadyThere => Fate::AlreadyThere,
        UnitFate::Busy(why) => Fate::Busy(why.into()),
        UnitFate::Denied(why) => Fate::Denied(why.into()),
        UnitFate::NotTouched => Fate::NotAttempted(Reason::NotTouched),
        UnitFate::NotAttempted(why) => Fate::NotAttempted(why.into()),
    }
}
