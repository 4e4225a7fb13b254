//! [`Residency`] is the time that a DRAM rank spends in each power state and the number of times that an access wakes it (Cross-Layer,
//! section 3.2), computed from the gaps between its accesses and the [`Thresholds`] of the memory controller.
//!
//! After an access a rank is in active standby. The memory controller closes its rows, then puts it
//! into power-down, then into self-refresh, each after its own threshold of idle time. The next
//! access waits until the rank is awake:
//!
//! ```text
//!     access                                                             access
//!       | active standby | precharge standby | power-down | self-refresh | wake-up |
//!       0            precharge          power-down   self-refresh                      idle time
//! ```
//!
//! So power is not a straight line over bandwidth but has steps (the paper's figure 3): a rank with
//! accesses slightly more frequent than its threshold never sleeps.

use isotherm_model::units::Nanos;

/// The state of a rank between accesses; each state saves more than the one before and takes longer
/// to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PowerState {
    /// Rows are open (IDD3N).
    ActiveStandby,
    /// Rows are closed (IDD2N).
    PrechargeStandby,
    /// Rows are closed and the clock is off at the input (IDD2P).
    PowerDown,
    /// The device refreshes itself and the interface is off (IDD6N).
    SelfRefresh,
}

impl PowerState {
    /// All states, in order.
    pub const ALL: [Self; 4] = [
        Self::ActiveStandby,
        Self::PrechargeStandby,
        Self::PowerDown,
        Self::SelfRefresh,
    ];
}

/// Idle time after which the controller puts a rank into each state. These are settings of the controller and appear in no data
/// sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    starts: [u64; 4],
}

impl Thresholds {
    /// Rows are closed after 100 ns, the clock is off after 1 us, self-refresh begins after 1 ms:
    /// round numbers of ours, not of a particular controller.
    pub const ROUND: Self = Self {
        starts: [0, 100, 1_000, 1_000_000],
    };

    /// Thresholds of precharge standby, power-down and self-refresh, which rise. A state without one is skipped.
    #[cfg(test)]
    pub(super) fn rising(later: [Option<u64>; 3]) -> Self {
        let given = [Some(0), later[0], later[1], later[2]];
        let mut starts = given.map(|start| start.unwrap_or(u64::MAX));
        // A state that is never entered begins where the next one does.
        for index in (0..3).rev() {
            if given[index].is_none() {
                starts[index] = starts[index + 1];
            }
        }
        assert!(starts.is_sorted(), "{given:?}");
        Self { starts }
    }

    /// The time that a gap of this length spends in each state.
    fn parts(&self, gap: u64) -> [u64; 4] {
        let end = |index: usize| self.starts.get(index + 1).copied().unwrap_or(u64::MAX);
        let part = |index: usize| end(index).min(gap).saturating_sub(self.starts[index]);
        [part(0), part(1), part(2), part(3)]
    }

    /// The state in which a gap of this length ends.
    fn deepest(&self, gap: u64) -> PowerState {
        let entered = PowerState::ALL.into_iter().zip(self.parts(gap));
        let entered = entered.filter(|(_, time)| *time > 0);
        entered
            .map(|(state, _)| state)
            .next_back()
            .unwrap_or(PowerState::ActiveStandby)
    }
}

/// The time that a rank spends in each state, and how often it is woken from each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Residency {
    time: [u64; 4],
    wakes: [u64; 4],
}

impl Residency {
    /// The residency for these gaps between accesses, each with its number of occurrences; an
    /// access follows each gap.
    #[must_use]
    pub fn of_gaps(gaps: impl IntoIterator<Item = (Nanos, u64)>, thresholds: &Thresholds) -> Self {
        let mut residency = Self::default();
        for (gap, count) in gaps {
            residency.add(gap.0, count, thresholds);
            let woken = &mut residency.wakes[thresholds.deepest(gap.0) as usize];
            *woken = woken.saturating_add(count);
        }
        residency
    }

    /// The residency for this number of accesses, spread evenly over a span. Real accesses come in
    /// bursts, which leave longer gaps and let a rank sleep more; an even spread is the least
    /// favourable to sleep.
    #[must_use]
    pub fn evenly(accesses: u64, span: Nanos, thresholds: &Thresholds) -> Self {
        let Some(gap) = span.0.checked_div(accesses) else {
            let mut idle = Self::default();
            idle.add(span.0, 1, thresholds);
            return idle;
        };
        // The remainder of the division makes some gaps longer by 1 ns, so that the sum is the
        // span.
        let longer = span.0 % accesses;
        let gaps = [
            (Nanos(gap), accesses - longer),
            (Nanos(gap.saturating_add(1)), longer),
        ];
        let occurring = gaps.into_iter().filter(|(_, count)| *count > 0);
        Self::of_gaps(occurring, thresholds)
    }

    fn add(&mut self, gap: u64, count: u64, thresholds: &Thresholds) {
        for (time, part) in self.time.iter_mut().zip(thresholds.parts(gap)) {
            *time = time.saturating_add(part.saturating_mul(count));
        }
    }

    /// Time in a state.
    #[must_use]
    pub const fn time(&self, state: PowerState) -> Nanos {
        Nanos(self.time[state as usize])
    }

    /// How often an access found the rank in a state.
    #[must_use]
    pub const fn wakes(&self, state: PowerState) -> u64 {
        self.wakes[state as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::PowerState::{ActiveStandby, PowerDown, PrechargeStandby, SelfRefresh};
    use super::{PowerState, Residency, Thresholds};
    use isotherm_model::units::Nanos;
    use proptest::prelude::*;

    fn times(residency: &Residency) -> [u64; 4] {
        PowerState::ALL.map(|state| residency.time(state).0)
    }

    #[test]
    fn a_gap_is_cut_at_the_thresholds_and_wakes_the_state_it_ends_in() {
        let steps = Thresholds::rising([Some(50), Some(100), Some(1_000)]);
        let gaps = [(Nanos(40), 3), (Nanos(70), 2), (Nanos(1_500), 1)];
        let residency = Residency::of_gaps(gaps, &steps);
        assert_eq!(
            times(&residency),
            [3 * 40 + 2 * 50 + 50, 2 * 20 + 50, 900, 500]
        );
        let wakes = PowerState::ALL.map(|state| residency.wakes(state));
        assert_eq!(wakes, [3, 2, 0, 1]);
    }

    #[test]
    fn a_rank_that_is_accessed_a_little_more_often_than_its_threshold_never_sleeps() {
        // Figure 3 of the paper: a step, not a slope.
        let steps = Thresholds::rising([Some(50), Some(1_000), None]);
        let second = Nanos(1_000_000_000);
        let often = Residency::evenly(1_000_000, second, &steps);
        assert_eq!(often.time(PowerDown), Nanos(0));
        let seldom = Residency::evenly(100_000, second, &steps);
        assert_eq!(times(&seldom), [5_000_000, 95_000_000, 900_000_000, 0]);
        assert_eq!(seldom.wakes(PowerDown), 100_000);
    }

    #[test]
    fn an_idle_rank_sleeps_to_the_end_and_is_not_woken() {
        let steps = Thresholds::rising([Some(50), Some(100), Some(1_000)]);
        let idle = Residency::evenly(0, Nanos(5_000), &steps);
        assert_eq!(times(&idle), [50, 50, 900, 4_000]);
        assert_eq!(PowerState::ALL.map(|state| idle.wakes(state)), [0; 4]);
    }

    #[test]
    fn a_state_that_is_never_entered_is_passed_over() {
        let open = Residency::evenly(0, Nanos(500), &Thresholds::rising([None, None, None]));
        assert_eq!(open.time(ActiveStandby), Nanos(500));
        let straight =
            Residency::evenly(0, Nanos(500), &Thresholds::rising([None, None, Some(100)]));
        assert_eq!(times(&straight), [100, 0, 0, 400]);
        assert_eq!(straight.time(PrechargeStandby), Nanos(0));
        assert_eq!(straight.time(SelfRefresh), Nanos(400));
    }

    proptest! {
        #[test]
        fn the_times_add_up_to_the_span_and_every_access_wakes_one_state(
            accesses in 0_u64..10_000, span in 0_u64..1_000_000_000,
            precharge in 0_u64..200, more in 0_u64..2_000, deeper in 0_u64..20_000
        ) {
            let steps = Thresholds::rising(
                [Some(precharge), Some(precharge + more), Some(precharge + more + deeper)]
            );
            let residency = Residency::evenly(accesses, Nanos(span), &steps);
            prop_assert_eq!(times(&residency).iter().sum::<u64>(), span);
            let wakes = PowerState::ALL.map(|state| residency.wakes(state));
            prop_assert_eq!(wakes.iter().sum::<u64>(), accesses);
        }

        #[test]
        fn more_accesses_never_let_a_rank_sleep_longer(
            accesses in 1_u64..10_000, more in 0_u64..10_000, span in 0_u64..1_000_000_000
        ) {
            let steps = Thresholds::rising([Some(50), Some(300), Some(9_000)]);
            let asleep = |accesses| {
                let residency = Residency::evenly(accesses, Nanos(span), &steps);
                residency.time(PowerDown).0 + residency.time(SelfRefresh).0
            };
            prop_assert!(asleep(accesses + more) <= asleep(accesses));
        }
    }
}
