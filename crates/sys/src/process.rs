//! Another process, held by a pidfd (Linux 5.3), so that a later process of the same number is not mistaken for
//! it.

use std::os::fd::OwnedFd;

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

    /// Whether it has ended, reaped or not.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessHandle;
    use rustix::io::Errno;
    use std::process::Command;

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
}
