//! Sends a request of the program to its observer, the `isotherm` process that serves its session file ([`InterfaceRequest`]), and waits
//! for the answer ([`ask`]). Also reports which request was answered last, and whether a requested profile is being taken.
//!
//! A process has one request at a time. The calling thread waits without a lock: a child that is forked meanwhile recognises by
//! its process number that the request is not its own.

use core::sync::atomic::{AtomicU32, Ordering};

use isotherm_abi::interface::{
    InterfaceAction, InterfacePolicy, InterfaceRequest, InterfaceStatus,
};
use isotherm_sys::process::ProcessHandle;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::{NanosleepRelativeResult, nanosleep};
use rustix::time::Timespec;

use isotherm_abi::config::RuntimeMode;

use crate::clock::now_ns;
use crate::config;
use crate::delay;
use crate::session;

/// The process whose thread waits for an answer; 0 for none.
static ASKING: AtomicU32 = AtomicU32::new(0);

/// The first and the longest pause between looks at the answer.
const PAUSE_NS: u64 = 50_000;
const PAUSE_MAX_NS: u64 = 2_000_000;
/// Time after its start in which its observer may not have found a process yet.
const BEGINNING_NS: u64 = 300_000_000;
/// Interval between checks whether the observer is still there.
const LOOK_NS: u64 = 100_000_000;
/// An observer that this process cannot see (it has other process numbers) is gone once it is silent for this long.
const UNSEEN_NS: u64 = 3_000_000_000;
/// An observer that it sees may be silent for this long while it chooses and moves.
const SILENT_NS: u64 = 600_000_000_000;

/// A request to the observer.
pub(crate) struct Request {
    /// What the observer is to do.
    pub(crate) action: InterfaceAction,
    /// The policy by which it chooses.
    pub(crate) policy: InterfacePolicy,
    /// As [`InterfaceRequest::frequency`].
    pub(crate) frequency: u32,
    /// As [`InterfaceRequest::fast_bytes`].
    pub(crate) fast_bytes: u64,
    /// As [`InterfaceRequest::share_ppm`].
    pub(crate) share_ppm: u64,
}

impl Request {
    /// A request without numbers.
    pub(crate) const fn of(action: InterfaceAction) -> Self {
        Self {
            action,
            policy: InterfacePolicy::Default,
            frequency: 0,
            fast_bytes: 0,
            share_ppm: 0,
        }
    }
}

/// Asks, waits for the answer, and passes it to `read` where there is one.
pub(crate) fn ask<R>(
    request: &Request,
    read: impl FnOnce(&InterfaceRequest) -> R,
) -> Result<R, InterfaceStatus> {
    // A forked child gets a session of its own here; its observer may not have seen it yet.
    session::ensure();
    let words = &session::current()
        .ok_or(InterfaceStatus::NoObserver)?
        .header()
        .interface;
    if !is_served(words) {
        return Err(InterfaceStatus::NoObserver);
    }
    let _asking = Asking::begin().ok_or(InterfaceStatus::Busy)?;
    let number = words.asked.load(Ordering::Relaxed).wrapping_add(1);
    words.kind.store(request.action as u32, Ordering::Relaxed);
    words.policy.store(request.policy as u32, Ordering::Relaxed);
    words.frequency.store(request.frequency, Ordering::Relaxed);
    words
        .fast_bytes
        .store(request.fast_bytes, Ordering::Relaxed);
    words.share_ppm.store(request.share_ppm, Ordering::Relaxed);
    words.asked.store(number, Ordering::Release);
    match wait(words, number) {
        true => Ok(read(words)),
        false => Err(InterfaceStatus::NoObserver),
    }
}

/// Whether an observer serves this process. One that began a moment ago waits until its observer has found it.
fn is_served(words: &InterfaceRequest) -> bool {
    let is_online = config::current().is_some_and(|config| config.mode == RuntimeMode::Online);
    let began = session::current().map_or(0, |session| session.header().start_ns);
    loop {
        if words.observer_pid.load(Ordering::Acquire) != 0 {
            return true;
        }
        if !is_online || now_ns() > began.saturating_add(BEGINNING_NS) {
            return false;
        }
        sleep(PAUSE_MAX_NS);
    }
}

/// The number of the last request that was answered; `None` while a thread of this process waits for an answer.
pub(crate) fn last_answered(words: &InterfaceRequest) -> Option<u32> {
    let process = rustix::process::getpid().as_raw_nonzero().get() as u32;
    let answered = words.answered.load(Ordering::Acquire);
    (ASKING.load(Ordering::Acquire) != process).then_some(answered)
}

/// Whether a profile that the program requested is being taken.
pub(crate) fn is_profiling() -> bool {
    session::current().is_some_and(|session| {
        let words = &session.header().interface;
        words.profiling.load(Ordering::Relaxed) == 1
    })
}

/// This thread asks until this is dropped.
struct Asking;

impl Asking {
    /// `None` while another thread of this process asks.
    fn begin() -> Option<Self> {
        let process = rustix::process::getpid().as_raw_nonzero().get() as u32;
        let before = ASKING.load(Ordering::Relaxed);
        if before == process {
            return None;
        }
        // Another process: the one that this was forked from.
        ASKING
            .compare_exchange(before, process, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(Self)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        ASKING.store(0, Ordering::Release);
    }
}

/// Waits until the request is answered; false where the observer is gone.
fn wait(words: &InterfaceRequest, number: u32) -> bool {
    let mut pause = PAUSE_NS;
    let mut beat = words.heartbeat.load(Ordering::Relaxed);
    let (mut beaten, mut looked) = (now_ns(), now_ns());
    while words.answered.load(Ordering::Acquire) != number {
        // The observer may wait for moves of this process's pages, and no other thread may have samples.
        if !delay::obey_requests() {
            sleep(pause);
        }
        pause = (pause * 2).min(PAUSE_MAX_NS);
        let now = now_ns();
        let latest = words.heartbeat.load(Ordering::Relaxed);
        if latest != beat {
            (beat, beaten) = (latest, now);
        }
        if now.saturating_sub(looked) < LOOK_NS {
            continue;
        }
        looked = now;
        let longest = match is_seen(words.observer_pid.load(Ordering::Relaxed)) {
            true => SILENT_NS,
            false => UNSEEN_NS,
        };
        if now.saturating_sub(beaten) > longest {
            return words.answered.load(Ordering::Acquire) == number;
        }
    }
    true
}

/// Whether there is a process with this number. One that has ended and whose parent has not waited for it counts as gone, where the
/// kernel has handles of processes.
fn is_seen(process: u32) -> bool {
    match ProcessHandle::open(process) {
        Ok(handle) => !handle.has_ended(),
        Err(Errno::SRCH) => false,
        Err(_) => {
            let number = i32::try_from(process).ok().and_then(Pid::from_raw);
            number.is_some_and(|number| test_kill_process(number) != Err(Errno::SRCH))
        }
    }
}

fn sleep(nanos: u64) {
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: nanos as _,
    };
    // An interrupted pause is as good as a shorter one.
    let _: NanosleepRelativeResult = nanosleep(&time);
}
