//! Opens the machine's counters of memory traffic and of cache and TLB misses ([`open`]), for `doctor`, the daemon and measurements of
//! bandwidth, and chooses the one that throttles a source of accesses: the source rests while that counter is low ([`choose`]).
//!
//! TMP (Choi et al., "Dancing in the Dark", section IV) switches a source off while the counter it depends on is low: last-level cache
//! misses for trace samples, TLB misses for accessed bits. Many machines give us neither counter. Memory traffic replaces them: while
//! memory is hardly used, neither source has anything to find.
//!
//! ```text
//! trace samples   cache misses, else controllers, else resctrl
//! accessed bits   TLB misses,   else controllers, else resctrl
//! ```
//!
//! `uncore` finds the counters of memory controllers, [`resctrl`] those of the kernel's resource control. The file-system root and the
//! function that opens events are arguments: a test of a recorded machine has neither its events nor its controllers.

mod event;
pub mod resctrl;
pub mod tier_traffic;
pub mod uncore;

use std::io;
use std::path::Path;

use isotherm_model::source_kind::ProfilingMethod;
use isotherm_sys::perf::PerfCounter;

use crate::source::perf_ring::refusal;
use resctrl::Resctrl;

pub use event::{CounterEvent, Lack};

isotherm_model::variant_words! {
    /// What a counter counts, with its name in the status and in `isotherm doctor`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CounterKind {
        /// Misses of the last-level cache, counted by the processors.
        CacheMisses = "cache misses",
        /// Reads that missed the data TLB, counted by the processors.
        TlbMisses = "TLB misses",
        /// Reads and writes of memory, counted by its controllers.
        Controllers = "memory controllers",
        /// Bytes of all resctrl control groups, counted by the processors' cache monitoring.
        Resctrl = "resctrl bandwidth",
    }
}

impl CounterKind {
    /// The counters that may throttle a kind of source, best first.
    #[must_use]
    pub const fn for_method(method: ProfilingMethod) -> [Self; 3] {
        let own = match method {
            ProfilingMethod::TraceSamples => Self::CacheMisses,
            ProfilingMethod::AccessedBits => Self::TlbMisses,
        };
        [own, Self::Controllers, Self::Resctrl]
    }

    /// The event of the processor that counts it; None for a counter beside the processors.
    #[must_use]
    pub const fn processor_event(self) -> Option<(u32, u64)> {
        match self {
            Self::CacheMisses => Some(PerfCounter::CACHE_MISSES),
            Self::TlbMisses => Some(PerfCounter::TLB_MISSES),
            Self::Controllers | Self::Resctrl => None,
        }
    }
}

impl Lack {
    /// A sentence that this counter is missing, why, and what would enable it.
    fn of(&self, kind: CounterKind) -> String {
        let (name, Self { why, remedy }) = (kind.word(), self);
        format!("no {name}: {why}; {remedy} would bring it")
    }
}

/// A count that only grows.
pub trait CumulativeCount {
    /// The count so far.
    ///
    /// # Errors
    /// The counter can no longer be read.
    fn value(&mut self) -> io::Result<u64>;

    /// The count at the start of an interval, where it does not matter whether all was counted before.
    ///
    /// # Errors
    /// The counter can no longer be read.
    fn begin(&mut self) -> io::Result<u64> {
        self.value()
    }
}

impl CumulativeCount for PerfCounter {
    fn value(&mut self) -> io::Result<u64> {
        Self::value(self)
    }

    fn begin(&mut self) -> io::Result<u64> {
        Self::begin(self)
    }
}

/// An open counter; `T` is the type of an opened event.
#[derive(Debug)]
pub enum Counting<T> {
    /// Opened events, each with the misses or bytes of one count.
    Events(Vec<(u64, T)>),
    /// Bytes counted by resctrl.
    Resctrl(Resctrl),
}

impl<T: CumulativeCount> Counting<T> {
    /// The count so far, of the whole machine: misses, or bytes.
    ///
    /// # Errors
    /// The counter can no longer be read.
    pub fn value(&mut self) -> io::Result<u64> {
        self.read(T::value)
    }

    /// As [`Self::value`], at the start of an interval ([`CumulativeCount::begin`]).
    ///
    /// # Errors
    /// The counter can no longer be read.
    pub fn begin(&mut self) -> io::Result<u64> {
        self.read(T::begin)
    }

    /// Reads all events even where one of them fails, so that the next interval is the same for all.
    fn read(&mut self, read: impl Fn(&mut T) -> io::Result<u64>) -> io::Result<u64> {
        let events = match self {
            Self::Resctrl(resctrl) => return resctrl.value(),
            Self::Events(events) => events.iter_mut(),
        };
        let counts: Vec<_> = events.map(|(weight, it)| (*weight, read(it))).collect();
        counts.into_iter().try_fold(0_u64, |sum, (weight, count)| {
            Ok(sum.saturating_add(count?.saturating_mul(weight)))
        })
    }
}

const PMU: &str = "a bare-metal machine, or a virtual machine that passes the PMU on";
const PERF: &str = "CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less";

/// Opens this counter on the machine below the root, each event by `open`.
///
/// # Errors
/// The missing feature, and what would enable it.
pub fn open<T>(
    kind: CounterKind,
    root: &Path,
    open: &dyn Fn(&CounterEvent) -> io::Result<T>,
) -> Result<Counting<T>, Lack> {
    let misses = |(kind, config)| {
        let cpus = isotherm_topology::cpu_list::online_cpus(root).into_iter();
        cpus.map(|cpu| CounterEvent {
            kind,
            configs: [config, 0, 0],
            cpu,
            uncore: false,
            weight: 1,
        })
        .collect()
    };
    let events: Vec<CounterEvent> = match kind {
        CounterKind::Resctrl => return Resctrl::open(root).map(Counting::Resctrl),
        CounterKind::CacheMisses => misses(PerfCounter::CACHE_MISSES),
        CounterKind::TlbMisses => misses(PerfCounter::TLB_MISSES),
        CounterKind::Controllers => uncore::find(root)?,
    };
    let open = |event: &CounterEvent| Ok((event.weight, open(event)?));
    let opened: io::Result<Vec<_>> = events.iter().map(open).collect();
    opened.map(Counting::Events).map_err(|error| Lack {
        why: refusal(&error),
        remedy: match error.kind() {
            io::ErrorKind::PermissionDenied => PERF,
            _ => PMU,
        },
    })
}

/// The counter that throttles a kind of source, and the reason for the choice.
#[derive(Debug)]
pub struct CounterChoice<T> {
    /// The open counter; None where nothing can be counted.
    pub counting: Option<(CounterKind, Counting<T>)>,
    /// Why no better counter was chosen, and what would enable it: a sentence for each one tried
    /// before.
    pub why: String,
}

/// Chooses the counter that throttles a kind of source: the best one that can be opened.
pub fn choose<T>(
    method: ProfilingMethod,
    root: &Path,
    open_event: &dyn Fn(&CounterEvent) -> io::Result<T>,
) -> CounterChoice<T> {
    let mut missing = Vec::new();
    for kind in CounterKind::for_method(method) {
        match open(kind, root, open_event) {
            Ok(counting) => {
                return CounterChoice {
                    counting: Some((kind, counting)),
                    why: missing.join("; "),
                };
            }
            Err(lack) => missing.push(lack.of(kind)),
        }
    }
    CounterChoice {
        counting: None,
        why: missing.join("; "),
    }
}

#[cfg(test)]
mod tests;
