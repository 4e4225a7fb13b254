//! The loop of the emulation's service thread ([`run`]): it reads page faults (userfaultfd) and the requests of program threads that come
//! as such, lets delayed accesses continue when they are due, begins periods and samples, obeys the observer's requests to move data,
//! publishes counters, ends the process once the program has no thread any more, and sleeps or spins until the next of these is due.
//!
//! The thread is a bare one ([`isotherm_sys::thread`]): no C library state, no allocation, no signal, its own
//! descriptors. It waits for nothing that the program holds, so a program thread may fault while it holds any lock.
//!
//! While an access waits for its delay, the thread spins instead of sleeping if the end is near. That takes no
//! processor from the program: the thread that waits is off its processor for exactly as long, and real slow
//! memory would have stalled that processor.

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

/// The thread spins for an access that is due within this time: a timer and a wake-up take about as long.
const SPIN_NS: u64 = 50_000;

/// Interval between reads of the requests.
const REQUEST_NS: u64 = 10_000_000;

/// Interval between checks whether the program still has a thread. A program that ends its last thread by
/// itself ends up to this much later than without the service.
const PROGRAM_NS: u64 = 100_000_000;

/// Interval between publications of the thread's own processor time.
const PUBLISH_NS: u64 = 20_000_000;

/// The function that the thread runs; `argument` is a `&'static SlowTierEmulator`.
pub(super) extern "C" fn run(argument: *mut c_void) {
    // SAFETY: `SlowTierEmulator::launch` passes a reference that lives for ever.
    let emulator = unsafe { &*argument.cast::<SlowTierEmulator>() };
    // SAFETY: this is the service thread, and this is its only call.
    let handler = unsafe { emulator.handler() };
    let opened = isotherm_sys::thread::settle_bare(c"isotherm")
        .map_err(|_| OffReason::NoThread)
        .and_then(|()| emulator.open(handler));
    emulator.announce(opened);
    if opened.is_ok() {
        let reason = Service {
            emulator,
            handler,
            program: ProgramThreads::open(),
            next_program_ns: 0,
            next_request_ns: 0,
            next_publish_ns: 0,
        }
        .serve();
        if let Some(reason) = reason {
            emulator.give_up(handler, reason);
        }
    }
}

struct Service<'a> {
    emulator: &'a SlowTierEmulator,
    handler: &'a mut FaultHandler,
    program: ProgramThreads,
    next_program_ns: u64,
    next_request_ns: u64,
    next_publish_ns: u64,
}

impl Service<'_> {
    /// Serves until it should end, or a fatal error.
    fn serve(&mut self) -> Option<OffReason> {
        let mut messages = [Message::default(); MESSAGES];
        while !self.emulator.ends() {
            let Ok(count) = self.read(&mut messages) else {
                return Some(OffReason::NoUserfaultfd);
            };
            let seen_ns = now_ns();
            for message in &messages[..count] {
                if let Some(address) = message.page_address() {
                    self.emulator.fault(self.handler, address, seen_ns);
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

    /// Ends the process if the program has no thread any more, which it checks from time to time.
    fn end_with_the_program(&mut self, now_ns: u64) {
        if now_ns >= self.next_program_ns {
            self.next_program_ns = now_ns + PROGRAM_NS;
            self.program.end_with_them(1);
        }
    }

    fn read(&self, messages: &mut [Message]) -> rustix::io::Result<usize> {
        self.handler
            .mover
            .as_ref()
            .map_or(Ok(0), |mover| mover.uffd().read(messages))
    }

    /// Takes one small step of everything that is due.
    fn work(&mut self, now_ns: u64) {
        self.handler.let_due_go(now_ns);
        self.handler.advance_period(now_ns);
        if self.handler.is_leaving() {
            self.handler.leave_step();
        }
        self.handler.resample(now_ns);
        if let Some(requests) = self.emulator.requests() {
            // Requests for pages are many and small, so the next one is read as soon as the last is obeyed.
            if now_ns >= self.next_request_ns || requests.has_page_requests() {
                self.handler
                    .start_next_request(&requests, self.emulator.tiers);
                self.next_request_ns = now_ns + REQUEST_NS;
            }
            self.handler
                .migrate_step(&requests, self.emulator.tiers, now_ns);
        }
        if now_ns >= self.next_publish_ns {
            self.handler.publish();
            self.handler
                .account
                .set(SessionCounter::ServiceNanos, thread_ns());
            self.next_publish_ns = now_ns + PUBLISH_NS;
        }
    }

    /// Waits for the next fault or the next deadline.
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
            self.emulator.requests().map(|_| self.next_request_ns),
            self.next_page_request_ns(now_ns),
            Some(self.next_program_ns),
        ]
        .into_iter()
        .flatten()
        .min();
        if wake_ns.is_none_or(|wake_ns| wake_ns > now_ns) {
            self.sleep(wake_ns.map(|wake_ns| wake_ns - now_ns));
        }
    }

    /// When the next request for pages can be read, if one waits.
    fn next_page_request_ns(&self, now_ns: u64) -> Option<u64> {
        let idle = !self.handler.migration.is_busy() && self.handler.held == 0;
        let waits = self
            .emulator
            .requests()
            .is_some_and(|it| it.has_page_requests());
        (idle && waits).then_some(now_ns)
    }

    /// Sleeps until a fault or the timeout; without one, until a fault.
    fn sleep(&self, timeout_ns: Option<u64>) {
        let timeout = timeout_ns.map(|nanos| Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as _,
        });
        // An error is an interruption, after which the loop checks again.
        let _ = match &self.handler.mover {
            Some(mover) => poll(
                &mut [PollFd::new(mover.uffd(), PollFlags::IN)],
                timeout.as_ref(),
            ),
            None => poll(&mut [], timeout.as_ref()),
        };
    }
}
