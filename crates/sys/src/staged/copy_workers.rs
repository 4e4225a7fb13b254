//! A `Crew` copies the pages of a 2 MiB unit for a mover ([`super::StagedCopy`]), by the calling thread and helpers that it starts.
//!
//! A job is cut into pieces that each free thread takes; the caller takes pieces too, so that a job ends even
//! where no helper gets a processor. A late helper finds no piece and goes back to sleep; no thread waits for
//! it.
//!
//! Helpers are started and ended while the mover lives. The caller waits until the ending helpers are gone from the
//! process: no other sign says that a thread has left its stack.
//!
//! ```text
//! claim   | number of the job (32 bits) | next piece (32 bits) |    taken by compare and swap
//! ```

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use rustix::thread::futex;

use super::unit_pages::{PAGE_BYTES, UnitPages, WORDS};
use crate::clock::thread_ns;
use crate::memory;
use crate::thread::{Stack, is_there, settle_bare, spawn};

/// Pieces in which a unit is copied, each by one thread: a further thread would have nothing to copy.
pub const UNIT_PIECES: usize = WORDS;
/// The caller takes pieces, too.
const HELPERS_AT_MOST: usize = UNIT_PIECES - 1;

/// A helper calls memcpy and futex: a small stack is enough.
const STACK_BYTES: usize = 64 << 10;
/// Checks before a thread sleeps or yields, some 150 us: longer than the move of one unit's page tables between
/// two copies. A wake-up of a helper takes a good part of the time of its copy.
const SPINS: u32 = 10_000;

/// The state shared by caller and helpers. Lives for ever, in its own mapping.
struct JobQueue {
    /// Number of the newest job; helpers sleep on it.
    newest: AtomicU32,
    /// Set before a job without pieces, and until all helpers are gone: they end.
    ends: AtomicBool,
    claim: AtomicU64,
    finished: AtomicU32,
    /// Processor time of all helpers so far, in nanoseconds.
    helpers_ns: AtomicU64,
    from: AtomicUsize,
    to: AtomicUsize,
    pages: [AtomicU64; WORDS],
}

/// A thread that copies, and the memory that it runs on.
struct Helper {
    stack: Stack,
    /// Its number, by which it is asked whether it is gone.
    thread: i32,
}

/// The helpers of one mover.
pub(super) struct Crew {
    jobs: &'static JobQueue,
    helpers: [Option<Helper>; HELPERS_AT_MOST],
}

impl Crew {
    /// A crew without helpers: its caller copies alone.
    pub(super) fn new() -> memory::Result<Self> {
        let address = memory::fresh(size_of::<JobQueue>().next_multiple_of(PAGE_BYTES))?;
        // SAFETY: a fresh zeroed mapping, large enough and aligned to a page, never unmapped; all
        // zeroes is a valid `JobQueue`.
        let jobs = unsafe { &*core::ptr::with_exposed_provenance::<JobQueue>(address) };
        Ok(Self {
            jobs,
            helpers: [const { None }; HELPERS_AT_MOST],
        })
    }

    /// The number of helpers.
    pub(super) fn helpers(&self) -> usize {
        self.helpers.iter().flatten().count()
    }

    /// Processor time of all helpers so far, in nanoseconds.
    pub(super) fn helpers_ns(&self) -> u64 {
        self.jobs.helpers_ns.load(Ordering::Relaxed)
    }

    /// Starts or ends helpers until there are this many, at most [`HELPERS_AT_MOST`]; fewer where the system has no
    /// more threads to give.
    pub(super) fn set_helpers(&mut self, helpers: usize) {
        if helpers < self.helpers() {
            self.end();
        }
        let jobs = self.jobs;
        for place in self.helpers.iter_mut().take(helpers) {
            if place.is_none() {
                *place = Helper::start(jobs);
            }
            if place.is_none() {
                return;
            }
        }
    }

    /// Ends all helpers and waits until they are gone: a matter of microseconds, as none is at work between two
    /// copies. In a child of the process that started them there are none, and nothing is waited for.
    fn end(&mut self) {
        if self.helpers() == 0 {
            return;
        }
        self.jobs.ends.store(true, Ordering::Release);
        // A helper that is started later must find no piece of this job.
        self.jobs.announce(UNIT_PIECES as u32);
        let process = rustix::process::getpid().as_raw_nonzero().get();
        for helper in self.helpers.iter_mut().filter_map(Option::take) {
            while is_there(process, helper.thread) {
                rustix::thread::sched_yield();
            }
            // SAFETY: its one thread is gone from the process, so it has left the stack for ever.
            unsafe { helper.stack.unmap() };
        }
        self.jobs.ends.store(false, Ordering::Release);
    }

    /// Copies these pages of a unit. A thread that writes to `from` meanwhile may leave a torn page in the
    /// copy; the caller copies it again.
    ///
    /// # Safety
    /// Both units are mapped, the pages of `from` readable and those of `to` writable without waiting for the
    /// caller; no thread reads `to`.
    pub(super) unsafe fn copy(&self, from: usize, to: usize, pages: &UnitPages) {
        if self.helpers() == 0 || pages.count() <= 64 {
            for word in 0..WORDS {
                copy_word(from, to, word, pages.0[word]);
            }
            return;
        }
        let job = self.publish(from, to, pages);
        while let Some(piece) = self.jobs.take(job) {
            self.jobs.copy_piece(piece);
        }
        let mut spins = 0;
        while self.jobs.finished.load(Ordering::Acquire) < WORDS as u32 {
            spins += 1;
            if spins < SPINS {
                core::hint::spin_loop();
            } else {
                // A helper was preempted in the middle of a piece.
                std::thread::yield_now();
            }
        }
    }

    fn publish(&self, from: usize, to: usize, pages: &UnitPages) -> u32 {
        let jobs = self.jobs;
        jobs.from.store(from, Ordering::Relaxed);
        jobs.to.store(to, Ordering::Relaxed);
        for (word, bits) in jobs.pages.iter().zip(pages.0) {
            word.store(bits, Ordering::Relaxed);
        }
        jobs.finished.store(0, Ordering::Relaxed);
        jobs.announce(0)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.end();
    }
}

impl Helper {
    /// `None` where the system has no memory or no thread to give.
    fn start(jobs: &'static JobQueue) -> Option<Self> {
        let stack = Stack::map(STACK_BYTES).ok()?;
        let argument = core::ptr::from_ref(jobs).cast_mut().cast();
        // SAFETY: the stack is fresh, `help` keeps to the rules of bare threads, and the job queue lives for ever.
        match unsafe { spawn(&stack, help, argument) } {
            Ok(thread) => Some(Self { stack, thread }),
            Err(_) => {
                // SAFETY: no thread was started on it.
                unsafe { stack.unmap() };
                None
            }
        }
    }
}

impl JobQueue {
    /// Makes a new job known, of which this many pieces are taken already, and wakes the helpers. Returns the job's
    /// number.
    fn announce(&self, taken: u32) -> u32 {
        let job = self.newest.load(Ordering::Relaxed).wrapping_add(1);
        let claim = u64::from(job) << 32 | u64::from(taken);
        self.claim.store(claim, Ordering::Release);
        self.newest.store(job, Ordering::Release);
        let _ = futex::wake(&self.newest, futex::Flags::PRIVATE, u32::MAX >> 1);
        job
    }

    /// Takes the next piece of a job, a word of the bitmap: 64 pages, 256 KiB. `None` once all are taken or the job has
    /// changed.
    fn take(&self, job: u32) -> Option<u32> {
        let mut claim = self.claim.load(Ordering::Acquire);
        loop {
            let piece = claim as u32;
            if (claim >> 32) as u32 != job || piece >= WORDS as u32 {
                return None;
            }
            match self.claim.compare_exchange_weak(
                claim,
                claim + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(piece),
                Err(now) => claim = now,
            }
        }
    }

    fn copy_piece(&self, piece: u32) {
        let (from, to) = (
            self.from.load(Ordering::Relaxed),
            self.to.load(Ordering::Relaxed),
        );
        let bits = self.pages[piece as usize].load(Ordering::Relaxed);
        copy_word(from, to, piece as usize, bits);
        self.finished.fetch_add(1, Ordering::AcqRel);
    }

    /// Adds the processor time that the calling helper has taken since it was last counted.
    fn count_time(&self, counted_ns: &mut u64) {
        let now_ns = thread_ns();
        self.helpers_ns
            .fetch_add(now_ns.saturating_sub(*counted_ns), Ordering::Relaxed);
        *counted_ns = now_ns;
    }
}

/// Copies the pages of one word of the bitmap, each run of neighbours at once.
fn copy_word(from: usize, to: usize, word: usize, bits: u64) {
    let base = word * 64 * PAGE_BYTES;
    for run in super::unit_pages::runs_of(bits) {
        let at = base + run.start * PAGE_BYTES;
        let source = core::ptr::with_exposed_provenance::<u8>(from + at);
        let target = core::ptr::with_exposed_provenance_mut::<u8>(to + at);
        // SAFETY: the promise of `Crew::copy`; the units do not overlap, and of a page that is written
        // meanwhile only bytes are read.
        unsafe { core::ptr::copy_nonoverlapping(source, target, run.len() * PAGE_BYTES) };
    }
}

/// The function of a helper; `argument` is a `&'static JobQueue`.
extern "C" fn help(argument: *mut c_void) {
    // SAFETY: `Helper::start` passes a reference that lives for ever.
    let jobs = unsafe { &*argument.cast::<JobQueue>() };
    // Without its own table of descriptors the helper would keep the program's open.
    if settle_bare(c"isotherm-copy").is_err() {
        return;
    }
    let (mut seen, mut counted_ns) = (0, 0);
    loop {
        let mut spins = 0;
        while jobs.newest.load(Ordering::Acquire) == seen {
            spins += 1;
            if spins < SPINS {
                core::hint::spin_loop();
            } else {
                jobs.count_time(&mut counted_ns);
                let _ = futex::wait(&jobs.newest, futex::Flags::PRIVATE, seen, None);
            }
        }
        seen = jobs.newest.load(Ordering::Acquire);
        jobs.count_time(&mut counted_ns);
        if jobs.ends.load(Ordering::Acquire) {
            return;
        }
        while let Some(piece) = jobs.take(seen) {
            jobs.copy_piece(piece);
        }
    }
}
