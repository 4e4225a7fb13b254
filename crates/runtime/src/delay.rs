//! Emulates slow memory by time: a timer's signal samples the accesses of each thread, and keeps the thread busy for as much longer as slow
//! memory, or a bandwidth that programs share, would take. The module also decides the tier of each page, and obeys requests to move pages.
//!
//! # How
//!
//! Each thread has a timer of its own processor time that signals the thread itself
//! ([`isotherm_sys::perf::thread_timer`]). The instruction that just retired is the one that the thread waited for
//! ([`isotherm_decode`]). Where its operand lies in slow memory, the thread stands for the time since the last sample, and is
//! kept busy for (factor - 1) times that, less the share that an estimate says the caches served
//! ([`isotherm_cache_estimate`]). So a program is as slow as its accesses to memory make it, whatever its footprint; huge
//! pages stay, no page faults, and no other thread competes with the program.
//!
//! ```text
//!   timer --signal--> handler: which operand?  which tier?  which share beyond the caches?  --> busy for that long
//!                                               |
//!                                   page_tiers <-- residency, migration
//! ```
//!
//! The sampling itself costs the same in every placement, some 5 per cent, so that ratios hold.
//!
//! # Signals
//!
//! [`SIGNAL`] belongs to this part while it runs: the hooks of [`crate::signal_hooks`] keep it unblocked, and keep the program's
//! own action of it, which gets what comes from elsewhere ([`crate::program_action`]). All signals wait while the handler
//! runs. It works on a stack of its own, because the program's stack for signals may be small ([`signal_stack`]). A thread is
//! signalled only while it runs its own code, so no system call is interrupted. The handler makes no system call but for the thread's
//! processor time and a look at the residency of a chunk. A thread that begins to filter its system calls is sampled no more.
//!
//! # What is not covered
//!
//! Memory outside the pool (stacks, small mappings, files, the data of libraries that are loaded later) is fast; a Java heap with
//! colours has the tiers of its regions ([`java_heap`]). The time in which the kernel works for the program is not slowed, nor are
//! threads that the program makes by its own `clone`, nor is a thread from the moment that it gives up new privileges, filters its
//! system calls, or takes an alternate stack that has no room for the timer's signal.

mod bandwidth;
mod costs;
mod fast_room;
mod interrupted;
mod java_heap;
mod migration;
mod page_tiers;
mod pause;
mod residency;
mod retired;
mod signal_stack;
mod stream_bytes;
mod thread;
mod traffic;

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use isotherm_abi::config::EmulationConfig;
use isotherm_abi::session::{OffReason, SessionCounter};
use isotherm_sys::perf::thread_timer::ThreadTimer;

use crate::published_tiers::Side;
use bandwidth::Bandwidth;
use interrupted::Interrupted;
use migration::Migration;
use page_tiers::PageTiers;
use residency::Residency;
use thread::Delay;
use traffic::Traffic;

pub(crate) use page_tiers::{SEGMENTS, WritablePart};
pub(crate) use signal_stack::is_enough as has_room_for_signals;
pub(crate) use thread::DelayedThread;

use crate::c_signals;
use crate::clock;
use crate::config;
use crate::emulation::{Account, RangeUse, Settings, place};
use crate::program_action;
use crate::sandbox;
use crate::shared_room::SharedRoom;
use crate::tables::SessionTables;
use crate::tls;

/// The signal of the timers. One that is ignored by default, because it may be pending when the program calls `exec`, which gives
/// the new program the default action; of these the one that servers use least (databases read `SIGURG` from a descriptor). One of
/// the standard range, so that at most one is pending at a time.
pub(crate) const SIGNAL: c_int = libc::SIGWINCH;

/// An emulated pair.
struct TimedPair {
    tiers: PageTiers,
    emulation: EmulationConfig,
    /// The bandwidths that all programs share, where they are limited.
    bandwidth: Option<Bandwidth>,
    residency: Residency,
    online: bool,
    session: AtomicPtr<Session>,
}

/// The counters and requests that the pair shares with the observer. A forked child has its own.
struct Session {
    account: Account,
    /// In online runs.
    migration: Option<Migration>,
}

static PAIR: AtomicPtr<TimedPair> = AtomicPtr::new(ptr::null_mut());

fn pair() -> Option<&'static TimedPair> {
    // SAFETY: null, or a pair that `start` placed and that is never freed.
    unsafe { PAIR.load(Ordering::Acquire).as_ref() }
}

/// Whether this emulation runs.
#[inline]
pub(crate) fn runs() -> bool {
    !PAIR.load(Ordering::Relaxed).is_null()
}

/// Prepares the pair for the pool, if the settings name one. No thread is sampled before [`begin`].
///
/// # Errors
/// [`OffReason::NoAddressSpace`], and as [`Bandwidth::of_session`] and [`SharedRoom::of_session`].
pub(crate) fn start(
    pool: Range<usize>,
    settings: &Settings,
    tables: Option<SessionTables>,
    directory: Option<&CStr>,
) -> Result<(), OffReason> {
    if settings.emulation.latency_percent == 0 {
        return Ok(());
    }
    let room = settings.fast_bytes();
    let no_room = |_| OffReason::NoAddressSpace;
    let tiers = PageTiers::map(pool, room).map_err(no_room)?;
    let pair = place(TimedPair {
        tiers: tiers.sharing(room, |pages| SharedRoom::of_session(directory, pages))?,
        emulation: settings.emulation,
        bandwidth: Bandwidth::of_session(directory)?,
        residency: Residency::default(),
        online: settings.online,
        session: AtomicPtr::new(ptr::null_mut()),
    })
    .map_err(no_room)?;
    pair.share(tables).ok_or(OffReason::NoAddressSpace)?;
    PAIR.store(ptr::from_ref(pair).cast_mut(), Ordering::Release);
    Ok(())
}

/// Installs the handler and samples the calling thread, the program's first: called once its C library is ready.
///
/// # Errors
/// [`OffReason::NoTimer`].
pub(crate) fn begin() -> Result<(), OffReason> {
    if !runs() {
        return Ok(());
    }
    install().ok_or(OffReason::NoTimer)?;
    let state = prepare_thread().ok_or(OffReason::NoTimer)?;
    enter_thread(state).ok_or(OffReason::NoTimer)
}

/// Installs the handler.
fn install() -> Option<()> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: an action of zeroes is valid, and the pointer is live; the function is the C library's own, because the hook
    // passes on what comes from here.
    unsafe {
        let action = action.as_mut_ptr();
        (*action).sa_sigaction = on_timer as *const () as libc::sighandler_t;
        (*action).sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        libc::sigfillset(&raw mut (*action).sa_mask);
        (c_signals::set_action(SIGNAL, action, ptr::null_mut()) == 0).then_some(())
    }
}

/// The state for a thread that the calling thread makes; `None` where no pair runs, no thread may be sampled, or there is no
/// memory.
pub(crate) fn prepare_thread() -> Option<&'static mut DelayedThread> {
    let pair = pair().filter(|_| !sandbox::is_filtered())?;
    let state = retired::take().or_else(|| DelayedThread::make(pair.emulation.cache_bytes))?;
    // No sample changes the own state meanwhile.
    if let Some(own) = take_own() {
        state.learn_from(own);
        tls::delayed().store(ptr::from_mut(own).cast(), Ordering::SeqCst);
    }
    Some(state)
}

/// Takes the state of the calling thread away, if it has one: the handler finds none from here on.
fn take_own() -> Option<&'static mut DelayedThread> {
    let own = tls::delayed().swap(ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: null, or the state that was stored for this thread, to which nothing else refers any more.
    unsafe { own.cast::<DelayedThread>().as_mut() }
}

/// Gives back the state of a thread that could not be made.
pub(crate) fn cancel_thread(state: &'static mut DelayedThread) {
    retired::keep(state);
}

/// Samples the calling thread from now on, with this state. `None` where the kernel refuses.
pub(crate) fn enter_thread(state: &'static mut DelayedThread) -> Option<()> {
    let Some(pair) = pair().filter(|_| !sandbox::is_filtered()) else {
        // The filter may refuse to release the state.
        return Some(());
    };
    if !signal_stack::has_room() {
        retired::keep(state);
        return Some(());
    }
    // A thread may begin with the signal blocked: by its attributes, or because the program inherited it so.
    c_signals::unblock(SIGNAL);
    state.begin();
    // A signal before the state is stored finds none.
    let timer = ThreadTimer::start(pair.emulation.sample_ns, SIGNAL);
    let Ok(timer) = timer else {
        retired::keep(state);
        return None;
    };
    state.set_timer(timer);
    tls::delayed().store(ptr::from_mut(state).cast(), Ordering::SeqCst);
    Some(())
}

/// Ends the sampling of the calling thread: at its end, and before it filters its system calls, because the filter may refuse
/// the return from a signal's handler.
pub(crate) fn leave_thread() {
    // This thread's filter may refuse to release the memory.
    if let Some(state) = take_own().filter(|_| !sandbox::is_filtered()) {
        retired::keep(state);
    }
}

/// In a forked child, whose only thread no timer samples: samples it.
pub(crate) fn start_over(tables: Option<SessionTables>) {
    let Some(pair) = pair() else { return };
    let own = take_own();
    // Without memory for it the child goes on in its parent's session.
    let _ = pair.share(tables);
    pair.tiers.publish_all();
    let state = match own {
        Some(state) => {
            state.stop();
            Some(state)
        }
        None => prepare_thread(),
    };
    // A child that cannot be sampled runs at the speed of fast memory.
    let _ = state.and_then(enter_thread);
}

/// Sets what a range of the pool is for; without effect where no pair runs.
pub(crate) fn set_use(address: usize, bytes: usize, range_use: &RangeUse) {
    let Some(pair) = pair() else { return };
    match range_use {
        RangeUse::Tier(tier) => pair.tiers.want(address, bytes, side_of(*tier)),
        RangeUse::Zeroes => pair.tiers.forget(address, bytes, false),
        RangeUse::Nothing => pair.tiers.forget(address, bytes, true),
        RangeUse::Home => {}
    }
}

/// Adds the segments that hold static data, which goes to this tier where no page of it is placed by itself: called once, before
/// [`begin`]. Returns the pages whose tiers are to be published.
pub(crate) fn set_segments<'a>(parts: impl Iterator<Item = &'a WritablePart>, tier: u32) -> usize {
    pair().map_or(0, |pair| {
        pair.tiers.set_segments(parts, side_of(tier));
        pair.publish_segments(pair.session());
        pair.tiers.static_pages()
    })
}

/// Sets the tier of whole pages: of static data, or of an object of the pool that begins.
pub(crate) fn place_pages(range: &Range<usize>, tier: u32) {
    if let Some(pair) = pair() {
        pair.tiers.want_pages(range, side_of(tier));
    }
}

/// Whether the first and the last page of a range can have tiers, where the emulation runs.
pub(crate) fn has_pages(range: &Range<usize>) -> bool {
    pair().is_some_and(|pair| pair.tiers.has_pages(range))
}

/// Obeys requests to move pages as a sample does, on the caller's time; true where any moved. A thread that waits for the moves has no
/// samples.
pub(crate) fn obey_requests() -> bool {
    let Some(pair) = pair() else { return false };
    let cost_ns = pair.serve();
    if cost_ns > 0 {
        pair.publish(Delay::default());
    }
    pause::busy(cost_ns);
    cost_ns > 0
}

fn side_of(tier: u32) -> Side {
    let tiers = config::current().map_or(&[][..], |config| config.tiers);
    Side::of_tier(tiers, tier)
}

/// The handler of [`SIGNAL`]: goes over to the thread's own stack.
unsafe extern "C" fn on_timer(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gave the handler this pointer.
    if !ThreadTimer::has_sent(unsafe { &*info }) {
        // SAFETY: the kernel's arguments, which the program's handler would get without this one.
        return unsafe { program_action::call(signal, info, context) };
    }
    let state = tls::delayed().load(Ordering::Relaxed);
    if state.is_null() {
        return;
    }
    // SAFETY: this thread's state, which only this handler uses while it runs, because all signals wait; likewise the stack below it.
    // The context is the kernel's.
    unsafe { signal_stack::call(take_sample, state, context) };
}

/// Takes the sample of a thread's state, at the place that a signal's context names.
///
/// # Safety
/// The state is the calling thread's, and nothing else uses it; the context is the kernel's.
unsafe extern "C" fn take_sample(state: *mut c_void, context: *mut c_void) {
    // SAFETY: the caller's promise.
    let (Some(pair), Some(state)) = (pair(), unsafe { state.cast::<DelayedThread>().as_mut() })
    else {
        return;
    };
    // SAFETY: the caller's promise.
    let interrupted = unsafe { Interrupted::from_context(context) };
    if state.has_worked(&interrupted) {
        let begin = clock::thread_ns();
        state.worked_until(begin, pair.emulation.sample_ns);
        let delay = state.sample(&interrupted, &pair.tiers, &pair.emulation);
        let ns = delay.ns + pair.serve();
        // Our own work is a part of the delay, as far as there is one.
        let own = clock::thread_ns().saturating_sub(begin);
        pause::busy(ns.saturating_sub(own));
        let waited = pair.wait_for_bandwidth(state, delay.traffic);
        pair.publish(Delay {
            ns: delay.ns + waited,
            ..delay
        });
        state.resumes_at(clock::thread_ns());
    }
}

impl TimedPair {
    /// Reports to this session from now on, or to none.
    fn share(&self, tables: Option<SessionTables>) -> Option<()> {
        let session = place(Session {
            account: Account(tables),
            migration: tables.filter(|_| self.online).map(Migration::new),
        });
        let session = session.ok()?;
        let room = self.tiers.fast_room_of_pool();
        session.account.set_fast_bytes(room);
        self.publish_segments(session);
        self.session
            .store(ptr::from_ref(session).cast_mut(), Ordering::Release);
        Some(())
    }

    /// Tells the observer where static data with tiers is.
    fn publish_segments(&self, session: &Session) {
        if let Some(tables) = session.account.0 {
            self.tiers.publish_segments(&tables.header.statics);
        }
    }

    fn session(&self) -> &'static Session {
        // SAFETY: `start` shared a session before it published the pair, and none is ever freed.
        unsafe { &*self.session.load(Ordering::Acquire) }
    }

    /// Waits until the shared bandwidths have served what the thread accessed, in parts, so that threads take turns. Returns the
    /// nanoseconds. What is left after a long wait is waited for at the next samples.
    fn wait_for_bandwidth(&self, thread: &mut DelayedThread, traffic: Traffic) -> u64 {
        let Some(bandwidth) = self.bandwidth else {
            return 0;
        };
        thread.owe(traffic);
        let begin = clock::now_ns();
        let mut now = begin;
        while now.saturating_sub(begin) < bandwidth::WAIT_AT_MOST_NS
            && let Some(part) = thread.take_owed(bandwidth.of_a_turn())
        {
            pause::until(bandwidth.serve(part, now));
            now = clock::now_ns();
        }
        now - begin
    }

    /// Looks up the residency of a chunk and obeys requests to move data. Returns the nanoseconds that the moves cost.
    fn serve(&self) -> u64 {
        if !sandbox::is_filtered() {
            self.residency.step(&self.tiers);
        }
        let tiers = config::current().map_or(&[][..], |config| config.tiers);
        let Session {
            account, migration, ..
        } = self.session();
        let moved = migration
            .as_ref()
            .map_or(0, |migration| migration.step(&self.tiers, tiers, account));
        moved.saturating_mul(self.emulation.migrate_ns)
    }

    fn publish(&self, delay: Delay) {
        let (fast, slow) = self.tiers.bytes();
        let (fast_heap, slow_heap) = java_heap::bytes();
        let (slow_touches, spilled) = self.tiers.first_touches();
        let account = &self.session().account;
        account.set_fast_bytes(self.tiers.fast_room_of_pool());
        account.add(SessionCounter::SlowAccesses, u64::from(delay.is_slow));
        account.add(SessionCounter::DelayNanos, delay.ns);
        account.add(SessionCounter::FastTrafficBytes, delay.traffic.fast);
        account.add(SessionCounter::SlowTrafficBytes, delay.traffic.slow);
        for (counter, value) in [
            (SessionCounter::FastBytes, fast + fast_heap),
            (SessionCounter::SlowBytes, slow + slow_heap),
            (SessionCounter::FirstTouches, slow_touches),
            (SessionCounter::Spilled, spilled),
        ] {
            account.set(counter, value);
        }
    }
}

/// Delays the program for its last samples, and counts the data that no sample met: at exit of the process.
pub(crate) fn finish() {
    let Some(pair) = pair() else { return };
    if let Some(state) = take_own() {
        let last = state.last_delay();
        pause::busy(last.ns);
        pair.publish(last);
        if !sandbox::is_filtered() {
            retired::keep(state);
        }
    }
    if !sandbox::is_filtered() {
        for _ in 0..pair.tiers.chunks_with_data() {
            pair.residency.step(&pair.tiers);
        }
    }
    pair.publish(Delay::default());
    pair.tiers.finish();
}
