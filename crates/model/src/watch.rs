//! [`Observation`] holds what was observed of watched processes in one epoch: the resident and fast bytes of each [`Unit`] (a range that
//! moves as a whole), the accesses, and the fast tier's capacity; the daemon decides by it, and so do runs by an epoch policy. [`UnitHeat`]
//! is the heat of a unit for diagrams, and [`ResidentRun`] a stretch of resident pages in one tier for an *optimization*.
//!
//! A *unit* is the piece of memory that the daemon ranks and moves as a whole: an aligned range of
//! one process, a huge page by default. Sources report accesses to ranges of any size; the step
//! spreads them over the units in each range.
//! ```text
//! unit        |     0     |     1     |     2     |     3     |
//! held        | 2 MiB, 0  | 2 MiB, 0  |    -      | 1 MiB, all|   resident, and on fast nodes
//! access    |<------- 40 hits ----->|                           a range of accessed bits
//! access                   ^ 1                                  a sample
//! ```

use std::collections::BTreeMap;

use crate::batch::{Epoch, ObservedAccess, Process, SourceReport};
use crate::movement::{AddressRange, NodeId, RangeAction};
use crate::units::{Bytes, Nanos};

/// A piece of memory that is moved as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unit {
    /// Process that owns the memory.
    pub process: Process,
    /// The first address of the unit, a multiple of the size of units.
    pub start: u64,
}

impl Unit {
    /// The move of a unit of this size to a node.
    #[must_use]
    pub const fn move_to(self, node: NodeId, bytes: Bytes) -> RangeAction {
        let (process, start) = (self.process, self.start);
        RangeAction {
            process,
            range: AddressRange { start, bytes },
            node,
        }
    }
}

/// The memory of a process in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitResidency {
    /// The unit.
    pub unit: Unit,
    /// Resident bytes, at least one and at most the unit's size.
    pub resident: Bytes,
    /// Resident bytes that are on the fast tier's nodes.
    pub fast: Bytes,
    /// Bytes of the aligned range that the kernel moves as a whole: the unit's own size, or that of
    /// the huge page it is a part of.
    pub grain: Bytes,
}

/// Resident pages of a process side by side, all in one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentRun {
    /// Addresses of the pages, whole pages.
    pub range: AddressRange,
    /// Whether the pages are in the fast tier.
    pub is_fast: bool,
    /// Whether the pages are in huge pages, which the kernel moves as a whole.
    pub is_huge: bool,
}

/// The heat of a unit in one epoch, for diagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitHeat {
    /// The unit.
    pub unit: Unit,
    /// Bytes resident.
    pub resident: Bytes,
    /// Resident bytes that are in the fast tier after the epoch's moves.
    pub fast: Bytes,
    /// Hits of each [`ProfilingMethod`](crate::source_kind::ProfilingMethod), in its order.
    pub hits: [u64; 2],
}

/// Samples of a process for which the node of the page was queried when they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Samples for which the node is known.
    pub samples: u64,
    /// Samples on a node of the fast tier.
    pub fast: u64,
}

/// A process that is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// The process.
    pub process: Process,
    /// The kernel's name of its program, for people.
    pub name: String,
    /// Its control group; empty if it has none.
    pub control_group: String,
    /// Why its memory or its accesses cannot be observed; empty if they can.
    pub warning: String,
}

/// All observations of one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Number of the epoch.
    pub epoch: Epoch,
    /// Length of the epoch.
    pub span: Nanos,
    /// The processes that are watched now. The state of a process that is not listed is dropped.
    pub processes: Vec<Watched>,
    /// The resident memory of the processes, each unit once.
    pub residency: Vec<UnitResidency>,
    /// The accesses of the processes.
    pub accesses: Vec<ObservedAccess>,
    /// Nodes of trace samples when they were taken, by process; empty where they were not queried.
    pub placed: BTreeMap<Process, Placed>,
    /// Bytes of the fast tier that watched processes may use, including their present use.
    pub capacity: Bytes,
    /// Reports of the sources, cumulative.
    pub sources: Vec<SourceReport>,
}
