//! The trap: it takes pages of the pool away for a while, so that the next access to one faults, and delays
//! that access where the page belongs to the emulated slow tier.
//!
//! # How
//!
//! The pool is registered with userfaultfd in *missing* mode. A page is taken away by moving it
//! (`UFFDIO_MOVE`) from its *home* in the pool to its *shadow*, the same offset in a second
//! reservation that nobody else knows; the next access to the home faults, and the service thread
//! ([`service`]) moves the page back after the delay. Nothing is copied, no mapping is
//! split, and the content is always at exactly one of the two. A system call on such a page waits
//! like the program does; with `mprotect` and a signal handler it would return `EFAULT`.
//!
//! # The emulated pair (TMP, section VI)
//!
//! Fast pages are never taken away. Slow pages are taken away at the start of every period, so the first access
//! in a period pays `access_ns`, and `hot_ns` more where the page was also touched in the period before. This
//! counts pages per period, not accesses: a page with many accesses in a period pays once. The round trip
//! through the service thread (some 7 us on the development machine) is part of the time that the program
//! waits: it is measured at the start and subtracted from the delay, and a shorter delay is not possible.
//!
//! A period is counted in processor time of the program, without the cost of our own faults ([`progress`]): the
//! slow-down is 1 + (slow pages touched in a period) * (cost of an access) / period, for any number of threads
//! and on a busy machine too, and it grows with the working set, as in the paper. By wall-clock time, a program
//! that needs more than a period to pay for its working set loses the pages again before it makes progress:
//! random updates of 64 MiB in periods of 100 ms ran 1,000 times slower.
//!
//! The tier of a page is decided at its first touch, as `MPOL_PREFERRED` does on real nodes: fast
//! where its chunk is labelled fast and the tier has room, slow otherwise.
//!
//! # Fork and other ways to make a process
//!
//! - `fork`: [`before_fork`] brings every page home; the child starts its own service ([`after_fork_child`]).
//!   Pages that both share cannot be moved until one of them writes; they are counted as `Counter::Unslowed`
//!   and tried again later.
//! - `vfork`, `posix_spawn`, and any `clone` that shares the memory: served by the parent's thread.
//! - `_Fork`, `clone` without `CLONE_VM`, and `syscall` with either: as for `fork` ([`crate::process_hooks`]).
//!   Only a program with its own `syscall` instruction bypasses that: in its child, pages that were away read
//!   as zeroes.
//! - `exec`, exit, fatal signals: the service thread ends with the process.
//!
//! # What is not covered
//!
//! - A program that replaces mappings of the pool by raw system calls. The runtime's hooks call
//!   [`discard`], [`settle`] or [`unlabel`] first.
//! - The kernel's accesses that may not wait: `FUTEX_LOCK_PI` and `FUTEX_WAKE_OP` on a page that
//!   was taken away between the program's own access and the system call (`EFAULT`), and robust
//!   locks that a thread leaves behind on one. Stacks that a program brings for its threads are
//!   [settled](settle), because the kernel clears a word of one when its thread ends; stacks that it
//!   gives to `clone` itself are not known.
//! - Another process that reads by `ptrace` or `/proc/<pid>/mem` sees an error where a page is
//!   away, and a core dump has a hole; the content is in the dump at
//!   [`SessionHeader::shadow_offset`].

mod account;
mod due;
mod fault_handler;
mod faults;
mod migrate;
mod migration;
mod moves;
mod page;
mod placement_requests;
mod progress;
mod protect;
mod resample;
mod runs;
mod sample;
mod service;
mod service_channel;
mod settings;
mod shared;
mod sparse;
mod table;
#[cfg(test)]
mod tests;

use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use isotherm_abi::session::OffReason;

use shared::{SlowTierEmulator, drop_home};

use crate::tables::SessionTables;

pub(crate) use settings::Settings;

/// The process's trap.
static TRAP: AtomicPtr<SlowTierEmulator> = AtomicPtr::new(ptr::null_mut());

fn trap() -> Option<&'static SlowTierEmulator> {
    // SAFETY: null, or a `SlowTierEmulator` that `place` made and that is never freed.
    unsafe { TRAP.load(Ordering::Acquire).as_ref() }
}

/// Starts the service for the pool, if the settings need it.
///
/// # Errors
/// The reason: [`OffReason::NoUserfaultfd`], [`OffReason::NoUffdMove`], [`OffReason::NoThread`],
/// [`OffReason::NoAddressSpace`]. The pool is then as it was.
pub(crate) fn start(
    pool: Range<usize>,
    settings: &Settings<'_>,
    board: Option<SessionTables>,
) -> Result<(), OffReason> {
    if let Some(trap) = SlowTierEmulator::start(pool, settings, board, service::run)? {
        TRAP.store(ptr::from_ref(trap).cast_mut(), Ordering::Release);
    }
    Ok(())
}

/// Sets the tier that first touches of a range request, and lets its pages be trapped. Whole chunks: a range is
/// rounded outwards.
pub(crate) fn label(address: usize, bytes: usize, tier: u32) {
    if let Some(trap) = trap() {
        trap.label(address, bytes, tier);
    }
}

/// The program released the range: its content is dropped, and its chunks have no tier any more. Call it before
/// the mapping is replaced.
pub(crate) fn unlabel(address: usize, bytes: usize) {
    if let Some(trap) = trap() {
        trap.unlabel(address, bytes);
    }
}

/// Drops the content of a range, which reads as zeroes from now on, like `MADV_DONTNEED`.
pub(crate) fn discard(address: usize, bytes: usize) {
    match trap() {
        Some(trap) => trap.discard(address, bytes),
        None => drop_home(address, bytes),
    }
}

/// Brings the pages of a range home and leaves them there until it is labelled again. Whole
/// chunks: the range is rounded outwards. Call it before the program changes the protection of the
/// range, moves it (`mremap`), or uses it as a thread's stack.
pub(crate) fn settle(address: usize, bytes: usize) {
    if let Some(trap) = trap() {
        trap.settle(address, bytes);
    }
}

/// Brings every page home and keeps it there until [`after_fork_parent`].
pub(crate) fn before_fork() {
    if let Some(trap) = trap() {
        trap.hold();
    }
}

/// Makes a call that the kernel refuses a process of several threads (`unshare`, `setns`): the service ends
/// before and starts again after. The caller's thread must be the program's only one.
pub(crate) fn pause_for<R>(board: Option<SessionTables>, work: impl FnOnce() -> R) -> R {
    match trap() {
        Some(trap) => trap.pause_for(board, work),
        None => work(),
    }
}

/// The fork is over, or failed.
pub(crate) fn after_fork_parent() {
    if let Some(trap) = trap() {
        trap.release();
    }
}

/// Starts the child's own service. `board` is the child's session, if it has one.
pub(crate) fn after_fork_child(board: Option<SessionTables>) {
    if let Some(trap) = trap() {
        trap.start_over(board);
    }
}
