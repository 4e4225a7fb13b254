//! [`PressureReclaim`] is TMO's rule of paging out (ASPLOS 2022), with which our own rule is compared. In each interval a share of the
//! program's memory leaves, which falls to nothing as the share of the time that the program waits for memory nears a threshold.
//!
//! The rule knows neither pages nor costs: the least recently used memory leaves, and pressure shows afterwards that it was needed.
//!
//! ```text
//! memory 400 MiB, interval 50 ms, 10 % a second      2 MiB
//! the program waited for 0.5 ms, threshold 2 %       half of the threshold: 1 MiB leaves
//! ```

use isotherm_model::units::{Bytes, Nanos};

/// Share of the memory that is reclaimed in a second without pressure. The paper has a twelve thousandth, for services that run for weeks;
/// this share takes half of a program's memory in seven seconds.
pub const RECLAIM_A_SECOND: f64 = 0.1;

/// The rule with its threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PressureReclaim {
    threshold: f64,
    ratio: f64,
}

impl PressureReclaim {
    /// Reclaims a share of the memory each second until the program waits for this share of the time, above 0.
    #[must_use]
    pub const fn new(threshold: f64, ratio: f64) -> Self {
        Self { threshold, ratio }
    }

    /// Bytes that leave after an interval of this length, in which the program waited for `stalled`.
    #[must_use]
    pub fn bytes(&self, memory: Bytes, span: Nanos, stalled: Nanos) -> Bytes {
        let pressure = stalled.0 as f64 / span.0.max(1) as f64;
        let room = (1.0 - pressure / self.threshold.max(f64::MIN_POSITIVE)).max(0.0);
        // The cast saturates, and the product is not negative.
        Bytes((memory.0 as f64 * self.ratio * span.0 as f64 / 1e9 * room) as u64)
    }
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::{Bytes, Nanos};

    use super::PressureReclaim;

    #[test]
    fn less_leaves_the_more_the_program_waits_and_nothing_beyond_the_threshold() {
        let rule = PressureReclaim::new(0.02, 0.1);
        let bytes = |waited| {
            let memory = Bytes(400 << 20);
            rule.bytes(memory, Nanos(50_000_000), Nanos(waited)).0
        };
        assert_eq!(bytes(0), 2 << 20);
        assert_eq!(bytes(500_000), 1 << 20);
        assert_eq!((bytes(1_000_000), bytes(50_000_000)), (0, 0));
    }
}
