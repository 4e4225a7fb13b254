//! Outcomes: what became of each action, named per range, never a bare success.

use std::fmt;

use crate::batch::Process;
use crate::site::SiteId;
use crate::tier::TierIndex;
use crate::units::Bytes;

/// One thing to do: bring the data of a site in one process to a tier, and place new data there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// In which process.
    pub process: Process,
    /// Whose data.
    pub site: SiteId,
    /// Where to.
    pub tier: TierIndex,
    /// How much of it there is.
    pub bytes: Bytes,
}

/// Why an action was not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It would have been, but this is a dry run.
    DryRun,
    /// The program has not touched its memory: there is nothing to move, now or later.
    NotTouched,
    /// The time that moves may take in this epoch is used up; the next epoch has some again.
    OutOfTime,
    /// In words: a limit, a process that has ended.
    Other(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DryRun => "dry run",
            Self::NotTouched => "not touched yet",
            Self::OutOfTime => "no time left for moves in this epoch",
            Self::Other(words) => words,
        })
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Self::Other(words.to_owned())
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Self::Other(words)
    }
}

/// Why a page is not moved to a node that is full; the only reason for [`Fate::Busy`] that is not the page's own.
pub const NO_ROOM: &str = "the node has no room";

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was moved.
    Moved,
    /// The request was handed to the runtime, which moves in the background, or to the kernel, which
    /// obeys as pages are made.
    Requested,
    /// It was there before.
    AlreadyThere,
    /// Not now, with the reason (pages in use, a full node); try again.
    Busy(String),
    /// It is not allowed, with the reason.
    Denied(String),
    /// It was not tried, with the reason.
    NotAttempted(Reason),
}

/// An action and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was to be done.
    pub action: Action,
    /// What became of it.
    pub fate: Fate,
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn words_are_never_taken_for_a_reason_that_means_something() {
        for reason in [Reason::DryRun, Reason::NotTouched, Reason::OutOfTime] {
            let words = Reason::from(reason.to_string());
            assert_ne!(words, reason);
            assert_eq!(words.to_string(), reason.to_string());
        }
    }
}
