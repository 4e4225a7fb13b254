//! [`Limit`] slows an executor down for the sake of the running program: to a number of bytes moved a second, and of milliseconds of every
//! second ([`Allowance`]). Bytes that the executor only requested do not count. After the deadline of [`Limit::within`] it begins nothing
//! more: the rest is reported as not attempted.
//!
//! ```text
//! ranges    [.......]  [..]  [..]  [.....................]
//! slices    [.......    ..    ..]  [........] [.......] [....]      the inner executor has a slice at a time
//! ```

use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::{Clock, RangeExecutor};
use isotherm_model::units::{Bytes, Nanos, portion};

use super::pieces::in_pieces;

const SECOND: u64 = 1_000_000_000;
/// The smallest slice: one unit of a staged copy, one huge page.
const LEAST: u64 = 2 << 20;
/// The largest slice: the fastest method moves this much in some 10 ms.
const MOST: u64 = 64 << 20;

/// The limits for every second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes moved a second; at least 1.
    pub bytes_a_second: Bytes,
    /// Time spent moving in a second, up to a whole one.
    pub time_a_second: Nanos,
}

impl Allowance {
    /// No limit: as fast as the executor moves.
    pub const UNLIMITED: Self = Self {
        bytes_a_second: Bytes(u64::MAX),
        time_a_second: Nanos(SECOND),
    };
}

/// Cuts ranges into slices and pauses between them.
#[derive(Debug)]
pub struct Limit<E, C> {
    inner: E,
    clock: C,
    allowance: Allowance,
    /// The time at which the next slice may begin.
    next: Nanos,
    /// The time after which no slice may begin.
    deadline: Nanos,
}

impl<E: RangeExecutor, C: Clock> Limit<E, C> {
    /// Limits `inner` to this allowance.
    pub const fn new(inner: E, clock: C, allowance: Allowance) -> Self {
        Self {
            inner,
            clock,
            allowance,
            next: Nanos::ZERO,
            deadline: Nanos(u64::MAX),
        }
    }

    /// Starts no slice later than `span` from now. The rest is [`Reason::OutOfTime`].
    #[must_use]
    pub fn within(mut self, span: Nanos) -> Self {
        self.deadline = self.clock.now().saturating_add(span);
        self
    }

    /// A fiftieth of the bytes of a second: pauses of 20 ms instead of one long one.
    fn slice_bytes(&self) -> u64 {
        let slice = self.allowance.bytes_a_second.0 / 50;
        (slice / LEAST * LEAST).clamp(LEAST, MOST)
    }

    /// Executes one slice when its time has come, and records its cost.
    fn slice(&mut self, pieces: &[RangeAction]) -> Vec<RangeOutcome> {
        let begin = self.clock.now().max(self.next);
        if begin >= self.deadline {
            let late = |piece: &RangeAction| {
                RangeOutcome::whole(*piece, Fate::NotAttempted(Reason::OutOfTime))
            };
            return pieces.iter().map(late).collect();
        }
        let wait = begin.saturating_sub(self.clock.now());
        if wait > Nanos::ZERO {
            self.clock.sleep(wait);
        }
        let begun = self.clock.now();
        let outcomes = self.inner.execute(pieces);
        let took = self.clock.now().saturating_sub(begun);
        let moved = outcomes
            .iter()
            .map(|outcome| outcome.bytes_of(|fate| *fate == Fate::Moved))
            .sum();
        self.next = begun.saturating_add(self.cost(moved, took));
        outcomes
    }

    /// The time that a slice costs: the longer of its times by both limits.
    fn cost(&self, moved: Bytes, took: Nanos) -> Nanos {
        let share = |amount, a_second| Nanos(portion(amount, SECOND, a_second));
        let by_bytes = share(moved.0, self.allowance.bytes_a_second.0);
        by_bytes.max(share(took.0, self.allowance.time_a_second.0))
    }
}

impl<E: RangeExecutor, C: Clock> RangeExecutor for Limit<E, C> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let mut outcomes = self.execute(&[action]);
        outcomes
            .pop()
            .unwrap_or_else(|| RangeOutcome::begin(action))
    }

    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let slice = self.slice_bytes();
        in_pieces(actions, slice, |mut pieces| {
            let mut outcomes = Vec::with_capacity(pieces.len());
            while !pieces.is_empty() {
                let mut bytes = 0;
                let fits = pieces.iter().take_while(|piece| {
                    bytes += piece.range.bytes.0;
                    bytes <= slice
                });
                let (now, later) = pieces.split_at(fits.count().max(1));
                outcomes.extend(self.slice(now));
                pieces = later;
            }
            outcomes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowance, Limit};
    use crate::movement::test_machine::action;
    use isotherm_model::movement::{NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::{Clock, RangeExecutor};
    use isotherm_model::units::{Bytes, Nanos};
    use std::cell::Cell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Hands(Rc<Cell<u64>>);

    impl Clock for Hands {
        fn now(&self) -> Nanos {
            Nanos(self.0.get())
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, time: Nanos) {
            self.0.set(self.0.get() + time.0);
        }
    }

    /// Moves everything, a millisecond a MiB.
    struct Mover(Hands);

    impl RangeExecutor for Mover {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            let took = (action.range.bytes.0 >> 20) * 1_000_000;
            self.0.0.set(self.0.0.get() + took);
            RangeOutcome::whole(action, Fate::Moved)
        }
    }

    /// Seconds that 1 GiB takes.
    fn seconds(bytes_a_second: u64, time_a_second: u64) -> f64 {
        let hands = Hands::default();
        let allowance = Allowance {
            bytes_a_second: Bytes(bytes_a_second),
            time_a_second: Nanos(time_a_second),
        };
        let mut limit = Limit::new(Mover(hands.clone()), hands.clone(), allowance);
        let outcomes = limit.execute(&[action(7, 0, 1 << 18, NodeId(1))]);
        assert_eq!(
            outcomes[0].parts.len(),
            1,
            "slices that fared alike are one part"
        );
        assert_eq!(outcomes[0].left(), Bytes(0));
        hands.0.get() as f64 / 1e9
    }

    #[test]
    fn what_does_not_fit_into_the_span_is_left_for_another_time() {
        let hands = Hands::default();
        // A MiB takes a millisecond and 10 of waiting: half a second moves some 50 MiB.
        let allowance = Allowance {
            bytes_a_second: Bytes(u64::MAX),
            time_a_second: Nanos(100_000_000),
        };
        let half = Nanos(500_000_000);
        let limit = Limit::new(Mover(hands.clone()), hands.clone(), allowance);
        let outcomes = limit
            .within(half)
            .execute(&[action(7, 0, 1 << 18, NodeId(1))]);
        let [moved, left] = outcomes[0].parts.as_slice() else {
            panic!("{outcomes:?}");
        };
        assert_eq!(left.fate, Fate::NotAttempted(Reason::OutOfTime));
        assert!(moved.bytes > Bytes(0) && moved.bytes < Bytes(128 << 20));
        assert!(hands.0.get() < 2 * half.0, "one slice more at most");
    }

    #[test]
    fn small_ranges_share_a_slice_and_have_an_outcome_each() {
        struct Calls(Hands, Rc<Cell<usize>>);
        impl RangeExecutor for Calls {
            fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
                RangeOutcome::whole(action, Fate::Moved)
            }

            fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
                self.1.set(self.1.get() + 1);
                self.0.0.set(self.0.0.get() + 1_000_000);
                actions.iter().map(|it| self.carry_out(*it)).collect()
            }
        }
        let (hands, calls) = (Hands::default(), Rc::new(Cell::new(0)));
        let inner = Calls(hands.clone(), calls.clone());
        // Slices of 2 MiB; 100 ranges of 64 KiB.
        let allowance = Allowance {
            bytes_a_second: Bytes(100 << 20),
            ..Allowance::UNLIMITED
        };
        let mut limit = Limit::new(inner, hands, allowance);
        let actions: Vec<RangeAction> = (0..100)
            .map(|at| action(7, 32 * at, 16, NodeId(1)))
            .collect();
        let outcomes = limit.execute(&actions);
        let moved: Vec<Bytes> = outcomes
            .iter()
            .map(|it| it.bytes_of(|fate| *fate == Fate::Moved))
            .collect();
        assert_eq!(moved, [Bytes(64 << 10); 100]);
        assert_eq!(calls.get(), 4, "32 ranges a call");
    }

    #[test]
    fn a_gibibyte_takes_as_long_as_the_tighter_of_the_two_limits_wants() {
        let near = |value: f64, wanted: f64| (value - wanted).abs() < wanted * 0.1;
        assert!(near(seconds(u64::MAX, 1_000_000_000), 1.024));
        assert!(near(seconds(256 << 20, 1_000_000_000), 4.0));
        assert!(near(seconds(u64::MAX, 100_000_000), 10.24));
        assert!(near(seconds(256 << 20, 100_000_000), 10.24));
    }
}
