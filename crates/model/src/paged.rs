//! Memory of which a part is paged out: to compressed memory, or to another swap area.
//!
//! ```text
//! unit        |     0     |     1     |
//! present     | 2 MiB     | 64 KiB    |     in memory
//! out         | -         | 1,984 KiB |     in swap
//! returned    | -         | 64 KiB    |     of what is present: came back since the last scan, as the program touched it
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::batch::Process;
use crate::movement::NodeId;
use crate::units::{Bytes, Nanos};
use crate::watch::{Observation, Unit};

/// The target of a [`RangeAction`](crate::movement::RangeAction) that brings pages back to memory.
pub const IN_MEMORY: NodeId = NodeId(0);
/// The target of a range action that pages memory out.
pub const PAGED_OUT: NodeId = NodeId(1);

/// The memory of a process in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedUnit {
    /// The unit.
    pub unit: Unit,
    /// Bytes in memory.
    pub present: Bytes,
    /// Bytes in swap.
    pub out: Bytes,
    /// Of those in memory, bytes that were in swap at the last scan: the program touched them.
    pub returned: Bytes,
    /// Bytes of the aligned range that leave memory as a whole: the unit's own size, or that of the huge page it is a part of.
    pub grain: Bytes,
    /// True where a part of it is in huge pages.
    pub has_huge: bool,
}

impl PagedUnit {
    /// Bytes of both kinds.
    #[must_use]
    pub const fn all(&self) -> Bytes {
        Bytes(self.present.0.saturating_add(self.out.0))
    }
}

/// The time that a page of 4 KiB takes on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefaultCosts {
    /// Out of memory, in the thread that asks for it.
    pub out: Nanos,
    /// Back: the program's thread that touches it waits for it.
    pub back: Nanos,
}

/// A control group whose owner limits its memory. Where it reaches the limit, the kernel reclaims what was least recently used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedGroup {
    /// Its path in the hierarchy: `/system.slice/app.service`.
    pub name: String,
    /// The directory of its files. Hierarchies of both versions may have a group of one name.
    pub directory: PathBuf,
    /// The least of its limits: `memory.high`, `memory.max`, or `memory.limit_in_bytes` of version 1.
    pub limit: Bytes,
    /// Its memory without cached files, which the kernel drops before it pages out.
    pub without_files: Bytes,
    /// The watched processes in it and in groups below it.
    pub processes: BTreeSet<Process>,
}

/// All observations of one epoch, for the decision which units are paged out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PagedObservation {
    /// Processes and accesses. Its residency and capacity are not used.
    pub seen: Observation,
    /// The memory of the processes, each unit once.
    pub units: Vec<PagedUnit>,
    /// Time for which the program's control group stalled on memory, where the kernel tells.
    pub stalled: Option<Nanos>,
    /// The control groups with a limit that the processes are in.
    pub groups: Vec<LimitedGroup>,
}
