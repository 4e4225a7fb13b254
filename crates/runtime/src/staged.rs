//! A thread of the runtime moves the chunks of arenas between real nodes from inside the program, by staged copy ([`StagedCopy`]), as the
//! observer, the `isotherm` process outside, requests in the session file.
//!
//! The observer names some chunks of the pool and a node ([`MoveRequest`]). The thread, a bare one ([`isotherm_sys::thread`]), moves those
//! of arenas, one at a time, and answers which it moved. It has helpers that copy while requests come and end when these stop. It allocates
//! nothing, and waits for nothing that the program holds but for [`mover_lock`]. Large mappings of the program are left to the kernel's
//! migration: programs unmap, protect and lock them.
//!
//! While a chunk moves, a thread that touches it waits. Work that it must not meet takes [`mover_lock`], which the
//! thread holds for each chunk:
//! - a fork, whose child would find the chunk missing ([`mover_lock::before_fork`], [`crate::process_hooks`]).
//!   A child has no mover; the observer moves its memory from outside;
//! - calls that throw contents away or change the mapping ([`placement::apart`]).
//!
//! The end of a thread cannot wait, so chunks with a thread's stack are [left alone](leave_alone).
//!
//! Not covered, as with the trap ([`crate::emulation`]): such calls and forks by the program's own `syscall`
//! instruction; the kernel's accesses that may not wait (`FUTEX_LOCK_PI` and `FUTEX_WAKE_OP` fail with `EFAULT`
//! where their word moves at that moment, and a robust lock that a thread leaves behind then is not marked);
//! and readers through `/proc/<pid>/mem`. That is why this mover runs only on request.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use isotherm_abi::session::{
    CHUNK_FREE, CHUNK_MAPPING, MOVE_CHUNKS, MoveRequest, MoverState, SessionCounter,
};
use isotherm_sys::affinity;
use isotherm_sys::staged::{
    Exclusion, StagedCopy, StagedError, StagedSettings, UNIT_PIECES, UnitFate,
};
use isotherm_sys::thread::{ProgramThreads, Stack, is_there, settle_bare, spawn};
use rustix::event::Timespec;
use rustix::thread::futex;

use crate::arena;
use crate::clock::{now_ns, thread_ns};
use crate::emulation;
use crate::mover_lock::{self, ENDING, OFF, RUNNING, STARTING, STATUS};
use crate::placement;
use crate::pool::{self, CHUNK};
use crate::session;

static THREAD: AtomicU32 = AtomicU32::new(0);
static STACK: OnceLock<Stack> = OnceLock::new();
/// Chunks of the pool that are never moved, a bit for each.
static LEFT_ALONE: [AtomicU64; LEFT_ALONE_CHUNKS / 64] =
    [const { AtomicU64::new(0) }; LEFT_ALONE_CHUNKS / 64];
/// The current chunk, 0 for none; stored before [`LEFT_ALONE`] is read, and read after that was changed, so
/// that one of the two sees the other.
static IN_HAND: AtomicUsize = AtomicUsize::new(0);
/// Chunks that can be left alone: a pool of 1 TiB. Chunks behind it are not moved at all.
const LEFT_ALONE_CHUNKS: usize = 1 << 19;
/// Bytes of the thread's stack: its largest content is two lists of a chunk's pages.
const STACK_BYTES: usize = 128 << 10;
/// Interval between checks for requests: a while after the last one, and soon after it.
const IDLE_NS: u64 = 20_000_000;
const BUSY_NS: u64 = 1_000_000;
/// Checks without a request until the thread is idle, and releases the memory that it keeps ready.
const BUSY_LOOKS: u32 = 1_000;
/// Interval between checks whether the program still has a thread, as in [`crate::emulation`].
const PROGRAM_NS: u64 = 100_000_000;

/// Chunks kept ready: 16 MiB. The thread copies alone until it is asked for a move: the program has one more
/// thread, and more than that only while data moves ([`set_threads`]).
const SETTINGS: StagedSettings = StagedSettings {
    threads: 1,
    units: 8,
    even_if_there: false,
};

/// Starts the thread. In a process without a session no observer could send requests, so none is started. If
/// the kernel lacks a required function, the session reports this, and the process runs on.
pub(crate) fn start() {
    let Some(session) = session::current() else {
        return;
    };
    let request = &session.header().moving;
    let launched = match emulation::runs() {
        true => Err(MoverState::Trapping),
        false => launch(request),
    };
    if let Err(state) = launched {
        STATUS.store(OFF, Ordering::Release);
        request.state.store(state as u32, Ordering::Release);
    } else {
        placement::set_away();
    }
}

fn launch(request: &'static MoveRequest) -> Result<(), MoverState> {
    if STACK.get().is_none() {
        let stack = Stack::map(STACK_BYTES).map_err(|_| MoverState::NoResources)?;
        // Only the thread that starts the library, or the program's only one, gets here.
        let _ = STACK.set(stack);
    }
    let stack = STACK.get().ok_or(MoverState::NoResources)?;
    STATUS.store(STARTING, Ordering::Release);
    let argument = core::ptr::from_ref(request).cast_mut().cast();
    // SAFETY: no thread runs on the stack: none was started, or it has ended. `run` keeps to the
    // rules of bare threads, and session files stay mapped.
    let thread = unsafe { spawn(stack, run, argument) }.map_err(|_| MoverState::NoResources)?;
    THREAD.store(thread as u32, Ordering::Relaxed);
    while STATUS.load(Ordering::Acquire) == STARTING {
        let _ = futex::wait(&STATUS, futex::Flags::PRIVATE, STARTING, None);
    }
    match STATUS.load(Ordering::Acquire) {
        RUNNING => Ok(()),
        _ => Err(match request.state.load(Ordering::Acquire) {
            state if state == MoverState::NoUserfaultfd as u32 => MoverState::NoUserfaultfd,
            state if state == MoverState::OldKernel as u32 => MoverState::OldKernel,
            state if state == MoverState::NoPagemap as u32 => MoverState::NoPagemap,
            _ => MoverState::NoResources,
        }),
    }
}

/// The function of the thread; `argument` is a `&'static MoveRequest`.
extern "C" fn run(argument: *mut c_void) {
    // SAFETY: `launch` passes a reference that lives for ever.
    let request = unsafe { &*argument.cast::<MoveRequest>() };
    let opened = settle_bare(c"isotherm-move")
        .map_err(|_| MoverState::NoResources)
        .and_then(|()| StagedCopy::open(SETTINGS).map_err(state_of));
    let (state, status) = match &opened {
        Ok(_) => (MoverState::Running, RUNNING),
        Err(state) => (*state, OFF),
    };
    request.state.store(state as u32, Ordering::Release);
    STATUS.store(status, Ordering::Release);
    let _ = futex::wake(&STATUS, futex::Flags::PRIVATE, 1);
    if let Ok(mover) = opened {
        serve(mover, request);
    }
}

const fn state_of(error: StagedError) -> MoverState {
    match error {
        StagedError::NoUserfaultfd(_) => MoverState::NoUserfaultfd,
        StagedError::OldKernel => MoverState::OldKernel,
        StagedError::NoPagemap => MoverState::NoPagemap,
        StagedError::NoResources => MoverState::NoResources,
    }
}

/// Carries out requests until the thread should end.
fn serve(mut mover: StagedCopy, request: &MoveRequest) {
    let (mut idle, mut forks) = (BUSY_LOOKS, 0);
    let (program, mut next_program_ns) = (ProgramThreads::open(), 0);
    while STATUS.load(Ordering::Acquire) == RUNNING {
        let now_ns = now_ns();
        if now_ns >= next_program_ns {
            next_program_ns = now_ns + PROGRAM_NS;
            program.end_with_them(mover.threads());
        }
        let asked = request.asked.load(Ordering::Acquire);
        if asked != request.answered.load(Ordering::Relaxed) {
            let moved = carry_out(&mut mover, request, &mut forks);
            session::count(
                SessionCounter::StagedBytes,
                u64::from(moved.count_ones()) * CHUNK as u64,
            );
            request.moved.store(moved, Ordering::Relaxed);
            request.answered.store(asked, Ordering::Release);
            if let Some(session) = session::current() {
                let time = session.counter(SessionCounter::ServiceNanos);
                time.store(thread_ns() + mover.helpers_ns(), Ordering::Relaxed);
            }
            idle = 0;
        } else if idle < BUSY_LOOKS {
            idle += 1;
            if idle == BUSY_LOOKS {
                mover.empty();
                set_threads(&mut mover, 1);
            }
            sleep(BUSY_NS);
        } else {
            sleep(IDLE_NS);
        }
    }
    // Ends the helpers too, so that a thread that waits for the end of this one has waited for theirs.
    drop(mover);
    mover_lock::set_helpers(0);
}

/// Threads that copy while requests are served: one for each processor that the process may use, which its first
/// thread has on record. A program may have changed that since the mover's thread was started.
fn threads_allowed() -> usize {
    let process = rustix::process::getpid().as_raw_nonzero().get();
    let processors = affinity::count_allowed_to(process as u32);
    processors.unwrap_or(1).clamp(1, UNIT_PIECES)
}

/// Starts or ends helpers; fewer than requested where the system has no more threads. It holds the lock that forks
/// and [`mover_lock::program_has_one_thread`] take, too.
fn set_threads(mover: &mut StagedCopy, threads: usize) {
    if mover.threads() == threads {
        return;
    }
    Apart.enter();
    let copying = mover.set_threads(threads);
    mover_lock::set_helpers(copying as u32 - 1);
    Apart.leave();
}

/// Sleeps for the given time, or until the thread should end.
fn sleep(nanos: u64) {
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: nanos as _,
    };
    let _ = futex::wait(&STATUS, futex::Flags::PRIVATE, RUNNING, Some(&time));
}

/// Moves the chunks of a request; bit n of the answer stands for chunk n.
fn carry_out(mover: &mut StagedCopy, request: &MoveRequest, forks: &mut u32) -> u64 {
    let start = request.start.load(Ordering::Relaxed) as usize;
    let chunks = request.chunks.load(Ordering::Relaxed).min(MOVE_CHUNKS);
    let node = request.node.load(Ordering::Relaxed);
    mover.set_even_if_there(request.even_if_there.load(Ordering::Relaxed) == 1);
    set_threads(mover, threads_allowed());
    let mut moved = 0;
    for number in 0..chunks {
        let chunk = start.saturating_add(number as usize * CHUNK);
        let Some(arena) = arena_of(chunk) else {
            continue;
        };
        arena::follow_tier(arena);
        if core::mem::replace(forks, mover_lock::forks()) != *forks {
            mover.empty();
        }
        IN_HAND.store(chunk, Ordering::SeqCst);
        if !may_move(chunk) {
            continue;
        }
        // SAFETY: chunks of arenas stay so for as long as the process lives, and every caller that discards,
        // protects or replaces a part of one does so apart from this.
        unsafe {
            mover.move_range(chunk..chunk + CHUNK, node, &Apart, |_, fate| {
                moved |= u64::from(matches!(fate, UnitFate::Moved(_))) << number;
            });
        }
    }
    IN_HAND.store(0, Ordering::SeqCst);
    moved
}

/// The arena that a chunk belongs to.
fn arena_of(chunk: usize) -> Option<u32> {
    match pool::owner(chunk) {
        CHUNK_FREE | CHUNK_MAPPING => None,
        owner => Some(owner - 1),
    }
}

/// The index of a chunk's bit, if it has one.
fn bit_of(chunk: usize) -> Option<(&'static AtomicU64, u64)> {
    let number = chunk.checked_sub(pool::range().start)? / CHUNK;
    Some((LEFT_ALONE.get(number / 64)?, 1 << (number % 64)))
}

fn may_move(chunk: usize) -> bool {
    let bit = bit_of(chunk).filter(|_| chunk.is_multiple_of(CHUNK));
    bit.is_some_and(|(word, bit)| word.load(Ordering::SeqCst) & bit == 0)
}

/// Never moves the chunks of a range again: for example a thread's stack, of which the kernel clears a word
/// when the thread ends, and cannot wait for it then.
pub(crate) fn leave_alone(address: usize, bytes: usize) {
    let inside = pool::overlap(address, bytes);
    if !mover_lock::runs() || inside.is_empty() {
        return;
    }
    for chunk in (inside.start / CHUNK * CHUNK..inside.end).step_by(CHUNK) {
        if let Some((word, bit)) = bit_of(chunk) {
            word.fetch_or(bit, Ordering::SeqCst);
        }
        while IN_HAND.load(Ordering::SeqCst) == chunk {
            rustix::thread::sched_yield();
        }
    }
}

/// The mover thread's use of [`mover_lock`].
struct Apart;

impl Exclusion for Apart {
    fn enter(&self) {
        while mover_lock::is_awaited() {
            sleep(BUSY_NS / 10);
        }
        mover_lock::acquire();
    }

    fn leave(&self) {
        mover_lock::release();
    }
}

/// Makes a call that the kernel refuses a process of several threads, without the thread and its helpers meanwhile. The
/// caller's thread is the program's only one.
pub(crate) fn pause_for<R>(work: impl FnOnce() -> R) -> R {
    let running = STATUS.compare_exchange(RUNNING, ENDING, Ordering::AcqRel, Ordering::Relaxed);
    if running.is_err() {
        return work();
    }
    let _ = futex::wake(&STATUS, futex::Flags::PRIVATE, 1);
    let process = rustix::process::getpid().as_raw_nonzero().get();
    while is_there(process, THREAD.load(Ordering::Relaxed) as i32) {
        rustix::thread::sched_yield();
    }
    let answer = work();
    start();
    answer
}
