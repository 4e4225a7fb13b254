//! `Attached` waits for the end of the recording of a process that runs already (`isotherm record --pid`): until the process ends, the time
//! is over or a signal arrives. No signal is sent to the process: the end of the recording leaves it as it is.

use std::time::{Duration, Instant};

use anyhow::Result;
use isotherm_console::Console;
use isotherm_model::profile::Ending;
use isotherm_model::units::Nanos;
use isotherm_sys::process::ProcessHandle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::interrupt::Interrupt;
use crate::observed_run::{ObservationEnd, ObservedProcess};

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttachedEnd {
    /// The process ended.
    Process,
    /// The time was over.
    Time,
    /// A signal requested it.
    Signal,
}

/// The process, and what ends its recording.
pub(crate) struct Attached {
    handle: ProcessHandle,
    interrupt: Interrupt,
    /// When the time of the recording is over, if it has a limit.
    until: Option<Instant>,
    end: Option<AttachedEnd>,
}

impl Attached {
    /// Records a process for this time, if there is a limit, from now on. The signals that request the end
    /// are caught from here on, except those that are ignored; a second one ends this command at once.
    ///
    /// # Errors
    /// The kernel refused to catch signals.
    pub(crate) fn new(handle: ProcessHandle, limit: Option<Nanos>) -> Result<Self> {
        let limit = limit.map(|limit| Duration::from_nanos(limit.0));
        Ok(Self {
            handle,
            interrupt: Interrupt::catch(&[SIGINT, SIGTERM, SIGHUP])?,
            until: limit.and_then(|limit| Instant::now().checked_add(limit)),
            end: None,
        })
    }

    /// What has ended the recording by now.
    fn ended(&self, has_process_ended: bool) -> Option<AttachedEnd> {
        let is_over = |until: Instant| Instant::now() >= until;
        if has_process_ended {
            Some(AttachedEnd::Process)
        } else if self.interrupt.status().is_some() {
            Some(AttachedEnd::Signal)
        } else {
            self.until.is_some_and(is_over).then_some(AttachedEnd::Time)
        }
    }
}

impl ObservedProcess for Attached {
    type Ended = AttachedEnd;

    fn wait(&mut self, span: Duration) -> Result<bool> {
        let due = Instant::now() + span;
        loop {
            self.end = self.end.or_else(|| self.ended(self.handle.has_ended()));
            let now = Instant::now();
            if self.end.is_some() || now >= due {
                return Ok(self.end.is_some());
            }
            let until = self.until.map_or(due, |until| until.min(due));
            // A signal ends the wait early.
            let _ = self
                .handle
                .ends_within(until.saturating_duration_since(now));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.status().is_some()
    }

    fn finish(mut self, _console: Console) -> Result<(AttachedEnd, ObservationEnd)> {
        while !self.wait(Duration::from_secs(60))? {}
        let end = ObservationEnd {
            ending: Ending::Detached,
            counts: Vec::new(),
            began: true,
        };
        Ok((self.end.unwrap_or(AttachedEnd::Process), end))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use isotherm_model::units::Nanos;
    use isotherm_sys::process::ProcessHandle;

    use super::{Attached, AttachedEnd, ObservedProcess};

    #[test]
    fn a_recording_ends_by_its_time_and_with_the_process() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let open = || ProcessHandle::open(child.id()).unwrap();
        let mut by_time = Attached::new(open(), Some(Nanos(20_000_000))).unwrap();
        let mut without = Attached::new(open(), None).unwrap();
        assert!(by_time.wait(Duration::from_secs(600)).unwrap());
        assert_eq!(by_time.end, Some(AttachedEnd::Time));
        assert!(!without.wait(Duration::ZERO).unwrap());
        assert!(child.try_wait().unwrap().is_none(), "it runs on");
        child.kill().unwrap();
        assert!(without.wait(Duration::from_secs(600)).unwrap());
        assert_eq!(without.end, Some(AttachedEnd::Process));
        child.wait().unwrap();
    }
}
