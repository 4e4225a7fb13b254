//! [`write_within`] writes to a file of the kernel, and ends after a time by a timer's signal, done or not. The kernel obeys some requests
//! within the write, such as the reclaim of a control group: that may take as long as a program takes more memory meanwhile.
//!
//! A timer signals the calling thread, again and again, so that a signal just before the write is followed by another one. The handler
//! does nothing: a pending signal ends a write (`timer_create(2)`, `SIGEV_THREAD_ID`; `signal(7)`, "Interruption of system calls").

use std::fs::File;
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

/// Writes all at once, for this time at most.
///
/// # Errors
/// `Interrupted` where the time is up; else the error of the write, or of the timer.
pub fn write_within(mut file: &File, bytes: &[u8], within: Duration) -> io::Result<()> {
    let _alarm = ThreadAlarm::start(within)?;
    // Not `write_all`, which begins again after a signal.
    let written = file.write(bytes)?;
    match written == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::WriteZero.into()),
    }
}

/// The signal of the timers: no other part of this process uses it.
fn signal() -> libc::c_int {
    libc::SIGRTMIN() + 3
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// A timer that signals the thread that started it. It is removed with this.
struct ThreadAlarm(libc::timer_t);

impl ThreadAlarm {
    /// Signals after this time, and again each time that it passes.
    fn start(every: Duration) -> io::Result<Self> {
        install()?;
        // SAFETY: a plain structure of numbers and a pointer, of which all zeroes is a value.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal();
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer: libc::timer_t = ptr::null_mut();
        // SAFETY: both pointers are live for the call, which writes the timer's id only.
        let made =
            unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        checked(made)?;
        let alarm = Self(timer);
        let every = libc::timespec {
            tv_sec: libc::time_t::try_from(every.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: every.subsec_nanos().max(1).into(),
        };
        let times = libc::itimerspec {
            it_interval: every,
            it_value: every,
        };
        // SAFETY: the timer was just made, and the times are live for the call.
        checked(unsafe { libc::timer_settime(alarm.0, 0, &raw const times, ptr::null_mut()) })?;
        Ok(alarm)
    }
}

impl Drop for ThreadAlarm {
    fn drop(&mut self) {
        // SAFETY: the timer is this value's own, and is used no more.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Installs the handler, without `SA_RESTART`: an ignored signal would not end a write.
fn install() -> io::Result<()> {
    // SAFETY: a plain structure of numbers and a pointer, of which all zeroes is a value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = ignore as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler does nothing, so it is safe in any thread at any time; the action is live for the call.
    checked(unsafe { libc::sigaction(signal(), &raw const action, ptr::null_mut()) })
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    match answer {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::write_within;

    #[test]
    fn a_write_that_blocks_is_ended_and_one_that_does_not_is_done() {
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(OwnedFd::from(writer));
        let within = Duration::from_millis(20);
        write_within(&file, b"first", within).expect("there is room");
        let mut read = [0; 5];
        reader.read_exact(&mut read).expect("was written");
        assert_eq!(&read, b"first");
        let more_than_fits = vec![0; 1 << 24];
        // The pipe takes what fits; then it is full, and nothing reads.
        let first = write_within(&file, &more_than_fits, within);
        assert!(first.is_err());
        let second = write_within(&file, b"x", within).expect_err("it is full");
        assert_eq!(second.kind(), io::ErrorKind::Interrupted);
    }
}
