//! A [`ThreadTimer`], a perf event, signals the thread that started it after each period of the thread's own processor time, for the
//! emulation of slow memory by time.
//!
//! The event is the kernel's `cpu-clock` with `exclude_kernel`: it counts while the thread runs, and overflows only
//! while the program's own code runs, so the signal never interrupts a system call. No descriptor remains: the mapping
//! of the event's control page keeps the event alive, and a program that closes every descriptor it does not know, or
//! relies on the numbers of its own, notices nothing. The mapping is not copied by a fork.
//!
//! Signals of the program's standard range do not queue: while one is blocked or being handled, at most one more is
//! pending, however often the event overflows.
//!
//! Kernel: `perf_event_open(2)`, "Overflow handling"; `fcntl(2)`, `F_SETSIG` and `F_SETOWN_EX`.

use std::io;
use std::os::fd::AsRawFd;

use super::event_memory::EventMemory;
use super::{PerfEventAttributes, abi, begin_at_once, open};

/// Bytes of the control page.
const CONTROL_BYTES: usize = 4096;

/// The target of an event's signals (`struct f_owner_ex` of the kernel).
#[repr(C)]
struct Owner {
    kind: libc::c_int,
    id: libc::pid_t,
}

/// `F_OWNER_TID`: a thread.
const OWNER_THREAD: libc::c_int = 0;

/// A timer of one thread. It ends when this is dropped, in whichever thread, or with its thread.
#[derive(Debug)]
pub struct ThreadTimer {
    _control: EventMemory,
}

impl ThreadTimer {
    /// Starts a timer that sends `signal` to the calling thread after each `period_ns` nanoseconds of its processor time,
    /// 10,000 at least. Nothing is allocated. A handler of the signal must be installed.
    ///
    /// # Errors
    /// The kernel's: `EACCES` or `EPERM` where perf events are forbidden (`kernel.perf_event_paranoid`, a filter of system
    /// calls), `EPERM` from the mapping where this user's events use all of `kernel.perf_event_mlock_kb`.
    pub fn start(period_ns: u64, signal: libc::c_int) -> io::Result<Self> {
        let mut attributes = PerfEventAttributes {
            config: u64::from(abi::PERF_COUNT_SW_CPU_CLOCK),
            ..PerfEventAttributes::software(period_ns)
        }
        .attributes();
        begin_at_once(&mut attributes);
        attributes.set_watermark(0);
        attributes.__bindgen_anon_2.wakeup_events = 1;
        let event = open(&mut attributes, 0, -1, None)?;
        let control = EventMemory::map(&event, 0, CONTROL_BYTES)?;
        let owner = Owner {
            kind: OWNER_THREAD,
            id: rustix::thread::gettid().as_raw_nonzero().get(),
        };
        let fd = event.as_raw_fd();
        // SAFETY: requests on a live descriptor; the kernel reads one `f_owner_ex` from the pointer, which is live.
        let results = unsafe {
            [
                libc::fcntl(fd, F_SETSIG, signal),
                libc::fcntl(fd, F_SETOWN_EX, &raw const owner),
                libc::fcntl(fd, libc::F_SETFL, libc::O_ASYNC),
            ]
        };
        if results.contains(&-1) {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { _control: control })
    }

    /// Whether a signal of the kind that the timers send is a timer's, not another process's or a socket's: the kernel says of
    /// a descriptor's signals which event they report.
    #[must_use]
    pub const fn has_sent(signal: &libc::siginfo_t) -> bool {
        matches!(signal.si_code, POLL_IN..=POLL_HUP)
    }
}

/// `POLL_IN`, the least event of `asm-generic/siginfo.h`.
const POLL_IN: libc::c_int = 1;
/// `POLL_HUP`, the greatest.
const POLL_HUP: libc::c_int = 6;

/// `F_SETSIG` of `linux/fcntl.h`.
const F_SETSIG: libc::c_int = 10;
/// `F_SETOWN_EX` of `linux/fcntl.h`.
const F_SETOWN_EX: libc::c_int = 15;

#[cfg(test)]
mod tests {
    use super::ThreadTimer;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    static SIGNALS: AtomicU32 = AtomicU32::new(0);
    static OTHERS: AtomicU32 = AtomicU32::new(0);

    unsafe extern "C" fn count(_: libc::c_int, signal: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel's.
        let of_timer = ThreadTimer::has_sent(unsafe { &*signal });
        let counter = if of_timer { &SIGNALS } else { &OTHERS };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn handle(signal: libc::c_int) {
        // SAFETY: an action of zeroes is valid, and the handler only adds to an atomic.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            action.sa_sigaction = count as *const () as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            assert_eq!(
                libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
                0
            );
        }
    }

    fn processor_ms() -> u128 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the kernel writes one timespec.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        time.tv_sec as u128 * 1000 + time.tv_nsec as u128 / 1_000_000
    }

    fn work(ms: u128) {
        let end = processor_ms() + ms;
        while processor_ms() < end {
            for number in 0..10_000u64 {
                std::hint::black_box(number);
            }
        }
    }

    #[test]
    fn the_thread_is_signalled_while_it_works_and_not_while_it_sleeps_or_after() {
        let signal = libc::SIGWINCH;
        handle(signal);
        let timer = match ThreadTimer::start(1_000_000, signal) {
            Ok(timer) => timer,
            Err(error) => return isotherm_skip::skip!("a timer of this thread: {error}"),
        };
        work(200);
        let working = SIGNALS.load(Ordering::Relaxed);
        // A hypervisor that runs other machines meanwhile delivers fewer than 200.
        assert!((1..400).contains(&working), "{working} signals in 200 ms");
        let begin = Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(
            begin.elapsed().as_millis() >= 200,
            "the sleep was cut short"
        );
        assert!(SIGNALS.load(Ordering::Relaxed) - working < 20);
        assert_eq!(OTHERS.load(Ordering::Relaxed), 0);
        // SAFETY: the signal has a handler.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
        assert_eq!(OTHERS.load(Ordering::Relaxed), 1);
        drop(timer);
        let before = SIGNALS.load(Ordering::Relaxed);
        work(50);
        assert!(SIGNALS.load(Ordering::Relaxed) - before <= 1);
    }
}
