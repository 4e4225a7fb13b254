//! A [`Pair`] is the result of a measurement: latency, idle and under load, and bandwidths of one pair of processor node and memory node.

use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::units::Nanos;

/// Trials of a bandwidth; other programs only reduce it, so the best is the most accurate.
pub const TRIALS: u32 = 3;

/// The speed of one node's memory for the processors of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Node of the processors.
    pub cpu_node: u32,
    /// Node of the memory.
    pub memory_node: u32,
    /// Latency of a load from memory that depends on the load before it.
    pub latency: Nanos,
    /// One entry for each number of threads, in their order.
    pub rates: Vec<Rates>,
    /// The latency as the load rises, from none to all that the other processors of the node can read; empty where there is only one.
    pub loaded: Vec<LoadPoint>,
}

/// Bandwidth of a number of threads, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Threads, each pinned to a processor of its own.
    pub threads: u32,
    /// Reading.
    pub read: u64,
    /// Writing, by ordinary stores; the read of each line before the write is not counted.
    pub write: u64,
    /// `a[i] = b[i] + 3 c[i]`: two bytes read for one written, all three counted.
    pub triad: u64,
}

impl Pair {
    /// The most of one kind that any number of threads reached.
    #[must_use]
    pub fn most(&self, kind: fn(&Rates) -> u64) -> u64 {
        self.rates.iter().map(kind).max().unwrap_or(0)
    }
}
