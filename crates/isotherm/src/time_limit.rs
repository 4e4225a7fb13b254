//! `TimeLimit` says when a program is to be ended: by SIGTERM at its limit, then by SIGKILL if it has not ended after a grace period.
//! `read` reads the times of `--time-limit` and of `isotherm record --for`.
//!
//! ```text
//! |------ limit ------|--- GRACE ---|
//! start            SIGTERM       SIGKILL
//! ```

use std::time::Duration;

use isotherm_model::units::{Nanos, QuantityError};

/// Time that a program has for its end after SIGTERM: enough for a server to close its files, and little beside a run that is timed.
const GRACE: Duration = Duration::from_secs(5);

/// A limit, and the signals that the program received because of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    limit: Nanos,
    sent: Option<EndSignal>,
}

/// A signal that ends a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndSignal {
    /// SIGTERM.
    Term,
    /// SIGKILL.
    Kill,
}

/// Reads the value of `--time-limit` or `--for`.
///
/// # Errors
/// The text is not a time above zero.
pub(crate) fn read(text: &str) -> Result<Nanos, String> {
    match text.parse() {
        Ok(Nanos(0)) => Err("must be longer than 0".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(QuantityError::to_string(&error)),
    }
}

impl TimeLimit {
    /// The limit of a program that begins to run.
    pub(crate) const fn new(limit: Nanos) -> Self {
        Self { limit, sent: None }
    }

    /// The signal that a program of this age is to receive now; each is returned once.
    pub(crate) fn due(&mut self, age: Duration) -> Option<EndSignal> {
        if age < self.next()? {
            return None;
        }
        self.sent = Some(match self.sent {
            None => EndSignal::Term,
            Some(_) => EndSignal::Kill,
        });
        self.sent
    }

    /// The age at which the next signal is due; `None` after the last one.
    pub(crate) fn next(&self) -> Option<Duration> {
        let limit = Duration::from_nanos(self.limit.0);
        match self.sent {
            None => Some(limit),
            Some(EndSignal::Term) => Some(limit.saturating_add(GRACE)),
            Some(EndSignal::Kill) => None,
        }
    }

    /// The limit, if the program ran into it.
    pub(crate) fn exceeded(&self) -> Option<Nanos> {
        self.sent.map(|_| self.limit)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isotherm_model::units::Nanos;

    use super::{EndSignal, GRACE, TimeLimit, read};

    #[test]
    fn a_program_is_asked_to_end_before_it_is_killed() {
        let mut limit = TimeLimit::new(Nanos(2_000_000_000));
        let seconds = Duration::from_secs;
        assert_eq!(limit.due(Duration::from_millis(1_999)), None);
        assert_eq!(limit.exceeded(), None);
        assert_eq!(limit.due(seconds(2)), Some(EndSignal::Term));
        assert_eq!(limit.due(seconds(3)), None);
        assert_eq!(limit.next(), Some(seconds(2) + GRACE));
        assert_eq!(limit.due(seconds(2) + GRACE), Some(EndSignal::Kill));
        assert_eq!((limit.due(seconds(60)), limit.next()), (None, None));
        assert_eq!(limit.exceeded(), Some(Nanos(2_000_000_000)));
    }

    #[test]
    fn a_limit_is_a_time_and_not_zero() {
        assert_eq!(read("300ms"), Ok(Nanos(300_000_000)));
        assert_eq!(read("0s"), Err("must be longer than 0".to_owned()));
        assert!(read("10").is_err_and(|error| error.contains("a unit is required")));
    }

    #[test]
    fn the_longest_limit_is_never_due() {
        let mut limit = TimeLimit::new(Nanos(u64::MAX));
        assert_eq!(limit.due(Duration::from_secs(1 << 30)), None);
    }
}
