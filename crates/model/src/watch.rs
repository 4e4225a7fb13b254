//! What watching whole processes from outside yields: the arrow from `observe` to the daemon's step.
//!
//! A *unit* is the piece of memory that the daemon decides about and moves as a whole: an aligned
//! range of one process, a huge page by default. What the sources see is told of ranges of any
//! size; the step spreads it over the units in them.
//!
//! ```text
//! unit        |     0     |     1     |     2     |     3     |
//! held        | 2 MiB, 0  | 2 MiB, 0  |    -      | 1 MiB, all|   resident, and on fast nodes
//! sighting    |<------- 40 hits ----->|                           a range of accessed bits
//! sighting                   ^ 1                                  a sample
//! ```

use std::collections::BTreeMap;

use crate::batch::{Epoch, Process, SourceReport};
use crate::movement::AddressRange;
use crate::units::{Bytes, Nanos};

/// A piece of memory that is moved as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Whose.
    pub process: Process,
    /// Its first address, a multiple of the size of units.
    pub start: u64,
}

/// Which kind of source saw an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// A page's accessed bit was found set: one hit a page and look.
    AccessedBits,
    /// A sample of the access itself: one hit a sample.
    TraceSamples,
}

impl SourceKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::AccessedBits, Self::TraceSamples];

    /// Its name in settings, reports and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccessedBits => "accessed-bits",
            Self::TraceSamples => "trace-samples",
        }
    }

    /// Its name in a sentence.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::AccessedBits => "accessed bits",
            Self::TraceSamples => "trace samples",
        }
    }
}

/// Accesses that a source saw in a range in one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessReport {
    /// Whose memory.
    pub process: Process,
    /// Where. The source cannot tell its parts apart.
    pub range: AddressRange,
    /// How many in the range together.
    pub hits: u64,
    /// By which kind of source.
    pub kind: SourceKind,
    /// Physical address of what was accessed, where the source tells it.
    pub physical: Option<u64>,
}

/// What a process holds in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitResidency {
    /// Which unit.
    pub unit: Unit,
    /// Bytes of it that are resident, at least one and at most its size.
    pub resident: Bytes,
    /// Of these, bytes on the fast tier's nodes.
    pub fast: Bytes,
    /// Bytes of the aligned range that the kernel moves as a whole: the unit's own size, or that of
    /// the huge page it is a part of.
    pub grain: Bytes,
}

/// What was seen of a unit in an epoch, for pictures of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitHeat {
    /// Which.
    pub unit: Unit,
    /// Bytes resident.
    pub resident: Bytes,
    /// Of these, bytes in the fast tier when the epoch's moves were done.
    pub fast: Bytes,
    /// Hits by [`SourceKind`], in its order.
    pub hits: [u64; 2],
}

/// Samples of a process whose page was asked for when they were taken in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Of which it is known on which node the page lay.
    pub samples: u64,
    /// Of these, on a node of the fast tier.
    pub fast: u64,
}

/// A process that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Which.
    pub process: Process,
    /// Its program, as the kernel names it, for people.
    pub name: String,
    /// The control group it is in, empty where there is none.
    pub control_group: String,
    /// Why its memory or its accesses cannot be seen; empty where all is well.
    pub warning: String,
}

/// All that was seen in one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Which epoch.
    pub epoch: Epoch,
    /// How long it took.
    pub span: Nanos,
    /// The processes that are watched now. What a process held that is not named is forgotten.
    pub processes: Vec<Watched>,
    /// What they hold, each unit once.
    pub residency: Vec<UnitResidency>,
    /// What was accessed.
    pub access_reports: Vec<AccessReport>,
    /// Where trace samples of the epoch lay when they were taken, by process; empty where that was not asked.
    pub placed: BTreeMap<Process, Placed>,
    /// Bytes of the fast tier that watched processes may use, what they hold there now included.
    pub capacity: Bytes,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}
