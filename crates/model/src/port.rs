//! Defines the ports: the traits by which the stages reach the machine, its clock and files ([`Clock`], [`Observer`], [`Executor`],
//! [`RangeExecutor`], [`Recorder`]), so that a test can replace it, and those of policies ([`SitePolicy`], [`EpochPolicy`]), with the
//! values that these take and return.

use auto_impl::auto_impl;

use crate::batch::{Batch, Epoch, Extent};
use crate::movement::{RangeAction, RangeOutcome};
use crate::outcome::{Action, Outcome};
use crate::page::{EpochView, PageIndex};
use crate::plan::Item;
use crate::profile::Segment;
use crate::tier::{TierIndex, Tiers};
use crate::tier_loads::TierLoads;
use crate::units::{Bytes, Nanos};

/// Time, as an argument: a live run uses the machine's clocks, a test sets them by hand.
#[auto_impl(Rc)]
pub trait Clock {
    /// Time since an arbitrary start; it never goes back. Sources read `CLOCK_MONOTONIC`, the clock of samples and of
    /// session files.
    fn now(&self) -> Nanos;

    /// Processor time of the calling thread: the cost of the work itself.
    fn busy(&self) -> Nanos;

    /// Waits.
    fn sleep(&self, span: Nanos);
}

/// Source of batches: a live run, a recorded profile, a simulated machine.
pub trait Observer {
    /// Why the observation failed.
    type Error: std::error::Error;

    /// Collects all events since the last call. The implementer guarantees that no observation is
    /// lost silently: dropped samples are counted in a source report.
    ///
    /// # Errors
    /// The machine could not be read at all. A missing part is data (a report), not an error.
    fn observe(&mut self, epoch: Epoch) -> Result<Batch, Self::Error>;
}

/// Carries out actions on sites.
pub trait Executor {
    /// Carries out the actions in order; returns one outcome for each, in the same order. `extents`
    /// holds the addresses of the sites' data at the end of the epoch, for executors that move the
    /// data themselves.
    fn execute(&mut self, actions: &[Action], extents: &[Extent]) -> Vec<Outcome>;
}

/// Moves ranges of memory between nodes.
///
/// The implementer guarantees that the parts of an outcome cover the action's range; that no content
/// is lost if any step fails; and that a process that has ended yields an outcome
/// ([`crate::outcome::Fate::NotAttempted`]), not a failure.
#[auto_impl(&mut, Box)]
pub trait RangeExecutor {
    /// Carries out one action.
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome;

    /// Carries out the actions in order; returns one outcome for each, in the same order.
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        actions
            .iter()
            .map(|action| self.carry_out(*action))
            .collect()
    }
}

/// Decides which site goes where, for one fast tier of a given capacity; tiers after the first two
/// are filled in turn with the sites that the faster ones left.
///
/// The implementer guarantees that the result does not depend on the order of the items and that
/// every site is named once.
#[auto_impl(&)]
pub trait SitePolicy {
    /// Its name on the command line: `thermos`.
    fn name(&self) -> &'static str;

    /// The tier of data that the plan does not name, if the policy has one tier for all data (first touch, all fast, all slow).
    fn tier_of_all(&self, _tiers: &Tiers) -> Option<TierIndex> {
        None
    }

    /// Why the sites it takes may exceed the tier's capacity, in words; `None` if they never do.
    fn overfills(&self) -> Option<&'static str> {
        None
    }

    /// True where room that is left may be filled with part of a site, because the policy takes sites by value.
    fn fills(&self) -> bool {
        false
    }

    /// True where the capacity is that of one memory device, and devices are added until they hold the sites that the policy takes.
    fn adds_devices(&self) -> bool {
        false
    }

    /// True where the policy moves load between tiers: values must then be bytes a second, and the latencies of the tiers under load must
    /// be known.
    fn balances(&self) -> bool {
        false
    }

    /// The sites to put into a tier of this capacity, each with one sentence of reason. Sites that
    /// are not named remain for the next tier.
    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice>;

    /// As [`Self::choose`], for a policy to which the speed of the tier and of those after it matters.
    fn choose_for(&self, items: &[Item], tier: &FilledTier<'_>) -> Vec<Choice> {
        self.choose(items, tier.capacity)
    }
}

/// A tier to which a policy gives sites.
#[derive(Clone, Copy, Debug)]
pub struct FilledTier<'a> {
    /// Bytes that are left in it.
    pub capacity: Bytes,
    /// All tiers of the machine.
    pub tiers: &'a Tiers,
    /// Index of this tier among them; never the slowest.
    pub index: TierIndex,
}

/// A site that a policy takes into the current tier or leaves out, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the site in the items.
    pub item: usize,
    /// True if the site is taken into the tier.
    pub taken: bool,
    /// The reason, one sentence.
    pub reason: String,
}

impl Choice {
    /// The choice for an item, with its reason.
    #[must_use]
    pub fn new(item: usize, taken: bool, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            item,
            taken,
            reason,
        }
    }
}

/// Decides, at the turn of every epoch, which pages the fast tier holds (TMP, section IV).
///
/// The implementer guarantees that its answers depend only on what it received, in its order.
pub trait EpochPolicy {
    /// Writes the pages that should be fast in the epoch that begins into `wanted`, replacing its
    /// contents: each once, in any order, at most [`EpochView::capacity`]. Fast pages that are not
    /// wanted are demoted, so a page that is to stay must be named again. Under every policy, new
    /// pages enter the fast tier when they are touched, while it has room.
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>);

    /// Called instead of [`Self::decide`] where no source saw an access in the epoch that ended, so that every page stays where it is.
    /// `_loads` are the loads of that epoch, if known, for a policy that adds epochs up.
    fn skip_epoch(&mut self, _loads: Option<TierLoads>) {}

    /// Called before [`Self::decide`] with the pages that do not exist any more, ascending. Their numbers are not used again. A policy that
    /// keeps heat of earlier epochs drops the heat of these pages.
    fn forget(&mut self, _pages: &[PageIndex]) {}
}

/// A sink for the results of a step, one call an epoch.
pub trait Recorder {
    /// Why recording failed.
    type Error: std::error::Error;

    /// Records one epoch. Earlier epochs stay readable if a later call fails.
    ///
    /// # Errors
    /// The epoch could not be written (for example, the disk is full).
    fn record(&mut self, segment: &Segment) -> Result<(), Self::Error>;
}

/// `None` records nothing: a run without a profile.
impl<R: Recorder> Recorder for Option<R> {
    type Error = R::Error;

    fn record(&mut self, segment: &Segment) -> Result<(), Self::Error> {
        self.as_mut().map_or(Ok(()), |it| it.record(segment))
    }
}
