//! [`CounterEvent`] is a perf event that is only counted, by a processor or by a unit beside the processors (uncore); [`Lack`] says why a
//! counter is missing, and what would enable it.

use std::io;

use isotherm_sys::perf::PerfCounter;

/// Why an event cannot be counted, and what would enable it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The reason, for messages.
    pub why: String,
    /// The hardware, kernel option or setting that would enable the counter.
    pub remedy: &'static str,
}

/// An event that is only counted, for all programs of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterEvent {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `config`, `config1` and `config2`.
    pub configs: [u64; 3],
    /// The processor on which the event is opened.
    pub cpu: u32,
    /// A unit beside the processors counts it; the unit cannot separate the kernel from programs.
    pub uncore: bool,
    /// Misses or bytes for which one count stands: 1 for a miss, bytes for traffic.
    pub weight: u64,
}

impl CounterEvent {
    /// Opens the event on this machine.
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
