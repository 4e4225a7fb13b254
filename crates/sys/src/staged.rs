//! [`StagedCopy`] moves memory of this process to another node, 2 MiB at a time, by a copy into resident pages and a change of page tables
//! (`UFFDIO_MOVE`), so that addresses stay and each byte is copied once. The runtime uses it inside the programs that it is loaded into.
//!
//! The paper's migration (ATMem, section 5) copies twice and touches fresh pages twice; fresh pages cost more
//! than the copies. Here the target pages come from a pool that recycles the pages freed by earlier moves
//! ([`StagedSettings::units`]), huge pages are replaced by huge pages, and the copy is correct while the
//! program reads and writes.
//!
//! A unit is moved by `UFFDIO_MOVE` (Linux 6.8; `exchange`): accesses wait for the copy, and pages that a device
//! writes to are detected and stay. It needs a userfaultfd that serves the kernel's own accesses.
//!
//! Nothing here allocates after [`StagedCopy::open`], and the helpers are bare threads ([`crate::thread`]), so
//! that the preloaded library may use it inside any program. It is in `sys` because it is unsafe code throughout.
//!
//! *Fork*: a child that is made while a unit moves would find it missing, so a thread that forks
//! takes part in the [`Exclusion`]. A mover belongs to its process; a child opens its own.
//!
//! *Rejected*: copies in rounds, by write traces or with writers held, and a change of page tables by `mremap`, for
//! kernels before 6.8. They detect no devices, leave a mapping behind for each unit, and those kernels have
//! [kernel migration](crate::pages).
//!
//! *Cannot be moved this way*, and is denied: files, shared memory, hugetlb, locked memory, memory without
//! write permission. The kernel's migration can move most of that.

mod copy_workers;
mod exchange;
mod pool;
#[cfg(test)]
mod tests;
mod unit_pages;

use core::ops::Range;

pub use copy_workers::UNIT_PIECES;
pub use unit_pages::{PageKind, UNIT_BYTES};

use copy_workers::Crew;
use pool::{Pool, Shortage, State, Whereabouts};
use unit_pages::{PAGE_BYTES, Reader};

use crate::userfaultfd::{OpenError, Userfaultfd};

/// Reported for a unit whose page table could not be read.
const UNREADABLE: UnitFate = UnitFate::Busy("the page table cannot be read at the moment");

/// Mutual exclusion between a mover and all operations that its units must not meet: a fork, and calls that
/// change the range's mapping or discard its contents.
pub trait Exclusion {
    /// Waits until no other thread is in, and enters.
    fn enter(&self);
    /// Leaves.
    fn leave(&self);
}

/// Settings of a mover.
#[derive(Clone, Copy, Debug)]
pub struct StagedSettings {
    /// Threads that copy, the caller's included: 1 to [`UNIT_PIECES`]; see [`StagedCopy::set_threads`].
    pub threads: usize,
    /// Units of the pool: memory that is held ready, 2 MiB each. At least 4.
    pub units: usize,
    /// Also move memory that is on the node already: for machines of one node, to test and to measure.
    pub even_if_there: bool,
}

impl StagedSettings {
    /// Two threads, 32 MiB of pool.
    pub const DEFAULT: Self = Self {
        threads: 2,
        units: 16,
        even_if_there: false,
    };
}

/// The statistics of a moved unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Small pages in the unit.
    pub pages: u32,
    /// Its page size.
    pub kind: PageKind,
    /// Nanoseconds during which the unit could not be touched.
    pub stop_ns: u64,
}

/// The result for a unit; reasons are whole sentences without their full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFate {
    /// The unit is on the node now.
    Moved(Work),
    /// The unit was on the node before.
    AlreadyThere,
    /// The unit cannot be moved now; try again.
    Busy(&'static str),
    /// The unit can never be moved this way.
    Denied(&'static str),
    /// The program has not touched it: there is nothing to move.
    NotTouched,
    /// Nothing was tried.
    NotAttempted(&'static str),
}

impl From<Shortage> for UnitFate {
    fn from(shortage: Shortage) -> Self {
        Self::Busy(match shortage {
            Shortage::Slots => "the pool of the staged copy is in use",
            Shortage::Node => "the target node has no room",
            Shortage::HugePage => "the target node has no free huge page",
            Shortage::Memory => "the kernel has no memory for a target page or a mapping",
        })
    }
}

/// Why a mover could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagedError {
    /// No userfaultfd that serves the kernel's own accesses: needs `CAP_SYS_PTRACE`,
    /// `vm.unprivileged_userfaultfd=1` or access to `/dev/userfaultfd`.
    NoUserfaultfd(rustix::io::Errno),
    /// The kernel is older than Linux 6.8.
    OldKernel,
    /// The page table cannot be read: no `/proc`, or not allowed.
    NoPagemap,
    /// Pages are not 4 KiB, or no thread or address space is available.
    NoResources,
}

impl core::fmt::Display for StagedError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoUserfaultfd(error) => write!(
                f,
                "userfaultfd cannot be opened ({error}); allow it with CAP_SYS_PTRACE, \
                 vm.unprivileged_userfaultfd=1 or access to /dev/userfaultfd"
            ),
            Self::OldKernel => write!(f, "this kernel lacks UFFDIO_MOVE (Linux 6.8)"),
            Self::NoPagemap => write!(f, "/proc/self/pagemap cannot be read; mount /proc"),
            Self::NoResources => write!(
                f,
                "no threads or address space for the copy, or pages are not of 4 KiB"
            ),
        }
    }
}

impl std::error::Error for StagedError {}

/// Moves memory of this process. One thread uses it.
pub struct StagedCopy {
    settings: StagedSettings,
    uffd: Userfaultfd,
    reader: Reader,
    pool: Pool,
    crew: Crew,
}

impl StagedCopy {
    /// Opens descriptors, reserves the pool and starts the helpers. In a thread with a table of
    /// descriptors of its own, that thread opens and uses it.
    ///
    /// # Errors
    /// [`StagedError`], which states what is missing.
    pub fn open(settings: StagedSettings) -> Result<Self, StagedError> {
        if rustix::param::page_size() != PAGE_BYTES {
            return Err(StagedError::NoResources);
        }
        let reader = Reader::open().map_err(|_| StagedError::NoPagemap)?;
        if !reader.scans() {
            return Err(StagedError::OldKernel);
        }
        let uffd = Userfaultfd::open().map_err(|error| match error {
            OpenError::NoMove => StagedError::OldKernel,
            OpenError::Unavailable(why) => StagedError::NoUserfaultfd(why),
        })?;
        let mut crew = Crew::new().map_err(|_| StagedError::NoResources)?;
        crew.set_helpers(settings.threads.saturating_sub(1));
        let pool = Pool::reserve(settings.units.max(4)).map_err(|_| StagedError::NoResources)?;
        Ok(Self {
            settings,
            uffd,
            reader,
            pool,
            crew,
        })
    }

    /// Whether to move memory that is on the node already ([`StagedSettings::even_if_there`]).
    pub const fn set_even_if_there(&mut self, even_if_there: bool) {
        self.settings.even_if_there = even_if_there;
    }

    /// Starts or ends helpers, so that this many threads copy, the caller's included: 1 to [`UNIT_PIECES`], and what
    /// is less or more counts as these. Returns the number that copy now: fewer where the system has no more threads
    /// or memory for one. Helpers that end are gone from the process, and their stacks from its memory, when this
    /// returns. A helper may run on the processors of the caller.
    pub fn set_threads(&mut self, threads: usize) -> usize {
        self.crew.set_helpers(threads.saturating_sub(1));
        self.threads()
    }

    /// Threads that copy, the caller's included.
    #[must_use]
    pub fn threads(&self) -> usize {
        1 + self.crew.helpers()
    }

    /// Nanoseconds of processor time that the helpers have taken so far, those that ended included. What a helper
    /// takes is counted when it goes to sleep, and when it sees the next unit.
    #[must_use]
    pub fn helpers_ns(&self) -> u64 {
        self.crew.helpers_ns()
    }

    /// Releases the pool's memory, which otherwise waits for the next move on nodes that may have little of it.
    pub fn empty(&mut self) {
        self.pool.release_all();
    }

    /// Makes units of the pool ready before they are needed; returns the number that are ready then. Stops
    /// where the node has no more room, or the pool two free slots.
    pub fn fill(&mut self, node: u32, kind: PageKind, units: usize) -> usize {
        let ready = |pool: &Pool| {
            pool.count(|s| s.state == State::Ready && s.kind == kind && s.node == node)
        };
        while ready(&self.pool) < units && self.keeps_another() {
            if self.make_ready(kind, node).is_err() {
                break;
            }
        }
        ready(&self.pool)
    }

    /// Moves every whole unit of a range and calls `each` with the result of each part, in order; the parts
    /// cover the range. `exclusion` is held for each unit.
    ///
    /// # Safety
    /// The range belongs to the program, which may read and write it, but does not unmap, remap, protect, lock or
    /// discard (`MADV_DONTNEED`) it while a unit moves; no code holds Rust references into it except to atomics.
    pub unsafe fn move_range(
        &mut self,
        range: Range<usize>,
        node: u32,
        exclusion: &impl Exclusion,
        mut each: impl FnMut(Range<usize>, UnitFate),
    ) {
        const EDGE: &str = "less than a whole 2 MiB; kernel migration can move it";
        let first = range.start.next_multiple_of(UNIT_BYTES).min(range.end);
        let last = (range.end / UNIT_BYTES * UNIT_BYTES).max(first);
        if first > range.start {
            each(range.start..first, UnitFate::NotAttempted(EDGE));
        }
        for unit in (first..last).step_by(UNIT_BYTES) {
            // SAFETY: the caller's promise.
            let fate = unsafe { self.move_unit(unit, node, exclusion) };
            each(unit..unit + UNIT_BYTES, fate);
        }
        if range.end > last {
            each(last..range.end, UnitFate::NotAttempted(EDGE));
        }
    }

    unsafe fn move_unit(&mut self, unit: usize, node: u32, exclusion: &impl Exclusion) -> UnitFate {
        exclusion.enter();
        // SAFETY: the caller's promise.
        let fate = unsafe { self.move_unit_held(unit, node) };
        exclusion.leave();
        fate
    }

    unsafe fn move_unit_held(&mut self, unit: usize, node: u32) -> UnitFate {
        let Ok(view) = self.reader.view(unit) else {
            return UNREADABLE;
        };
        if view.file {
            return UnitFate::Denied(
                "a file or shared memory is mapped there; kernel migration can move it",
            );
        }
        if view.there.count() == 0 {
            return UnitFate::NotTouched;
        }
        let kind = view.page_kind();
        let source = Whereabouts::of(unit, kind);
        let on_node = Whereabouts::On(node);
        if !self.settings.even_if_there
            && source == on_node
            && Whereabouts::exactly(unit, kind) == on_node
        {
            return UnitFate::AlreadyThere;
        }
        // SAFETY: the caller's promise.
        unsafe { self.exchange(unit, node, &view, source) }
    }

    /// Whether the pool may keep one more full slot: a move needs two.
    fn keeps_another(&self) -> bool {
        self.pool.count(|slot| slot.state == State::Ready) + 2 < self.settings.units.max(4)
    }
}
