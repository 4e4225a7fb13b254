//! An event that the processors or a unit beside them count, and the reason where none can be had.

use std::io;

use isotherm_sys::perf::PerfCounter;

/// Why something cannot be counted, and what would bring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// Why.
    pub why: String,
    /// What would bring it.
    pub remedy: &'static str,
}

/// An event that is only counted, of whatever runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterEvent {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `config`, `config1` and `config2`.
    pub configs: [u64; 3],
    /// The processor to ask.
    pub cpu: u32,
    /// A unit beside the processors counts it, which cannot tell the kernel from programs.
    pub uncore: bool,
    /// What one count stands for: 1 for a miss, bytes for traffic.
    pub weight: u64,
}

impl CounterEvent {
    /// Opens it on this machine.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn open(&self) -> io::Result<PerfCounter> {
        match self.uncore {
            true => PerfCounter::of_unit(self.kind, self.configs, self.cpu),
            false => PerfCounter::of_processor((self.kind, self.configs[0]), self.cpu),
        }
    }
}
