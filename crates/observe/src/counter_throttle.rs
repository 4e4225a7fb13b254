//! TMP's rule for saving cost: a live run switches a sampling method off while the counter that it
//! depends on is at most a fifth of the largest value seen (Choi et al., "Dancing in the Dark",
//! section IV).

/// Share of the maximum, in percent, at or below which a method rests.
const RESTS_AT_PERCENT: u128 = 20;

/// Decides from a counter whether a method is worth its cost now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterThrottle {
    last: u64,
    max: u64,
    started: bool,
}

impl CounterThrottle {
    /// True where the method should be on, given the counter's cumulative value now. The first
    /// value only marks the start.
    pub fn is_open(&mut self, counter: u64) -> bool {
        let events = counter.saturating_sub(self.last);
        self.last = counter;
        if !std::mem::replace(&mut self.started, true) {
            return true;
        }
        self.max = self.max.max(events);
        // At most a fifth, also when both are zero; but a counter that never moved is no evidence.
        self.max == 0 || u128::from(events) * 100 > u128::from(self.max) * RESTS_AT_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use super::CounterThrottle;

    #[test]
    fn a_method_rests_while_its_counter_is_at_most_a_fifth_of_the_maximum() {
        let mut gate = CounterThrottle::default();
        assert!(gate.is_open(1_000), "the start");
        assert!(gate.is_open(2_000), "1000 events, the maximum");
        assert!(!gate.is_open(2_200), "200 events, just a fifth");
        assert!(gate.is_open(2_401), "201 events, just above");
        assert!(!gate.is_open(2_401), "none");
        let mut still = CounterThrottle::default();
        assert!(
            still.is_open(0) && still.is_open(0),
            "a counter that never moves decides nothing"
        );
    }
}
