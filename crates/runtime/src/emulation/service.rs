//! The service thread: serves faults, keeps the periods, obeys requests, and sleeps when there is
//! nothing to do.
//!
//! It runs on a bare thread ([`isotherm_sys::thread`]): no C library state, no allocation, no
//! signal, descriptors of its own. It waits for nothing that the program holds, so a program thread
//! may fault while holding any lock.
//!
//! While an access waits for its delay, the thread spins instead of sleeping if the end is near.
//! That takes no processor from the program: the thread that waits is off its processor for
//! exactly as long, and on a real slow memory it would have kept that processor stalled.

use core::ffi::c_void;

use isotherm_abi::session::{OffReason, SessionCounter};
use isotherm_sys::thread::ProgramThreads;
use isotherm_sys::userfaultfd::Message;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::fault_handler::FaultHandler;
use super::shared::SlowTierEmulator;
use crate::clock::{now_ns, thread_ns};

/// Faults read in one call.
const MESSAGES: usize = 32;

/// An access due within this time is waited for by spinning: a timer and a wake-up take about as
/// long.
const SPIN_NS: u64 = 50_000;

/// How often the requests are looked at.
const WISH_NS: u64 = 10_000_000;

/// How often it is asked whether the program still has a thread. One that ends its last thread alone ends so
/// much later than it would without this one.
const PROGRAM_NS: u64 = 100_000_000;

/// How often the thread's own processor time is published.
const PUBLISH_NS: u64 = 20_000_000;

/// What the thread runs; `argument` is a `&'static SlowTierEmulator`.
pub(super) extern "C" fn run(argument: *mut c_void) {
    // SAFETY: `SlowTierEmulator::launch` passes a reference that lives for ever.
    let trap = unsafe { &*argument.cast::<SlowTierEmulator>() };
    // SAFETY: this is the service thread, and this is its only call.
    let handler = unsafe { trap.handler() };
    let opened = isotherm_sys::thread::settle_bare(c"isotherm")
        .map_err(|_| OffReason::NoThread)
        .and_then(|()| trap.open(handler));
    trap.announce(opened);
    if opened.is_ok() {
        let reason = Service {
            trap,
            handler,
            program: ProgramThreads::open(),
            next_program_ns: 0,
            next_wish_ns: 0,
            next_publish_ns: 0,
        }
        .serve();
        if let Some(reason) = reason {
            trap.give_up(handler, reason);
        }
    }
}

struct Service<'a> {
    trap: &'a SlowTierEmulator,
    handler: &'a mut FaultHandler,
    program: ProgramThreads,
    next_program_ns: u64,
    next_wish_ns: u64,
    next_publish_ns: u64,
}

impl Service<'_> {
    /// Serves until it is asked to end, or something goes wrong that cannot be lived with.
    fn serve(&mut self) -> Option<OffReason> {
        let mut messages = [Message::default(); MESSAGES];
        while !self.trap.ends() {
            let Ok(count) = self.read(&mut messages) else {
                return Some(OffReason::NoUserfaultfd);
            };
            let seen_ns = now_ns();
            for message in &messages[..count] {
                if let Some(address) = message.page_address() {
                    self.trap.fault(self.handler, address, seen_ns);
                }
            }
            let now_ns = if count > 0 { now_ns() } else { seen_ns };
            self.work(now_ns);
            if count == 0 {
                self.end_with_the_program(now_ns);
                self.pause(now_ns);
            }
        }
        None
    }

    /// Ends the process if the program has no thread any more, which is asked now and then.
    fn end_with_the_program(&mut self, now_ns: u64) {
        if now_ns >= self.next_program_ns {
            self.next_program_ns = now_ns + PROGRAM_NS;
            self.program.end_with_them();
        }
    }

    fn read(&self, messages: &mut [Message]) -> rustix::io::Result<usize> {
        self.handler
            .mover
            .as_ref()
            .map_or(Ok(0), |mover| mover.uffd().read(messages))
    }

    /// One small step of everything that is due.
    fn work(&mut self, now_ns: u64) {
        self.handler.let_due_go(now_ns);
        self.handler.advance_period(now_ns);
        if self.handler.is_leaving() {
            self.handler.leave_step();
        }
        self.handler.resample(now_ns);
        if let Some(requests) = self.trap.requests() {
            if now_ns >= self.next_wish_ns {
                self.handler.look_for_wish(&requests, self.trap.tiers());
                self.next_wish_ns = now_ns + WISH_NS;
            }
            self.handler
                .migrate_step(&requests, self.trap.tiers(), now_ns);
        }
        if now_ns >= self.next_publish_ns {
            self.handler.publish();
            self.handler
                .account
                .set(SessionCounter::ServiceNanos, thread_ns());
            self.next_publish_ns = now_ns + PUBLISH_NS;
        }
    }

    /// Waits for the next fault or the next thing that is due.
    fn pause(&mut self, now_ns: u64) {
        if self.handler.is_leaving() {
            return;
        }
        let due_ns = self.handler.due.next_ns();
        if due_ns.is_some_and(|due_ns| due_ns < now_ns + SPIN_NS) {
            core::hint::spin_loop();
            return;
        }
        let wake_ns = [
            due_ns.map(|due_ns| due_ns - SPIN_NS),
            self.handler.next_period_ns(),
            self.handler.next_sample_ns(),
            self.handler.migration.next_ns(now_ns),
            self.trap.requests().map(|_| self.next_wish_ns),
            Some(self.next_program_ns),
        ]
        .into_iter()
        .flatten()
        .min();
        if wake_ns.is_none_or(|wake_ns| wake_ns > now_ns) {
            self.sleep(wake_ns.map(|wake_ns| wake_ns - now_ns));
        }
    }

    /// Sleeps until a fault or the timeout; without one, until a fault.
    fn sleep(&self, timeout_ns: Option<u64>) {
        let timeout = timeout_ns.map(|nanos| Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        });
        // An error is an interruption, after which the loop simply looks again.
        let _ = match &self.handler.mover {
            Some(mover) => poll(
                &mut [PollFd::new(mover.uffd(), PollFlags::IN)],
                timeout.as_ref(),
            ),
            None => poll(&mut [], timeout.as_ref()),
        };
    }
}
