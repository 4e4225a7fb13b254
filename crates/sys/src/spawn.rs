//! Starts a child process and holds it at a pipe just before `exec`, so that the caller can attach counters to it first.
//!
//! ```text
//! we                                       child
//! spawn_suspended --------- fork --->      writes its pid, waits for one byte
//! attach counters to pid
//! SuspendedChild::release - byte --->      exec
//! ```

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread::JoinHandle;

/// A child that waits before its `exec`, and ends without one if it is not released.
#[derive(Debug)]
pub struct SuspendedChild {
    /// Its process id, the same after `exec`.
    pub pid: u32,
    go: io::PipeWriter,
    spawning: JoinHandle<io::Result<Child>>,
}

/// The exit status of a held child that was never released; only its parent receives it, if it still lives.
const NOT_RELEASED: i32 = 125;

/// Starts `command` and holds it before `exec`.
///
/// `Command::spawn` returns only after the child's `exec`, so it waits on its own thread.
///
/// # Errors
/// A pipe, thread or process could not be made.
pub fn spawn_suspended(mut command: Command) -> io::Result<SuspendedChild> {
    let (mut pid_reader, pid_writer) = io::pipe()?;
    let (go_reader, go) = io::pipe()?;
    let pid_fd = OwnedFd::from(pid_writer);
    let go_fd = OwnedFd::from(go_reader);
    let (report, wait) = (pid_fd.as_raw_fd(), go_fd.as_raw_fd());
    let held = go.as_raw_fd();
    let announce = move || announce_and_wait(report, wait, held);
    // SAFETY: the hook runs in the forked child, where only async-signal-safe calls are allowed;
    // it makes no other than getpid, write, close and read, and allocates nothing. The descriptors
    // stay open until `spawn` has returned, because the thread below owns them.
    unsafe { command.pre_exec(announce) };
    let spawning = std::thread::Builder::new()
        .name("spawn".to_owned())
        .spawn(move || {
            let child = command.spawn();
            drop((pid_fd, go_fd));
            child
        })?;
    let mut pid = [0; 4];
    match pid_reader.read_exact(&mut pid) {
        Ok(()) => Ok(SuspendedChild {
            pid: u32::from_ne_bytes(pid),
            go,
            spawning,
        }),
        Err(error) => Err(joined(spawning).err().unwrap_or(error)),
    }
}

fn announce_and_wait(report: i32, wait: i32, held: i32) -> io::Result<()> {
    // SAFETY: plain system calls on descriptors that are open in this child and on a local buffer.
    // Our copy of the write end is closed first, or the read would never see the end of file when
    // the parent dies.
    let answer = unsafe {
        let pid = libc::getpid().to_ne_bytes();
        libc::close(held);
        libc::write(report, pid.as_ptr().cast(), pid.len());
        let mut byte = 0_u8;
        libc::read(wait, (&raw mut byte).cast(), 1)
    };
    if answer == 1 {
        return Ok(());
    }
    // Not by an error: `Command` would report it to our parent, and panic where that has ended.
    // SAFETY: ends this process, which is only the copy of its parent, without any of the parent's handlers.
    unsafe { libc::_exit(NOT_RELEASED) }
}

fn joined(spawning: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawning
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the spawning thread panicked")))
}

impl SuspendedChild {
    /// Lets the child continue to its `exec` and returns it. A child that a signal ended before, such as an interrupt from the terminal, is
    /// returned like one that the signal ended later.
    ///
    /// # Errors
    /// `exec` failed: no such program, no permission, or not a program.
    pub fn release(mut self) -> io::Result<Child> {
        let released = self.go.write_all(b"!");
        drop(self.go);
        match released {
            // No child reads: it has ended, and its status says why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => joined(self.spawning),
            released => released.and_then(|()| joined(self.spawning)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::spawn_suspended;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn the_pid_is_known_before_the_program_runs_and_stays_the_same() {
        let mut command = Command::new("sh");
        command.args(["-c", "exit 7"]);
        let held = spawn_suspended(command).unwrap();
        let pid = held.pid;
        let mut child = held.release().unwrap();
        assert_eq!(child.id(), pid);
        assert_eq!(child.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_of_release() {
        let held = spawn_suspended(Command::new("/no/such/program")).unwrap();
        assert_eq!(
            held.release().unwrap_err().kind(),
            std::io::ErrorKind::NotFound
        );
    }

    /// With the variable set it is the program of the test, without it the test.
    #[test]
    fn a_child_whose_parent_ends_before_it_lets_go_ends_in_silence() {
        const IS_PROGRAM: &str = "ISOTHERM_TEST_HOLDS_A_CHILD";
        if std::env::var_os(IS_PROGRAM).is_some() {
            let held = spawn_suspended(Command::new("echo"));
            // The child's end of the pipe is the only one left.
            std::process::exit(i32::from(held.is_err()));
        }
        let name = "spawn::tests::a_child_whose_parent_ends_before_it_lets_go_ends_in_silence";
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(IS_PROGRAM, "1")
            .output()
            .unwrap();
        assert!(done.status.success());
        assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    }

    #[test]
    fn a_child_that_a_signal_ends_before_its_release_has_its_status() {
        let held = spawn_suspended(Command::new("true")).unwrap();
        // Shells have SIGINT ignored in what runs in the background.
        // SAFETY: the process is a child of this one, and was not waited for.
        let sent = unsafe { libc::kill(held.pid as i32, libc::SIGTERM) };
        assert_eq!(sent, 0);
        while !held.spawning.is_finished() {
            std::thread::yield_now();
        }
        let status = held.release().unwrap().wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGTERM));
    }

    #[test]
    fn a_child_that_is_never_released_ends_without_exec() {
        let held = spawn_suspended(Command::new("true")).unwrap();
        let super::SuspendedChild { go, spawning, .. } = held;
        drop(go);
        let mut child = super::joined(spawning).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(super::NOT_RELEASED));
    }
}
