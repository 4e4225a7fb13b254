//! Staged copy: moves memory of this process to another node by a copy into resident pages and a change of page
//! tables, so that addresses stay and each byte is copied once.
//!
//! The paper's migration (ATMem, section 5) copies twice and touches fresh pages twice; fresh pages cost more
//! than the copies. Here the target pages come from a pool that recycles the pages freed by earlier moves
//! ([`StagedSettings::units`]), huge pages are replaced by huge pages, and the copy is correct while the
//! program reads and writes.
//!
//! | method | needs | while a unit moves | detects devices' pins |
//! |---|---|---|---|
//! | [`CopyMethod::Exchange`] | Linux 6.8 | accesses wait for the copy | yes: such a unit stays |
//! | [`CopyMethod::Traces`] | Linux 6.7 | accesses wait for the last pages | no |
//! | [`CopyMethod::Hold`] | Linux 5.7 | writers wait for the copy | no |
//! | [`CopyMethod::Remap`] | Linux 5.7 | accesses wait for the copy | no |
//!
//! All need a userfaultfd that serves the kernel's own accesses. The first that the kernel supports is used;
//! [`StagedCopy::method`] reports which. `Remap` is used only on request: the fastest with small pages, because
//! whole page tables change places and no page is checked.
//!
//! Nothing here allocates after [`StagedCopy::open`], and the helpers are bare threads ([`crate::thread`]), so
//! that the preloaded library may use it inside any program. It is in `sys` because two crates that must not
//! depend on each other need it, `runtime` and `act`.
//!
//! *Fork*: a child that is made while a unit moves would find it missing, so a thread that forks holds the
//! [`ForkLock`]. A mover belongs to its process; a child opens its own.
//!
//! *Cannot be moved this way*, and is denied: files, shared memory, hugetlb, locked memory, memory without
//! write permission. The kernel's migration can move most of that.

mod copy_workers;
mod exchange;
mod fork_lock;
mod limits;
mod pool;
mod rounds;
#[cfg(test)]
mod tests;
mod two_copies;
mod unit_pages;

use core::ops::Range;

pub use fork_lock::{Exclusion, ForkLock};
pub use limits::mappings;
pub use pool::PageKind;
pub use unit_pages::UNIT_BYTES;

use copy_workers::Crew;
use limits::Limits;
use pool::{Pool, Shortage, State, Whereabouts};
use unit_pages::{PAGE_BYTES, Reader, View};

use crate::userfaultfd::{Features, OpenError, Userfaultfd};

/// Reported for locked memory where the method would not notice it.
const LOCKED: UnitFate = UnitFate::Denied(
    "the process locks memory (mlock), and this method cannot move a part of it safely; kernel \
     migration can",
);
/// Reported for a unit whose page table could not be read.
const UNREADABLE: UnitFate = UnitFate::Busy("the page table cannot be read at the moment");

/// The method of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyMethod {
    /// Take the pages away, copy, put the copy in place (`UFFDIO_MOVE`).
    Exchange,
    /// Copy in rounds, by traces of writes, then a short stop (`mremap`).
    Traces,
    /// Hold writers, copy, then a short stop (`mremap`).
    Hold,
    /// Take the page tables away, copy, map the copy (`mremap`).
    Remap,
}

impl CopyMethod {
    /// All methods, best first.
    pub const ALL: [Self; 4] = [Self::Exchange, Self::Traces, Self::Hold, Self::Remap];

    /// Its name in outputs and on command lines.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exchange => "exchange",
            Self::Traces => "traces",
            Self::Hold => "hold",
            Self::Remap => "remap",
        }
    }

    const fn features(self) -> Features {
        match self {
            Self::Exchange => Features::MOVE,
            Self::Traces => Features::WRITE_TRACE,
            Self::Hold => Features::WRITE_PROTECT,
            Self::Remap => Features::MISSING,
        }
    }

    const fn traces(self) -> bool {
        matches!(self, Self::Traces)
    }

    /// Whether pages are write-protected before the stop.
    const fn protects(self) -> bool {
        matches!(self, Self::Traces | Self::Hold)
    }

    const fn sees_locks(self) -> bool {
        matches!(self, Self::Exchange)
    }

    const fn registers_slots(self) -> bool {
        matches!(self, Self::Exchange)
    }
}

/// Settings of a mover.
#[derive(Clone, Copy, Debug)]
pub struct StagedSettings {
    /// Threads that copy, the caller's included; at least 1.
    pub threads: usize,
    /// Units of the pool: memory that is held ready, 2 MiB each. At least 4.
    pub units: usize,
    /// This method and no other; `None` for the best that the kernel has.
    pub method: Option<CopyMethod>,
    /// Also move memory that is on the node already: for machines of one node, to test and to measure.
    pub even_if_there: bool,
}

impl StagedSettings {
    /// Two threads, 32 MiB of pool, the best method.
    pub const DEFAULT: Self = Self {
        threads: 2,
        units: 16,
        method: None,
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
    /// Rounds of copying after the first.
    pub rounds: u32,
    /// Nanoseconds during which the unit could not be touched.
    pub stop_ns: u64,
}

/// The result for a unit; reasons are whole sentences without their full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitFate {
    /// It is on the node now.
    Moved(Work),
    /// It was there before.
    AlreadyThere,
    /// Not now; try again.
    Busy(&'static str),
    /// Not this way, ever.
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

impl View {
    fn page_kind(&self) -> PageKind {
        match self.huge {
            Some(true) => PageKind::Huge,
            Some(false) => PageKind::Small,
            // Where the kernel reports nothing: a huge target never harms a unit that is all resident.
            None if self.there.is_full() => PageKind::Huge,
            None => PageKind::Small,
        }
    }
}

/// Why a mover could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StagedError {
    /// No userfaultfd that serves the kernel's own accesses: needs `CAP_SYS_PTRACE`,
    /// `vm.unprivileged_userfaultfd=1` or access to `/dev/userfaultfd`.
    NoUserfaultfd(rustix::io::Errno),
    /// The kernel is older than the method (or than 5.7).
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
            Self::OldKernel => write!(
                f,
                "this kernel lacks what the method needs: Linux 6.8 for exchange, 6.7 for traces, \
                 5.7 for hold and remap"
            ),
            Self::NoPagemap => write!(f, "/proc/self/pagemap cannot be read; mount /proc"),
            Self::NoResources => write!(
                f,
                "no threads or address space for the copy, or pages are not of 4 KiB"
            ),
        }
    }
}

impl std::error::Error for StagedError {}

/// A range of this process's memory whose owner has promised that it may be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Movable(Range<usize>);

impl Movable {
    /// Declares a range movable.
    ///
    /// # Safety
    /// For as long as this or a part of it is used: the range belongs to the program, which may read and write
    /// it, but does not unmap, remap, protect, lock or discard (`MADV_DONTNEED`) it while a unit moves; no code
    /// holds Rust references into it except to atomics; and with [`CopyMethod::Traces`] or
    /// [`CopyMethod::Hold`], no device writes to it.
    #[must_use]
    pub const unsafe fn declare(range: Range<usize>) -> Self {
        Self(range)
    }

    /// A part of it; `None` where the part is not within it.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        let within = self.0.start <= range.start && range.end <= self.0.end;
        (within && range.start <= range.end).then_some(Self(range))
    }

    /// Its addresses.
    #[must_use]
    pub const fn range(&self) -> &Range<usize> {
        &self.0
    }
}

/// Moves memory of this process. One thread uses it.
pub struct StagedCopy {
    settings: StagedSettings,
    method: CopyMethod,
    uffd: Userfaultfd,
    reader: Reader,
    pool: Pool,
    crew: Crew,
    limits: Limits,
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
        let (method, uffd) = best(settings.method, &reader)?;
        // Another thread must call the `mremap` whose message this thread waits for.
        let least = usize::from(method.traces());
        let helpers = settings.threads.saturating_sub(1).max(least);
        let crew = Crew::start(helpers).map_err(|_| StagedError::NoResources)?;
        if crew.helpers() < least {
            return Err(StagedError::NoResources);
        }
        let pool = Pool::reserve(settings.units.max(4)).map_err(|_| StagedError::NoResources)?;
        Ok(Self {
            settings,
            method,
            uffd,
            reader,
            pool,
            crew,
            limits: Limits::read(),
        })
    }

    /// Whether to move memory that is on the node already ([`StagedSettings::even_if_there`]).
    pub const fn set_even_if_there(&mut self, even_if_there: bool) {
        self.settings.even_if_there = even_if_there;
    }

    /// Releases the pool's memory, which otherwise waits for the next move on nodes that may have little of it.
    pub fn empty(&mut self) {
        self.pool.release_all();
    }

    /// The method in use.
    #[must_use]
    pub const fn method(&self) -> CopyMethod {
        self.method
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

    /// As [`Self::move_range`], of memory that was declared movable.
    pub fn move_declared(
        &mut self,
        movable: &Movable,
        node: u32,
        gate: &impl Exclusion,
        each: impl FnMut(Range<usize>, UnitFate),
    ) {
        // SAFETY: `Movable::declare` has every promise that is needed here.
        unsafe { self.move_range(movable.0.clone(), node, gate, each) }
    }

    /// Moves every whole unit of a range and calls `each` with the result of each part, in order; the parts
    /// cover the range. `gate` is held for each unit.
    ///
    /// # Safety
    /// As for [`Movable::declare`].
    pub unsafe fn move_range(
        &mut self,
        range: Range<usize>,
        node: u32,
        gate: &impl Exclusion,
        mut each: impl FnMut(Range<usize>, UnitFate),
    ) {
        const EDGE: &str = "less than a whole 2 MiB; kernel migration can move it";
        let first = range.start.next_multiple_of(UNIT_BYTES).min(range.end);
        let last = (range.end / UNIT_BYTES * UNIT_BYTES).max(first);
        let locked = !self.method.sees_locks() && limits::locks_memory();
        if first > range.start {
            each(range.start..first, UnitFate::NotAttempted(EDGE));
        }
        for unit in (first..last).step_by(UNIT_BYTES) {
            let fate = if locked {
                LOCKED
            } else {
                // SAFETY: the caller's promise.
                unsafe { self.move_unit(unit, node, gate) }
            };
            each(unit..unit + UNIT_BYTES, fate);
        }
        if range.end > last {
            each(last..range.end, UnitFate::NotAttempted(EDGE));
        }
    }

    unsafe fn move_unit(&mut self, unit: usize, node: u32, gate: &impl Exclusion) -> UnitFate {
        gate.enter();
        // SAFETY: the caller's promise.
        let fate = unsafe { self.move_unit_held(unit, node) };
        gate.leave();
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
        if self.method == CopyMethod::Exchange {
            // SAFETY: the caller's promise.
            return unsafe { self.exchange(unit, node, &view, source) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.remap(unit, node, &view, source) }
    }

    /// Whether the pool may keep one more full slot: a move needs two.
    fn keeps_another(&self) -> bool {
        self.pool.count(|slot| slot.state == State::Ready) + 2 < self.settings.units.max(4)
    }
}

/// Opens the descriptors of the requested method, or of the best available one.
fn best(
    wanted: Option<CopyMethod>,
    reader: &Reader,
) -> Result<(CopyMethod, Userfaultfd), StagedError> {
    let mut error = StagedError::OldKernel;
    for method in CopyMethod::ALL {
        let chosen = wanted.is_none_or(|wanted| wanted == method);
        let needs_scans = matches!(method, CopyMethod::Exchange | CopyMethod::Traces);
        if !chosen || (needs_scans && !reader.scans()) {
            continue;
        }
        match Userfaultfd::with(method.features()) {
            Ok(uffd) => return Ok((method, uffd)),
            Err(OpenError::NoMove) => {}
            Err(OpenError::Unavailable(why)) => error = StagedError::NoUserfaultfd(why),
        }
    }
    Err(error)
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
