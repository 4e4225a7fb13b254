//! What observing one epoch yields: the arrow from `observe` to `profile`.
//!
//! An *epoch* is one sampling and decision interval. A *batch* holds what the sources saw in it,
//! in raw terms: addresses of processes, not yet told apart by site.

use crate::site::{Site, SiteId};
use crate::tier::TierIndex;
use crate::units::{Bytes, Nanos};

/// Number of an epoch, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// A process: its pid, and the image it runs (0, then one more for each exec), so that what a
/// pid held before an exec is not taken for what it holds after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Which image of that process.
    pub image: u32,
}

/// One observed access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whose access.
    pub process: Process,
    /// Virtual address of the data.
    pub address: u64,
    /// How much it counts: 1 for a timer sample, a latency where the source knows one, the
    /// accesses for which a count stands.
    pub weight: u64,
}

/// A contiguous range of memory that one site made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// In whose address space.
    pub process: Process,
    /// Who made it.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Bytes of it that are resident.
    pub resident: Bytes,
    /// Tier it is meant to be in, where the runtime places it.
    pub tier: Option<TierIndex>,
}

/// A named number that the runtime, the kernel or a source counted since the start.
#[derive(Clone, Debug, PartialEq)]
pub struct Count {
    /// Whose; `None` for the whole run.
    pub process: Option<Process>,
    /// What, in words joined by `_`, unit last: `delay_ns`, `context_misses`.
    pub name: String,
    /// How much so far.
    pub value: u64,
}

/// What one source did in the run so far. A source that delivers nothing must be reported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceReport {
    /// Name of the source: `instrumented`, `timer`, `pebs`, `ibs`, `spe`, `accessed-bits`,
    /// `trapped-pages`.
    pub name: String,
    /// Samples taken.
    pub taken: u64,
    /// Of these, samples that yielded a data address.
    pub usable: u64,
    /// Samples the kernel or a full buffer dropped.
    pub lost: u64,
    /// Time the source itself used, in our processes.
    pub cost: Nanos,
    /// What it is known to cost the program, in words with its origin.
    pub cost_note: String,
    /// Why it is off or weaker than it could be; empty where all is well.
    pub warning: String,
}

/// All that was seen in one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Which epoch.
    pub epoch: Epoch,
    /// How long it took.
    pub span: Nanos,
    /// Every site known so far whose numbers changed, with cumulative numbers. `peak_rss` follows
    /// from the extents, and is zero here but where the program itself saw more.
    pub sites: Vec<Site>,
    /// Every extent there is now, of every live process (not only the changed ones).
    pub extents: Vec<Extent>,
    /// Accesses seen.
    pub samples: Vec<Sample>,
    /// Counters, cumulative.
    pub counts: Vec<Count>,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}
