//! Staged copy as an executor: moves memory of this process that its owner has declared movable.

use std::process;

use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome, RangeRequest};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_sys::staged::{ForkLock, Movable, StagedCopy, UnitFate};

use super::system::SystemCall;

/// Moves declared ranges by [`StagedCopy`]; all others are denied, and kernel migration can move
/// them.
pub struct Staged<'a> {
    mover: StagedCopy,
    declared: Vec<Movable>,
    gate: &'a ForkLock,
}

impl<'a> Staged<'a> {
    /// A thread that forks holds `gate`.
    #[must_use]
    pub const fn new(mover: StagedCopy, declared: Vec<Movable>, gate: &'a ForkLock) -> Self {
        Self {
            mover,
            declared,
            gate,
        }
    }

    /// The copier, to fill its pool or to query its method.
    pub const fn mover(&mut self) -> &mut StagedCopy {
        &mut self.mover
    }

    fn carry_out(&mut self, action: &RangeAction) -> RangeOutcome {
        let (range, node) = match checked(action, &self.declared) {
            Ok(checked) => checked,
            Err(why) => return RangeOutcome::whole(action.clone(), Fate::Denied(why.to_owned())),
        };
        let mut outcome = RangeOutcome::begin(action.clone());
        self.mover
            .move_declared(&range, node.0, self.gate, |part, fate| {
                outcome.push(Bytes(part.len() as u64), fate_of(fate));
            });
        outcome
    }
}

impl RangeExecutor for Staged<'_> {
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        actions
            .iter()
            .map(|action| self.carry_out(action))
            .collect()
    }
}

/// A dry run of [`Staged`]: prints the copies.
pub struct DryStaged<F> {
    declared: Vec<AddressRange>,
    say: F,
}

impl<F: FnMut(&SystemCall)> DryStaged<F> {
    /// `say` receives every copy that would have been made, in order.
    pub const fn new(declared: Vec<AddressRange>, say: F) -> Self {
        Self { declared, say }
    }
}

impl<F: FnMut(&SystemCall)> RangeExecutor for DryStaged<F> {
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let mut outcome = |action: &RangeAction| {
            let within = |range: &&AddressRange| holds(**range, action.range);
            let fate = match (&action.request, self.declared.iter().find(within)) {
                (RangeRequest::Move(node), Some(_)) => {
                    (self.say)(&SystemCall::StagedCopy(action.range, *node));
                    Fate::NotAttempted(Reason::DryRun)
                }
                (RangeRequest::Move(_), None) => Fate::Denied(UNDECLARED.to_owned()),
                (RangeRequest::Place(_), _) => Fate::Denied(PLACES.to_owned()),
            };
            RangeOutcome::whole(action.clone(), fate)
        };
        actions.iter().map(&mut outcome).collect()
    }
}

const PLACES: &str = "a staged copy places nothing; placement does";
const UNDECLARED: &str = "not declared movable by the program; kernel migration can move it";
const FOREIGN: &str = "a staged copy moves memory of its own process only; kernel migration can \
                       move another's";

/// The declared range that contains the action's range, cut to it.
fn checked(action: &RangeAction, declared: &[Movable]) -> Result<(Movable, NodeId), &'static str> {
    let RangeRequest::Move(node) = action.request else {
        return Err(PLACES);
    };
    if action.process.pid != 0 && action.process.pid != process::id() {
        return Err(FOREIGN);
    }
    let (start, end) = (action.range.start as usize, action.range.end() as usize);
    let cut = declared.iter().find_map(|movable| movable.part(start..end));
    cut.map(|range| (range, node)).ok_or(UNDECLARED)
}

fn holds(outer: AddressRange, inner: AddressRange) -> bool {
    outer.start <= inner.start && inner.end() <= outer.end()
}

fn fate_of(fate: UnitFate) -> Fate {
    match fate {
        UnitFate::Moved(_) => Fate::Moved,
        UnitFate::AlreadyThere => Fate::AlreadyThere,
        UnitFate::Busy(why) => Fate::Busy(why.to_owned()),
        UnitFate::Denied(why) => Fate::Denied(why.to_owned()),
        UnitFate::NotTouched => Fate::NotAttempted(Reason::NotTouched),
        UnitFate::NotAttempted(why) => Fate::NotAttempted(why.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{DryStaged, Staged};
    use crate::movement::system::SystemCall;
    use crate::movement::test_machine::action;
    use isotherm_model::movement::NodeId;
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;
    use isotherm_sys::staged::{ForkLock, StagedCopy, StagedSettings};

    #[test]
    fn memory_that_nobody_declared_is_denied() {
        let gate = ForkLock::new();
        let mover = match StagedCopy::open(StagedSettings::DEFAULT) {
            Ok(mover) => mover,
            Err(error) => return isotherm_skip::skip!("{error}"),
        };
        let mut staged = Staged::new(mover, Vec::new(), &gate);
        let own = std::process::id();
        let actions = [
            action(own, 0, 512, NodeId(0)),
            action(own + 1, 0, 512, NodeId(0)),
        ];
        for outcome in staged.execute(&actions) {
            assert!(matches!(&outcome.parts[0].fate, Fate::Denied(why) if why.len() > 20));
        }
    }

    #[test]
    fn a_dry_run_says_what_would_be_copied() {
        let mut calls = Vec::new();
        let wanted = action(0, 512, 512, NodeId(1));
        let mut dry = DryStaged::new(vec![wanted.range], |call: &SystemCall| {
            calls.push(call.to_string());
        });
        let outcomes = dry.execute(&[wanted, action(0, 0, 512, NodeId(1))]);
        assert_eq!(
            outcomes[0].parts[0].fate,
            Fate::NotAttempted(Reason::DryRun)
        );
        assert!(matches!(outcomes[1].parts[0].fate, Fate::Denied(_)));
        assert_eq!(calls, ["staged copy(0x40200000, 2097152, node 1)"]);
    }
}
