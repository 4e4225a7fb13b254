//! [`TierLoads`] holds, for the policies that balance tiers, the loaded latencies of fast and slow memory in one epoch, and the bytes a
//! second of both together: on nodes those that were served, on an emulated machine those that programs would take without its delays.
//! [`EmulatedUse`] holds the counts from which the loads of an emulated machine follow.

use crate::units::{Bytes, Nanos};

/// The load of the fast and of the slow tier in one epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TierLoads {
    /// Loaded latency of fast and of slow memory, in nanoseconds.
    pub latencies_ns: [f64; 2],
    /// Bytes a second that the programs ask of both tiers together.
    pub demand: u64,
}

/// The memory and the time that programs used of an emulated machine.
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
    /// The sum of two uses.
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
