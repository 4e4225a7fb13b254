//! Ports: how the pure middle reaches the machine at either edge.

use crate::batch::{Batch, Epoch, Extent};
use crate::movement::{RangeAction, RangeOutcome};
use crate::outcome::{Action, Outcome};
use crate::page::{EpochView, PageIndex};
use crate::plan::{Item, Plan};
use crate::profile::Segment;
use crate::tier::TierIndex;
use crate::units::Bytes;

/// Where batches come from: a live run, a recorded profile, a simulated machine.
pub trait Observer {
    /// Why observing failed.
    type Error: std::error::Error;

    /// Collects what happened since the last call. The implementer guarantees that nothing seen is
    /// lost silently: what is dropped is counted in a source report.
    ///
    /// # Errors
    /// The machine could not be read at all. A missing part is data (a report), not an error.
    fn observe(&mut self, epoch: Epoch) -> Result<Batch, Self::Error>;
}

/// Who carries out actions.
pub trait Executor {
    /// Carries out the actions in order; one outcome for each, in the same order. `extents` says where
    /// the sites' data lay when the epoch ended, which those need who move it themselves.
    fn execute(&mut self, actions: &[Action], extents: &[Extent]) -> Vec<Outcome>;
}

/// Who places and moves ranges of memory on nodes.
///
/// The implementer guarantees one outcome for each action, in the same order, whose parts cover the
/// action's range; that no content is lost whatever fails; and that a process which has ended is an
/// outcome ([`crate::outcome::Fate::NotAttempted`]), not a failure.
pub trait RangeExecutor {
    /// Carries out the actions in order.
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome>;
}

/// An executor in a box is one too, so that a list can hold several kinds.
impl<E: RangeExecutor + ?Sized> RangeExecutor for Box<E> {
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        (**self).execute(actions)
    }
}

/// A way to decide which site goes where at one capacity of one fast tier; tiers beyond the first
/// two are filled in turn with what the faster one left.
///
/// The implementer guarantees that the result does not depend on the order of the items and that
/// every site is named once.
pub trait SitePolicy {
    /// Its name on the command line: `thermos`.
    fn name(&self) -> &'static str;

    /// True where data of sites that the plan does not name belongs in the fastest tier too (first
    /// touch, all fast); else it goes to the slowest.
    fn unnamed_sites_go_fast(&self) -> bool {
        false
    }

    /// Why the sites it takes may hold more than the tier, in words; none where they never do.
    fn overfills(&self) -> Option<&'static str> {
        None
    }

    /// The sites to put into a tier of this capacity, each with one sentence of reason; sites not
    /// named stay for the next tier.
    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice>;
}

/// A borrowed policy is one too, so that a list of policies can hold its own and others'.
impl<P: SitePolicy + ?Sized> SitePolicy for &P {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn unnamed_sites_go_fast(&self) -> bool {
        (**self).unnamed_sites_go_fast()
    }

    fn overfills(&self) -> Option<&'static str> {
        (**self).overfills()
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        (**self).choose(items, capacity)
    }
}

/// A site that a policy puts into the tier at hand, or leaves out, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index into the items.
    pub item: usize,
    /// Taken into the tier.
    pub taken: bool,
    /// One sentence.
    pub reason: String,
}

/// A way to decide, at the turn of every epoch, which pages the fast tier holds (TMP, section IV).
///
/// The implementer guarantees that its answers depend on nothing but the views it was given, in
/// their order.
pub trait EpochPolicy {
    /// Its name on the command line: `history`.
    fn name(&self) -> &'static str;

    /// Writes the pages that should be fast in the epoch that begins into `wanted`, whatever it held
    /// before: each once, in any order, at most [`EpochView::capacity`]. Pages that are fast and not
    /// wanted are demoted, so a page that shall stay must be named again. New pages enter the fast
    /// tier as they are touched while it has room, whatever the policy.
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>);
}

/// A sink for what a step did, one call an epoch.
pub trait Recorder {
    /// Why recording failed.
    type Error: std::error::Error;

    /// Notes one epoch. What was noted before stays readable whatever happens later.
    ///
    /// # Errors
    /// Nothing could be written (disk full, say).
    fn record(&mut self, segment: &Segment) -> Result<(), Self::Error>;

    /// Notes the last epoch, after which the recording is ended: what is written then may be all that is
    /// written of it.
    ///
    /// # Errors
    /// As [`Self::record`].
    fn record_last(&mut self, segment: &Segment) -> Result<(), Self::Error> {
        self.record(segment)
    }
}

/// What a re-plan decided, beside the actions that follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The plan now in force.
    pub plan: Plan,
    /// What must be done to get there.
    pub actions: Vec<Action>,
    /// Tier that new data of unnamed sites gets.
    pub default_tier: TierIndex,
}
