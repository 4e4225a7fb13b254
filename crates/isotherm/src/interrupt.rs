//! `Interrupt` catches the first signal for a command that runs no program: the command asks for it between its steps, and ends with
//! terminal and files in order; a second signal ends the process at once.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result};
use isotherm_sys::signal::is_ignored;

/// The signals that were caught. A second one ends the program at once.
pub(crate) struct Interrupt {
    /// Number of the last signal; 0 before one arrives.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches these signals from here on, except those that this process ignored when it started: they stay ignored.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) fn catch(signals: &[i32]) -> Result<Self> {
        let came = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicUsize::new(0));
        for &signal in signals.iter().filter(|signal| !is_ignored(**signal)) {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&came))
                .and_then(|_| {
                    let number = Arc::clone(&number);
                    signal_hook::flag::register_usize(signal, number, signal as usize)
                })
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&came)))
                .context("cannot catch signals")?;
        }
        Ok(Self { signal: number })
    }

    /// The exit status of a program ended by the signal that arrived; None before one arrives.
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        match self.signal.load(Ordering::Relaxed) as i32 {
            0 => None,
            signal => Some(ExitStatus::from_raw(signal)),
        }
    }
}

#[cfg(test)]
mod tests {
    use signal_hook::consts::SIGPIPE;

    use super::Interrupt;

    /// Rust's start ignores SIGPIPE in every program.
    #[test]
    fn a_signal_that_is_ignored_stays_ignored() {
        let interrupt = Interrupt::catch(&[SIGPIPE]).unwrap();
        signal_hook::low_level::raise(SIGPIPE).unwrap();
        assert_eq!(interrupt.status(), None);
    }
}
