//! A batch: the observations of one epoch, which the profile stage receives from the observers.
//!
//! An *epoch* is one sampling and decision interval. A *batch* holds the raw observations of all
//! sources: addresses of processes, not yet attributed to sites.

use crate::site::{Site, SiteId};
use crate::tier::TierIndex;
use crate::units::{Bytes, Nanos};

/// Number of an epoch, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// A process: its pid, and the image it runs (0, then one more for each exec). The image keeps the
/// data of a pid before an exec apart from its data after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Number of the image in that process.
    pub image: u32,
}

/// One observed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Process that made the access.
    pub process: Process,
    /// Virtual address of the data.
    pub address: u64,
    /// Weight of the sample: 1 for a timer sample, a latency where the source measures it, or the
    /// number of accesses that a count represents.
    pub weight: u64,
}

/// A contiguous range of memory that one site allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated it.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Resident bytes of the range.
    pub resident: Bytes,
    /// Target tier, where the runtime places the range.
    pub tier: Option<TierIndex>,
}

/// A named counter of the runtime, the kernel or a source, since the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Process that is counted; `None` for the whole run.
    pub process: Option<Process>,
    /// Name: words joined by `_`, unit last: `delay_ns`, `context_misses`.
    pub name: String,
    /// Value so far.
    pub value: u64,
}

/// Activity of one source in the run so far. A source that delivers nothing must be reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceReport {
    /// Name of the source: `instrumented`, `timer`, `pebs`, `ibs`, `spe`, `accessed-bits`,
    /// `trapped-pages`.
    pub name: String,
    /// Samples taken.
    pub taken: u64,
    /// Of these, samples that yielded a data address.
    pub usable: u64,
    /// Samples that the kernel or a full buffer dropped.
    pub lost: u64,
    /// Time that the source itself used, in our processes.
    pub cost: Nanos,
    /// Its known cost to the program, in words, with the origin of the number.
    pub cost_note: String,
    /// Why the source is off or weaker than it could be; empty if it works fully.
    pub warning: String,
}

/// All observations of one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Number of the epoch.
    pub epoch: Epoch,
    /// Length of the epoch.
    pub span: Nanos,
    /// Every known site whose numbers changed, with cumulative numbers. `peak_rss` follows from the
    /// extents; it is zero here unless the program itself measured more.
    pub sites: Vec<Site>,
    /// All current extents of all live processes (not only the changed ones).
    pub extents: Vec<Extent>,
    /// Observed accesses.
    pub samples: Vec<Sample>,
    /// Counters, cumulative.
    pub counts: Vec<Count>,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}
