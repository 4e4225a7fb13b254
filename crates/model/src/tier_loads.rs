//! The loaded latencies of the two tiers of a machine, and the counts from which they follow on an emulated machine.

use crate::units::{Bytes, Nanos};

/// The load of the fast and of the slow tier in one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierLoads {
    /// Loaded latency of fast and of slow memory, in nanoseconds.
    pub latencies_ns: [f64; 2],
    /// Bytes a second that the programs ask of both tiers together.
    pub demand: u64,
}

/// What programs used of an emulated machine in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulatedUse {
    /// Bytes that fast and slow memory served.
    pub served: [Bytes; 2],
    /// Processor time, with the delays.
    pub used: Nanos,
    /// Delays of the emulation.
    pub delayed: Nanos,
}

impl EmulatedUse {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            served: [0, 1].map(|tier| self.served[tier].saturating_add(other.served[tier])),
            used: self.used.saturating_add(other.used),
            delayed: self.delayed.saturating_add(other.delayed),
        }
    }

    /// The increase since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            served: [0, 1].map(|tier| self.served[tier].saturating_sub(before.served[tier])),
            used: self.used.saturating_sub(before.used),
            delayed: self.delayed.saturating_sub(before.delayed),
        }
    }
}
