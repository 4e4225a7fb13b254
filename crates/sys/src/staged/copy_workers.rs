//! The threads that copy units for a mover.
//!
//! A job is cut into pieces that each free thread takes; the caller takes pieces too, so that a job ends even
//! where no helper gets a processor. A late helper finds no piece and goes back to sleep; no thread waits for
//! it.
//!
//! ```text
//! claim   | number of the job (32 bits) | next piece (32 bits) |    taken by compare and swap
//! ```

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use rustix::thread::futex;

use super::unit_pages::{PAGE_BYTES, UnitPages, WORDS};
use crate::memory;
use crate::thread::{Stack, settle_bare, spawn};

/// A helper calls memcpy and futex: a small stack is enough.
const STACK_BYTES: usize = 64 << 10;
/// Checks before a thread sleeps or yields, some 150 us: longer than the move of one unit's page tables between
/// two copies. A wake-up of a helper takes a good part of the time of its copy.
const SPINS: u32 = 10_000;

/// The state shared by caller and helpers. Lives for ever, in its own mapping.
struct JobQueue {
    /// Number of the newest job; helpers sleep on it.
    newest: AtomicU32,
    /// Set before the last job, which has no piece: the helpers end.
    ends: AtomicBool,
    claim: AtomicU64,
    finished: AtomicU32,
    from: AtomicUsize,
    to: AtomicUsize,
    pages: [AtomicU64; WORDS],
}

/// The helpers of one mover.
pub(super) struct Crew {
    board: &'static JobQueue,
    helpers: usize,
}

impl Crew {
    /// Starts the given number of helpers; fewer where the system has no more threads to give.
    pub(super) fn start(helpers: usize) -> memory::Result<Self> {
        let address = memory::fresh(size_of::<JobQueue>().next_multiple_of(PAGE_BYTES))?;
        // SAFETY: a fresh zeroed mapping, large enough and aligned to a page, never unmapped; all
        // zeroes is a valid `JobQueue`.
        let board = unsafe { &*core::ptr::with_exposed_provenance::<JobQueue>(address) };
        let mut crew = Self { board, helpers: 0 };
        for _ in 0..helpers {
            let Ok(stack) = Stack::map(STACK_BYTES) else {
                break;
            };
            let argument = core::ptr::from_ref(board).cast_mut().cast();
            // SAFETY: the stack is fresh, `help` keeps to the rules of bare threads, and the board
            // lives for ever.
            if unsafe { spawn(&stack, help, argument) }.is_err() {
                break;
            }
            crew.helpers += 1;
        }
        Ok(crew)
    }

    /// Copies these pages of a unit. A thread that writes to `from` meanwhile may leave a torn page in the
    /// copy; the caller copies it again.
    ///
    /// # Safety
    /// Both units are mapped, the pages of `from` readable and those of `to` writable without waiting for the
    /// caller; no thread reads `to`.
    pub(super) unsafe fn copy(&self, from: usize, to: usize, pages: &UnitPages) {
        if self.helpers == 0 || pages.count() <= 64 {
            for word in 0..WORDS {
                copy_word(from, to, word, pages.0[word]);
            }
            return;
        }
        let job = self.publish(from, to, pages);
        while let Some(piece) = self.board.take(job) {
            self.board.copy_piece(piece);
        }
        let mut spins = 0;
        while self.board.finished.load(Ordering::Acquire) < WORDS as u32 {
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
        let board = self.board;
        let job = board.newest.load(Ordering::Relaxed).wrapping_add(1);
        board.from.store(from, Ordering::Relaxed);
        board.to.store(to, Ordering::Relaxed);
        for (word, bits) in board.pages.iter().zip(pages.0) {
            word.store(bits, Ordering::Relaxed);
        }
        board.finished.store(0, Ordering::Relaxed);
        board.claim.store(u64::from(job) << 32, Ordering::Release);
        board.newest.store(job, Ordering::Release);
        let _ = futex::wake(&board.newest, futex::Flags::PRIVATE, u32::MAX >> 1);
        job
    }
}

impl JobQueue {
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
}

impl Drop for Crew {
    /// The helpers end; their stacks stay mapped, because they cannot report when they have left them.
    fn drop(&mut self) {
        self.board.ends.store(true, Ordering::Release);
        self.publish(0, 0, &UnitPages::default());
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
    // SAFETY: `Crew::start` passes a reference that lives for ever.
    let board = unsafe { &*argument.cast::<JobQueue>() };
    // Without its own table of descriptors the helper would keep the program's open.
    if settle_bare(c"isotherm-copy").is_err() {
        return;
    }
    let mut seen = 0;
    loop {
        let mut spins = 0;
        while board.newest.load(Ordering::Acquire) == seen {
            spins += 1;
            if spins < SPINS {
                core::hint::spin_loop();
            } else {
                let _ = futex::wait(&board.newest, futex::Flags::PRIVATE, seen, None);
            }
        }
        seen = board.newest.load(Ordering::Acquire);
        if board.ends.load(Ordering::Acquire) {
            return;
        }
        while let Some(piece) = board.take(seen) {
            board.copy_piece(piece);
        }
    }
}
