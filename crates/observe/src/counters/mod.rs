//! Counters that say how busy memory is, and which of them lets which kind of source rest.
//!
//! TMP (Choi et al., "Dancing in the Dark", section IV) switches a source off while the counter it
//! depends on is low: misses of the last cache for trace samples, misses of the TLB for accessed bits.
//! Many machines count neither for us. What goes to memory stands in there: while memory is hardly
//! used, neither source has anything to find.
//!
//! ```text
//! trace samples   cache misses, else controllers, else resctrl
//! accessed bits   TLB misses,   else controllers, else resctrl
//! ```
//!
//! `uncore` finds what memory controllers count, [`resctrl`] what the kernel's resource control does.
//! The file-system root is an argument, and so is who opens events: recorded machines have neither
//! their events nor their controllers here.

mod event;
pub mod resctrl;
pub mod uncore;

use std::io;
use std::path::Path;

use isotherm_model::watch::SourceKind;
use isotherm_sys::perf::PerfCounter;

use crate::perf_source::refusal;
use resctrl::Resctrl;

pub use event::{CounterEvent, Lack};

/// Something that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Misses of the last level of cache, by the processors.
    CacheMisses,
    /// Reads that missed the data TLB, by the processors.
    TlbMisses,
    /// Reads and writes of memory, by its controllers.
    Controllers,
    /// Bytes of all control groups of resctrl, by the processors' cache monitoring.
    Resctrl,
}

impl CounterKind {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::CacheMisses,
        Self::TlbMisses,
        Self::Controllers,
        Self::Resctrl,
    ];

    /// Those that a kind of source may rest by, best first.
    #[must_use]
    pub const fn for_source(evidence: SourceKind) -> [Self; 3] {
        let own = match evidence {
            SourceKind::TraceSamples => Self::CacheMisses,
            SourceKind::AccessedBits => Self::TlbMisses,
        };
        [own, Self::Controllers, Self::Resctrl]
    }

    /// Its name in the status and in `isotherm doctor`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CacheMisses => "cache misses",
            Self::TlbMisses => "TLB misses",
            Self::Controllers => "memory controllers",
            Self::Resctrl => "resctrl bandwidth",
        }
    }
}

/// A count that only grows.
pub trait CumulativeCount {
    /// The count so far.
    ///
    /// # Errors
    /// It cannot be read any more.
    fn value(&mut self) -> io::Result<u64>;
}

impl CumulativeCount for PerfCounter {
    fn value(&mut self) -> io::Result<u64> {
        Self::value(self)
    }
}

/// Something that is counted, with what opened events are here.
#[derive(Debug)]
pub enum Counting<T> {
    /// By events, each with what one count stands for.
    Events(Vec<(u64, T)>),
    /// By resctrl.
    Resctrl(Resctrl),
}

impl<T: CumulativeCount> Counting<T> {
    /// The count so far, of the whole machine: misses, or bytes.
    ///
    /// # Errors
    /// It cannot be read any more.
    pub fn value(&mut self) -> io::Result<u64> {
        match self {
            Self::Resctrl(resctrl) => resctrl.value(),
            Self::Events(events) => events.iter_mut().try_fold(0_u64, |sum, (weight, event)| {
                Ok(sum.saturating_add(event.value()?.saturating_mul(*weight)))
            }),
        }
    }
}

const PMU: &str = "a bare-metal machine, or a virtual machine that passes the PMU on";
const PERF: &str = "CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less";

/// Opens what counts this on the machine below the root, each event by `open`.
///
/// # Errors
/// What is missing, and what would bring it.
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

/// What a kind of source rests by, and why.
#[derive(Debug)]
pub struct CounterChoice<T> {
    /// What is counted; None where nothing can be.
    pub counting: Option<(CounterKind, Counting<T>)>,
    /// Why not something better, with what would bring it: a sentence for each that was tried before.
    pub why: String,
}

/// Chooses what a kind of source rests by: the best that can be opened.
pub fn choose<T>(
    evidence: SourceKind,
    root: &Path,
    open_event: &dyn Fn(&CounterEvent) -> io::Result<T>,
) -> CounterChoice<T> {
    let mut missing = Vec::new();
    for kind in CounterKind::for_source(evidence) {
        match open(kind, root, open_event) {
            Ok(counting) => {
                return CounterChoice {
                    counting: Some((kind, counting)),
                    why: missing.join("; "),
                };
            }
            Err(Lack { why, remedy }) => {
                missing.push(format!(
                    "no {}: {why}; {remedy} would bring it",
                    kind.name()
                ));
            }
        }
    }
    CounterChoice {
        counting: None,
        why: missing.join("; "),
    }
}

#[cfg(test)]
mod tests;
