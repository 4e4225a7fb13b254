//! `ProgramSignals` passes signals on to the program that runs, except those of a terminal key, which the program receives itself; this
//! process lives on to store what was measured.
//!
//! A signal that this process ignored when it started stays ignored, here and in the program.
//!
//! In a command that calls [`catch_from_here`], a signal that arrives before the first run or between two runs ends the next run: once
//! signals are caught, the kernel no longer ends this process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result};
use isotherm_sys::signal::{SENT_BY_KERNEL, is_ignored};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithRawSiginfo;

/// Signals that request the end.
const ENDING: [Signal; 3] = [Signal::TERM, Signal::HUP, Signal::INT];
/// All signals that are passed on.
const ALL: [Signal; 4] = [Signal::TERM, Signal::HUP, Signal::INT, Signal::QUIT];

/// Number of the last signal that requested the end, in all runs of this process; 0 before one arrives. `None` where the kernel refused.
static WANTED: LazyLock<Option<Arc<AtomicUsize>>> = LazyLock::new(|| {
    let wanted = Arc::new(AtomicUsize::new(0));
    for number in not_ignored(&ENDING) {
        signal_hook::flag::register_usize(number, Arc::clone(&wanted), number as usize).ok()?;
    }
    Some(wanted)
});

/// Numbers of the signals that this process does not ignore.
fn not_ignored(signals: &[Signal]) -> impl Iterator<Item = i32> {
    let numbers = signals.iter().map(|signal| signal.as_raw());
    numbers.filter(|number| !is_ignored(*number))
}

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
    caught: SignalsInfo<WithRawSiginfo>,
    /// The signal that requested the end before the start, until it is passed on.
    late: Option<Signal>,
    wanted: Arc<AtomicUsize>,
}

impl ProgramSignals {
    /// Catches them. Where the end was requested before, that signal is the first that is passed on.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn catch() -> Result<Self> {
        let wanted = WANTED.as_ref().context("cannot catch signals")?;
        Self::new(Arc::clone(wanted), not_ignored(&ALL))
    }

    /// Catches the signals of these numbers.
    fn new(wanted: Arc<AtomicUsize>, signals: impl Iterator<Item = i32>) -> Result<Self> {
        let number = wanted.load(Ordering::Relaxed) as i32;
        let late = ENDING.into_iter().find(|signal| signal.as_raw() == number);
        let caught = SignalsInfo::new(signals).context("cannot catch signals")?;
        Ok(Self {
            caught,
            late,
            wanted,
        })
    }

    /// Sends the program the signals that have arrived, except those that it has received from the terminal itself.
    pub(crate) fn pass_on(&mut self, child: &Child) {
        let pid = Pid::from_child(child);
        let arrived = self.caught.pending().filter_map(|info| {
            let signal = Signal::from_named_raw(info.si_signo)?;
            (!is_from_key(signal, info.si_code)).then_some(signal)
        });
        for signal in self.late.take().into_iter().chain(arrived) {
            // The program may have ended meanwhile; then the signal is dropped.
            let _ = kill_process(pid, signal);
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

/// True if a key of the terminal sent it: the program is in the same process group and has received it, too. A terminal that hangs up
/// sends SIGHUP to the first process of its session alone.
const fn is_from_key(signal: Signal, code: i32) -> bool {
    code == SENT_BY_KERNEL && matches!(signal, Signal::INT | Signal::QUIT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use isotherm_sys::signal::SENT_BY_KERNEL;
    use rustix::process::Signal;

    use super::{ProgramSignals, is_from_key};

    #[test]
    fn a_signal_from_before_the_start_ends_the_program() {
        let wanted = Arc::new(AtomicUsize::new(Signal::TERM.as_raw() as usize));
        let mut signals = ProgramSignals::new(wanted, std::iter::empty()).unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        signals.pass_on(&child);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(Signal::TERM.as_raw()));
        assert_eq!(signals.wanted(), Some(status));
    }

    #[test]
    fn without_a_signal_nothing_is_passed_on() {
        let mut signals = ProgramSignals::new(Arc::default(), std::iter::empty()).unwrap();
        let mut child = Command::new("true").spawn().unwrap();
        signals.pass_on(&child);
        assert!(child.wait().unwrap().success());
        assert_eq!(signals.wanted(), None);
    }

    #[test]
    fn a_hang_up_and_a_signal_of_a_process_are_not_from_a_key() {
        let sent_by_process = 0;
        assert!(is_from_key(Signal::INT, SENT_BY_KERNEL));
        assert!(is_from_key(Signal::QUIT, SENT_BY_KERNEL));
        assert!(!is_from_key(Signal::HUP, SENT_BY_KERNEL));
        assert!(!is_from_key(Signal::INT, sent_by_process));
    }
}
