//! Signals while a program runs: each is passed on, and this process lives to store what was measured.
//!
//! A signal that arrives before the first run of a command that calls [`catch_from_here`], or between two runs, ends the next one: the
//! kernel's own action is gone once signals are caught.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::SigId;

/// Signals that request the end.
const ENDING: [Signal; 3] = [Signal::TERM, Signal::HUP, Signal::INT];
/// All that are passed on.
const ALL: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT];

/// Number of the last signal that requested the end, in all runs of this process; 0 before one arrives. `None` where the kernel refused.
static WANTED: LazyLock<Option<Arc<AtomicUsize>>> = LazyLock::new(|| {
    let wanted = Arc::new(AtomicUsize::new(0));
    for number in ENDING.map(Signal::as_raw) {
        signal_hook::flag::register_usize(number, Arc::clone(&wanted), number as usize).ok()?;
    }
    Some(wanted)
});

/// Catches the signals that request the end from here on: one that arrives before a program starts ends that program, so that the command
/// still says what it has.
///
/// # Errors
/// The kernel refused.
pub(crate) fn catch_from_here() -> Result<()> {
    WANTED.as_ref().context("cannot catch signals").map(drop)
}

/// The signals of one program, caught until this is dropped.
#[derive(Debug)]
pub(crate) struct ProgramSignals {
    /// The signals to pass on, and whether they have arrived.
    passed_on: Vec<(Signal, Arc<AtomicBool>)>,
    wanted: Arc<AtomicUsize>,
    registered: Vec<SigId>,
}

impl ProgramSignals {
    /// Catches them. An interrupt from the terminal reaches the program directly, because it is in the same process group. Where the end was
    /// requested before, that signal is the first that is passed on.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn catch() -> Result<Self> {
        let wanted = WANTED.as_ref().context("cannot catch signals")?;
        let mut signals = Self::after(Arc::clone(wanted));
        let has_terminal = std::fs::File::open("/dev/tty").is_ok();
        for signal in ALL {
            let came = Arc::new(AtomicBool::new(false));
            let id = signal_hook::flag::register(signal.as_raw(), Arc::clone(&came));
            signals.registered.push(id.context("cannot catch signals")?);
            if !has_terminal || matches!(signal, Signal::TERM | Signal::HUP) {
                signals.passed_on.push((signal, came));
            }
        }
        Ok(signals)
    }

    /// No signals but the one that was wanted before, if any.
    fn after(wanted: Arc<AtomicUsize>) -> Self {
        let number = wanted.load(Ordering::Relaxed) as i32;
        let late = ENDING.into_iter().find(|signal| signal.as_raw() == number);
        let arrived = |signal| (signal, Arc::new(AtomicBool::new(true)));
        Self {
            passed_on: late.map(arrived).into_iter().collect(),
            wanted,
            registered: Vec::new(),
        }
    }

    /// Sends the program those that have arrived.
    pub(crate) fn pass_on(&self, child: &Child) {
        let pid = Pid::from_child(child);
        for (signal, came) in &self.passed_on {
            if came.swap(false, Ordering::Relaxed) {
                // The program may have ended meanwhile; then the signal is dropped.
                let _ = kill_process(pid, *signal);
            }
        }
    }

    /// The signal that requested the end, as the status of a program that it ended.
    pub(crate) fn wanted(&self) -> Option<ExitStatus> {
        match self.wanted.load(Ordering::Relaxed) as i32 {
            0 => None,
            signal => Some(ExitStatus::from_raw(signal)),
        }
    }
}

impl Drop for ProgramSignals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use rustix::process::Signal;

    use super::ProgramSignals;

    #[test]
    fn a_signal_from_before_the_start_ends_the_program() {
        let wanted = Arc::new(AtomicUsize::new(Signal::TERM.as_raw() as usize));
        let signals = ProgramSignals::after(wanted);
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        signals.pass_on(&child);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
        assert_eq!(signals.wanted(), Some(status));
    }

    #[test]
    fn without_a_signal_nothing_is_passed_on() {
        let signals = ProgramSignals::after(Arc::default());
        let mut child = Command::new("true").spawn().unwrap();
        signals.pass_on(&child);
        assert!(child.wait().unwrap().success());
        assert_eq!(signals.wanted(), None);
    }
}
