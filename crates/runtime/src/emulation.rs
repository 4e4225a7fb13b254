//! Emulates a slow tier by page faults (userfaultfd): takes pages of the pool away for a while, so that the next access to one faults, and
//! delays that access where the page belongs to the slow tier. The same faults show which pages of a chosen set are accessed, of both tiers
//! and also where no tier is emulated. The module also decides the tier of each page at its first touch, and moves pages between the tiers
//! as the observer, the Isotherm process outside, requests.
//!
//! # How
//!
//! The pool is registered with userfaultfd in *missing* mode. A page is taken away by moving it
//! (`UFFDIO_MOVE`) from its *home* in the pool to its *shadow*, the same offset in a second
//! reservation that no other part of the program knows; the next access to the home faults, and the service thread
//! ([`service`]) moves the page back after the delay. Nothing is copied, no mapping is
//! split, and the content is always at exactly one of the two. A system call on such a page waits
//! like the program does; with `mprotect` and a signal handler it would return `EFAULT`.
//!
//! # The emulated pair (TMP, section VI)
//!
//! Fast pages are taken away only as part of a sample. Slow pages are taken away at the start of every period, so the first access
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
//! - `fork`: every page comes home before, and the child starts its own service ([`ForkPhase`]).
//!   Pages that both share cannot be moved until one of them writes; they are counted as
//!   `SessionCounter::Unslowed` and tried again later.
//! - `vfork`, `posix_spawn`, and any `clone` that shares the memory: served by the parent's thread.
//! - `_Fork`, `clone` without `CLONE_VM`, and `syscall` with either: as for `fork` ([`crate::process_hooks`]).
//!   Only a program with its own `syscall` instruction bypasses that: in its child, pages that were away read
//!   as zeroes.
//! - `exec`, exit, fatal signals: the service thread ends with the process.
//!
//! # What is not covered
//!
//! - A program that replaces mappings of the pool by raw system calls. The runtime's hooks set the
//!   range's [`RangeUse`] first.
//! - The kernel's accesses that may not wait: `FUTEX_LOCK_PI` and `FUTEX_WAKE_OP` on a page that
//!   was taken away between the program's own access and the system call (`EFAULT`), and robust
//!   locks that a thread leaves behind on one. Stacks that a program brings for its threads are
//!   [brought home](RangeUse::Home), because the kernel clears a word of one when its thread ends; stacks that it
//!   gives to `clone` itself are not known.
//! - Another process that reads by `ptrace` or `/proc/<pid>/mem` sees an error where a page is
//!   away, and a core dump has a hole; the content is in the dump at
//!   `shadow_offset` of the [session's header](isotherm_abi::session::SessionHeader).

mod account;
mod due;
mod fault_handler;
mod faults;
mod migrate;
mod migration;
mod moves;
mod page;
mod placement_requests;
pub(crate) mod pool_range;
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

use shared::SlowTierEmulator;

use crate::tables::SessionTables;

pub(crate) use account::Account;
pub(crate) use placement_requests::{PlacementRequest, Subject};
pub(crate) use settings::Settings;
pub(crate) use shared::place;
pub(crate) use sparse::Sparse;
pub(crate) use table::PAGE_BYTES;

/// The process's emulator.
static EMULATOR: AtomicPtr<SlowTierEmulator> = AtomicPtr::new(ptr::null_mut());

fn emulator() -> Option<&'static SlowTierEmulator> {
    // SAFETY: null, or a `SlowTierEmulator` that `place` made and that is never freed.
    unsafe { EMULATOR.load(Ordering::Acquire).as_ref() }
}

/// Starts the service for the pool, if the settings need it.
///
/// # Errors
/// The reason: [`OffReason::NoUserfaultfd`], [`OffReason::NoUffdMove`], [`OffReason::NoThread`],
/// [`OffReason::NoAddressSpace`]. The pool is then as it was.
pub(crate) fn start(
    pool: Range<usize>,
    settings: &Settings,
    tables: Option<SessionTables>,
) -> Result<(), OffReason> {
    if let Some(emulator) = SlowTierEmulator::start(pool, settings, tables, service::run)? {
        EMULATOR.store(ptr::from_ref(emulator).cast_mut(), Ordering::Release);
    }
    Ok(())
}

/// Whether the service runs, so that pages of the pool may be away.
#[inline]
pub(crate) fn runs() -> bool {
    !EMULATOR.load(Ordering::Relaxed).is_null()
}

/// What a range of the pool is for. It is set before the mapping changes.
pub(crate) enum RangeUse {
    /// The program's data: first touches request this tier, and its pages may be taken away. Whole chunks: the
    /// range is rounded outwards.
    Tier(u32),
    /// Data that stays at home until the range has a tier again: the program changes its protection, moves it
    /// (`mremap`), or makes it a thread's stack. Whole chunks: the range is rounded outwards.
    Home,
    /// Data of the same tier as before, which reads as zeroes from now on, as after `MADV_DONTNEED`.
    Zeroes,
    /// Nothing: the program released it. Its content is dropped, and its chunks have no tier.
    Nothing,
}

/// Sets what a range is for; without effect where no service runs.
pub(crate) fn set_use(address: usize, bytes: usize, range_use: &RangeUse) {
    let Some(emulator) = emulator() else { return };
    match range_use {
        RangeUse::Tier(tier) => emulator.label(address, bytes, *tier),
        RangeUse::Home => emulator.settle(address, bytes),
        RangeUse::Zeroes => emulator.discard(address, bytes),
        RangeUse::Nothing => emulator.unlabel(address, bytes),
    }
}

/// The moments of a fork.
pub(crate) enum ForkPhase {
    /// Before it: every page comes home and stays there.
    Before,
    /// In the parent after it, or where it failed: pages may be away again.
    Parent,
    /// In the child: its own service starts. The child's session, if it has one.
    Child(Option<SessionTables>),
}

/// Follows a fork; without effect where no service runs.
pub(crate) fn fork(phase: ForkPhase) {
    let Some(emulator) = emulator() else { return };
    match phase {
        ForkPhase::Before => emulator.hold(),
        ForkPhase::Parent => emulator.release(),
        ForkPhase::Child(tables) => emulator.start_over(tables),
    }
}

/// Makes a call that the kernel refuses a process of several threads (`unshare`, `setns`): the service ends
/// before and starts again after. The caller's thread must be the program's only one.
pub(crate) fn pause_for<R>(tables: Option<SessionTables>, work: impl FnOnce() -> R) -> R {
    match emulator() {
        Some(emulator) => emulator.pause_for(tables, work),
        None => work(),
    }
}
