//! `SessionGuard` holds a process that removes the session directory of a run that was killed: it waits for the end of a pipe, which the
//! kernel closes with the run. `as_guard` is the code of that process; `remove` and `is_ours` also serve the next run, which removes the
//! directories of earlier ones.
//!
//! A run removes its directory at its end, but not after SIGKILL, and files there occupy memory. So it starts a
//! process that waits for the run's end and removes the remaining files. That process is this
//! program again under another name, in a session of its own: signals of the terminal do not reach
//! it, and a service manager that sends SIGTERM to all processes of a unit does not end it first.
//!
//! ```text
//! run            guard
//! pipe, start    catches the signals, writes a byte
//! reads it       waits for the end of the pipe
//! ...            the kernel closes the pipe at any end of the run
//!                removes the directory
//! ```
//!
//! The run waits for that byte: a service manager can signal the guard as soon as it exists.
//!
//! The programs may run on: the runtime has its file mapped, writes to it, and cannot create a new one.

use std::ffi::OsStr;
use std::io::{self, PipeWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::getuid;

/// Under this name, instead of its own, the program is a guard.
const NAME: &str = "isotherm-session-guard";

/// The guard of one directory; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    process: Child,
    _alive: PipeWriter,
}

impl SessionGuard {
    /// Starts one, and waits until no usual signal ends it.
    ///
    /// # Errors
    /// No process or pipe could be created, or the process ended at once.
    pub(crate) fn start(directory: &Path) -> io::Result<Self> {
        let (ends, alive) = io::pipe()?;
        let (mut ready, says_ready) = io::pipe()?;
        // The command owns the guard's ends of the pipes, and is dropped before the wait.
        let process = Command::new("/proc/self/exe")
            .arg0(NAME)
            .arg(directory)
            .current_dir("/")
            .stdin(ends)
            .stdout(says_ready)
            .stderr(Stdio::null())
            .spawn()?;
        let guard = Self {
            process,
            _alive: alive,
        };
        ready.read_exact(&mut [0])?;
        Ok(guard)
    }
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        // A guard that has already ended cannot be killed, but must still be waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The exit status of a guard, if this process was started as one.
pub(crate) fn as_guard() -> Option<ExitCode> {
    let mut words = std::env::args_os();
    let is_guard = words.next().is_some_and(|name| name == OsStr::new(NAME));
    let directory = words.next().filter(|_| is_guard)?;
    Some(match wait_and_remove(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn wait_and_remove(directory: &Path) -> io::Result<()> {
    rustix::process::setsid()?;
    for signal in [
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGHUP,
    ] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    // A run that was killed meanwhile reads no byte; its directory is removed all the same.
    let mut out = io::stdout();
    let _ = out.write_all(b".").and_then(|()| out.flush());
    io::stdin().read_to_end(&mut Vec::new())?;
    remove(directory);
    Ok(())
}

/// Removes a directory of this user's whose run has ended, if it still exists. A process that starts meanwhile may add a file
/// to it, and the guard and a later run may remove it at the same time: each tries again.
pub(crate) fn remove(path: &Path) {
    const ATTEMPTS: usize = 5;
    for _ in 0..ATTEMPTS {
        if !is_ours(path) || std::fs::remove_dir_all(path).is_ok() {
            return;
        }
    }
}

/// Whether it is a directory of this user, and no link to one.
pub(crate) fn is_ours(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|data| data.is_dir() && data.uid() == getuid().as_raw())
}
