//! [`PagedObservation`] is the input of the choice of memory to page out, once an epoch: processes and accesses, the bytes of each unit in
//! memory, in compressed memory or another swap area, and returned from there ([`PagedUnit`]), the time stalled on memory, and the control
//! groups with a limit ([`LimitedGroup`]). [`RefaultCosts`] has the times of a page's way out and back; [`IN_MEMORY`] and [`PAGED_OUT`] are
//! the targets of the moves.
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
    /// Bytes in memory that were in swap at the last scan: the program touched them.
    pub returned: Bytes,
    /// Bytes of the aligned range that leave memory as a whole: the unit's own size, or that of the huge page it is a part of.
    pub grain: Bytes,
    /// True where a part of it is in huge pages.
    pub has_huge: bool,
}

impl PagedUnit {
    /// Bytes in memory and in swap.
    #[must_use]
    pub const fn all(&self) -> Bytes {
        Bytes(self.present.0.saturating_add(self.out.0))
    }
}

/// The time that the way of a 4 KiB page out of memory and back takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefaultCosts {
    /// Time out of memory, in the thread that asks for it.
    pub out: Nanos,
    /// Time back to memory, for which the program's thread that touches the page waits.
    pub back: Nanos,
}

/// A control group whose owner limits its memory. At the limit the kernel reclaims the least recently used pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedGroup {
    /// Its path in the hierarchy: `/system.slice/app.service`.
    pub name: String,
    /// The directory of its files. Hierarchies of version 1 and 2 may have a group of the same name.
    pub directory: PathBuf,
    /// The lowest of its limits: `memory.high`, `memory.max`, or `memory.limit_in_bytes` of version 1.
    pub limit: Bytes,
    /// Its memory without cached files, which the kernel drops before it pages out.
    pub without_files: Bytes,
    /// The watched processes in it and in groups below it.
    pub processes: BTreeSet<Process>,
}

/// All observations of one epoch, by which the units to page out are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PagedObservation {
    /// Processes and accesses. The residency and the capacity in it are not used.
    pub seen: Observation,
    /// The memory of the processes, each unit once.
    pub units: Vec<PagedUnit>,
    /// Time for which the program's control group stalled on memory, where the kernel reports it.
    pub stalled: Option<Nanos>,
    /// The control groups with a limit to which the processes belong.
    pub groups: Vec<LimitedGroup>,
}
