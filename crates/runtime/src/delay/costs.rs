//! [`delay_ns`] computes how much longer slow memory makes a thread's wait for an access, in the emulation by time: by the factor of the
//! bandwidth where the access is one of a stream, by that of the latency elsewhere.

use isotherm_cache_estimate::AccessPattern;

/// How much longer accesses to slow memory take, in percent of the same access to fast memory; 100 and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Costs {
    /// An access that waits for the latency.
    pub(crate) latency_percent: u32,
    /// An access of a stream, which waits for the bandwidth.
    pub(crate) bandwidth_percent: u32,
}

impl Costs {
    /// How much longer work takes that waited for slow memory for `ns` nanoseconds, had the memory been fast.
    pub(crate) fn delay_ns(&self, ns: u64, pattern: AccessPattern) -> u64 {
        let percent = match pattern {
            AccessPattern::Scattered => self.latency_percent,
            AccessPattern::Stream | AccessPattern::LimitedStream => self.bandwidth_percent,
        };
        ns.saturating_mul(u64::from(percent.saturating_sub(100))) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessPattern, Costs};

    #[test]
    fn a_factor_of_three_costs_twice_the_time_more() {
        let costs = Costs {
            latency_percent: 300,
            bandwidth_percent: 150,
        };
        assert_eq!(costs.delay_ns(1_000, AccessPattern::Scattered), 2_000);
        assert_eq!(costs.delay_ns(1_000, AccessPattern::Stream), 500);
    }
}
