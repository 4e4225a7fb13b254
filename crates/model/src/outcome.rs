//! Outcomes: what became of each action, named per range, never a bare success.

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

/// Why nothing was moved in a dry run.
pub const DRY_RUN: &str = "dry run";

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was moved.
    Moved,
    /// The wish was handed to the runtime, which moves in the background, or to the kernel, which
    /// obeys as pages are made.
    Requested,
    /// It was there before.
    AlreadyThere,
    /// Not now, with the reason (pages in use, a full node); try again.
    Busy(String),
    /// It is not allowed, with the reason.
    Denied(String),
    /// It was not tried, with the reason (dry run, rate limit, process gone).
    NotAttempted(String),
}

/// An action and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was to be done.
    pub action: Action,
    /// What became of it.
    pub fate: Fate,
}
