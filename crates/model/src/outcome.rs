//! An [`Outcome`] is an [`Action`] on a site with its result, a [`Fate`], which has the reason where data stayed that should have moved; a
//! range of memory that is moved or paged out ([`crate::movement`]) has a fate for each part.

use std::borrow::Cow;
use std::fmt;

use crate::batch::Process;
use crate::site::SiteId;
use crate::tier::TierIndex;
use crate::units::Bytes;

/// One action: move the data of a site in one process to a tier, and place new data there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// Process that owns the data.
    pub process: Process,
    /// Site that allocated the data.
    pub site: SiteId,
    /// Target tier.
    pub tier: TierIndex,
    /// Bytes of the data.
    pub bytes: Bytes,
}

/// Why an action was not attempted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// This is a dry run; otherwise the action would be attempted.
    DryRun,
    /// The program has not touched its memory: there are no pages to move, now or later.
    NotTouched,
    /// The time for moves in this epoch is used up; the next epoch has a new budget.
    OutOfTime,
    /// Another reason in words: a limit, a process that has ended.
    Other(Cow<'static, str>),
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

impl<W: Into<Cow<'static, str>>> From<W> for Reason {
    fn from(words: W) -> Self {
        Self::Other(words.into())
    }
}

/// Why a page is not moved to a full node; a reason for [`Fate::Busy`].
pub const NO_ROOM: &str = "the node has no room";

/// Why a page is not paged out where swap is full, or was removed; a reason for [`Fate::Busy`].
pub const NO_SWAP_ROOM: &str = "swap has no room";

/// Why a page that several processes share is not moved; a reason for [`Fate::Denied`].
pub const SHARED: &str = "shared with another process since a fork";

/// Why memory of another process is not paged out; a reason for [`Fate::Denied`].
pub const NO_RIGHT: &str = "needs CAP_SYS_NICE and the right to trace the process";

/// The result of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The data was moved.
    Moved,
    /// The request was accepted by the runtime, which moves in the background.
    Requested,
    /// The data was in the target tier before.
    AlreadyThere,
    /// Not possible now, with the reason (pages in use, a full node); try again.
    Busy(Cow<'static, str>),
    /// Not allowed, with the reason.
    Denied(Cow<'static, str>),
    /// Not attempted, with the reason.
    NotAttempted(Reason),
}

impl Fate {
    /// Not attempted, because the process has ended.
    pub const ENDED: Self =
        Self::NotAttempted(Reason::Other(Cow::Borrowed("the process has ended")));
    /// Not attempted, because there are no pages.
    pub const NOT_TOUCHED: Self = Self::NotAttempted(Reason::NotTouched);

    /// True where the target has no room: the only reasons for [`Fate::Busy`] that do not concern the page itself.
    #[must_use]
    pub fn lacks_room(&self) -> bool {
        matches!(self, Self::Busy(why) if [NO_ROOM, NO_SWAP_ROOM].contains(&&**why))
    }
}

/// An action and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The action that was requested.
    pub action: Action,
    /// The result of the action.
    pub fate: Fate,
}

impl Outcome {
    /// The outcomes of actions that are carried out one after the other by `fate`, which returns the result.
    pub fn of_each(actions: &[Action], mut fate: impl FnMut(&Action) -> Fate) -> Vec<Self> {
        let outcome = |action: &Action| Self {
            action: *action,
            fate: fate(action),
        };
        actions.iter().map(outcome).collect()
    }
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
