//! [`delay_ns`] computes how much longer slow memory makes a thread's wait for an access, in the emulation by time: by the factor of the
//! bandwidth where the access is one of a stream, by that of the latency elsewhere.

use isotherm_abi::config::EmulationConfig;
use isotherm_cache_estimate::AccessPattern;

/// How much longer slow memory makes a wait of `ns` nanoseconds for fast memory: an access of a stream waits for the bandwidth,
/// any other access for the latency.
pub(crate) fn delay_ns(emulation: &EmulationConfig, ns: u64, pattern: AccessPattern) -> u64 {
    let percent = match pattern {
        AccessPattern::Scattered => emulation.latency_percent,
        AccessPattern::Stream | AccessPattern::LimitedStream => emulation.bandwidth_percent,
    };
    ns.saturating_mul(u64::from(percent.saturating_sub(100))) / 100
}

#[cfg(test)]
mod tests {
    use super::{AccessPattern, EmulationConfig, delay_ns};

    #[test]
    fn a_factor_of_three_costs_twice_the_time_more() {
        let costs = EmulationConfig {
            latency_percent: 300,
            bandwidth_percent: 150,
            ..EmulationConfig::default()
        };
        let delay = |pattern| delay_ns(&costs, 1_000, pattern);
        assert_eq!(delay(AccessPattern::Scattered), 2_000);
        assert_eq!(delay(AccessPattern::Stream), 500);
    }
}
