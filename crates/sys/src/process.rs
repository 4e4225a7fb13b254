//! A [`ProcessHandle`] holds another process by a pidfd (Linux 5.3), to end it or to learn whether it has ended: a later process of the
//! same number is not mistaken for it. [`wait_with_processor_time`] waits for a child and returns its status and its processor time, with
//! that of those descendants that were waited for.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that existed when it was opened.
#[derive(Debug)]
pub struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Opens a process by number.
    ///
    /// # Errors
    /// `ESRCH`: no such process. `ENOSYS`: the kernel is older than 5.3.
    pub fn open(process: u32) -> Result<Self, Errno> {
        let number = i32::try_from(process).ok().and_then(Pid::from_raw);
        pidfd_open(number.ok_or(Errno::SRCH)?, PidfdFlags::empty()).map(Self)
    }

    /// Ends it by SIGKILL.
    ///
    /// # Errors
    /// `ESRCH`: it has ended. `EPERM`: it belongs to another user.
    pub fn kill(&self) -> Result<(), Errno> {
        pidfd_send_signal(&self.0, Signal::KILL)
    }

    /// The pidfd, for a system call that no library wraps.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Whether it has ended, reaped or not.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ends_within(Duration::ZERO) == Ok(true)
    }

    /// Waits for its end, at most this time. Whether it has ended, reaped or not.
    ///
    /// # Errors
    /// `EINTR`: a signal arrived here.
    pub fn ends_within(&self, span: Duration) -> Result<bool, Errno> {
        let limit = Timespec {
            tv_sec: span.as_secs() as i64,
            tv_nsec: i64::from(span.subsec_nanos()),
        };
        Ok(poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&limit))? > 0)
    }
}

/// Waits for the end of a child that was not waited for before (wait4). Returns its status, and the processor time of the child and of
/// all its descendants that were waited for.
///
/// # Errors
/// `ECHILD`: it was waited for before.
pub fn wait_with_processor_time(child: &Child) -> io::Result<(ExitStatus, Duration)> {
    // SAFETY: all-zero bytes are a valid `rusage`: it holds integers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: both pointers are to live variables of the types that wait4 writes.
        let waited = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, &mut usage) };
        if waited > 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |of: libc::timeval| {
        Duration::from_secs(of.tv_sec as u64) + Duration::from_micros(of.tv_usec as u64)
    };
    let processor_time = time(usage.ru_utime) + time(usage.ru_stime);
    Ok((ExitStatus::from_raw(status), processor_time))
}

#[cfg(test)]
mod tests {
    use super::{ProcessHandle, wait_with_processor_time};
    use rustix::io::Errno;
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn a_process_has_ended_once_it_was_killed_and_an_absent_one_is_not_opened() {
        assert_eq!(ProcessHandle::open(0).unwrap_err(), Errno::SRCH);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let handle = ProcessHandle::open(child.id());
        let early = handle.as_ref().map(ProcessHandle::has_ended);
        match &handle {
            Ok(handle) => handle.kill().unwrap(),
            Err(_) => child.kill().unwrap(),
        }
        child.wait().unwrap();
        match early {
            Ok(ended) => {
                assert!(!ended);
                assert_eq!(handle.as_ref().unwrap().kill(), Err(Errno::SRCH));
                assert!(handle.unwrap().has_ended());
                assert_eq!(ProcessHandle::open(u32::MAX).unwrap_err(), Errno::SRCH);
            }
            Err(error) => isotherm_skip::skip!("pidfd_open: {error}"),
        }
    }

    #[test]
    fn the_processor_time_of_a_child_is_that_of_its_own_child_too() {
        let work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let mut command = Command::new("sh");
        let child = command.args(["-c", &format!("sh -c '{work}'; exit 3")]);
        let mut child = child.spawn().unwrap();
        let (status, time) = wait_with_processor_time(&child).unwrap();
        assert_eq!(status.code(), Some(3));
        assert!(time > Duration::from_millis(5), "{time:?}");
        let again = child.wait().unwrap_err();
        assert_eq!(again.raw_os_error(), Some(libc::ECHILD));
    }
}
