//! [`PagedStep`] decides in each epoch which memory is paged out, to compressed memory or another swap area, and which is brought back
//! before it is touched, and has an executor do both.
//!
//! ```text
//! PagedObservation --> touches --> UnitStep (policy) --> Guard --> RangeExecutor      what exceeds a limit
//!        |                |                                 |            ^
//!        |                +--> mistakes, sweep <--- units out            |
//!        +--> UnitSavings (StallBudget) ---------------------------------+             what a budget of lost time allows
//! ```
//!
//! Two rules page memory out. Memory above a limit is paged out whatever that costs. Below the limit, memory is paged out as far as the
//! budget of lost time allows ([`UnitSavings`]).
//!
//! Under a limit the ranks, policies and the order of moves are the daemon's ([`UnitStep`]). But here a touch brings a page back without a
//! decision:
//!
//! - A unit that was paged out stays *out* for the policies, although pages of it came back. Those are paged out again once the unit
//!   rests for an epoch: a scan of an array that does not fit keeps a fixed part of it in memory. A least-recently-used rule would
//!   page each part out just before it is needed.
//! - A unit of which much came back soon after it was paged out was a mistake, if there is room: the rest of it is brought back at once,
//!   and it stays for 32, 64, 128 ... epochs.

mod floors;
mod group_limits;
mod guard;
mod settings;
#[cfg(test)]
mod tests;
mod unit_moves;

use std::collections::{BTreeMap, BTreeSet};

use crate::unit_step::{Combine, EpochReport, MakePolicy, StepLimits, UnitStep, UnitStepConfig};
use floors::Floors;
pub use group_limits::GroupShortage;
use group_limits::{most_of_all, near_limit, over_full, shortages};
use guard::{Guard, UnitOutcome, by_unit};
use isotherm_model::batch::ObservedAccess;
use isotherm_model::movement::{NodeId, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::paged::{IN_MEMORY, PAGED_OUT, PagedObservation, PagedUnit};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Unit, UnitHeat, UnitResidency};
use isotherm_policy::{
    EpochSaving, PressureReclaim, RECLAIM_A_SECOND, ReturningUnits, SavingsConfig, TOUCHED_PARTS,
    UnitSavings, first_units,
};
pub use settings::{PagedConfig, PagedLimits, SavingRule};
use unit_moves::{accesses, actions, probe_actions, probes_that_left};

/// Units smaller than 1/`SMALL` of the unit size stay in memory: the edges of mappings, and stacks.
const SMALL: u64 = 8;
/// Epochs within which the return of a unit is a mistake.
const SOON_EPOCHS: u32 = 20;
/// Epochs after which a unit that the kernel did not page out is tried again.
const STAYS_EPOCHS: u32 = 64;
/// 1/`COMING` of the memory is kept free for pages that come back meanwhile.
const COMING: u64 = 16;
/// A return of 1/`MUCH` of a unit counts as the return of the unit.
const MUCH: u64 = 8;
/// Epochs for which a first mistake keeps a unit in memory; doubled by each further one.
const HELD_EPOCHS: u32 = 32;
/// Doublings at most: 8,192 epochs.
const DOUBLED_AT_MOST: u32 = 8;

/// The results of one epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PagedReport {
    /// The results for the units.
    pub units: EpochReport,
    /// Bytes of the processes in memory before the moves.
    pub present: Bytes,
    /// Bytes of the processes in swap before the moves.
    pub out: Bytes,
    /// Bytes that came back because the program touched them.
    pub returned: Bytes,
    /// Time for which the program waited for these bytes: by the measured cost of pages, or the kernel's count of stalls if that is more.
    pub stalled: Nanos,
    /// Units that were paged out by mistake.
    pub mistakes: u64,
    /// Bytes that left memory in this epoch.
    pub left: Bytes,
    /// Bytes that this epoch brought back ahead of a touch.
    pub brought_back: Bytes,
    /// True where the budget of lost time is used up.
    pub is_overdrawn: bool,
    /// True where memory stayed because swap has no room.
    pub lacks_swap: bool,
    /// Control groups that are still near their limit, because memory of their processes cannot be seen or paged out.
    pub shortages: Vec<GroupShortage>,
}

/// The state of a unit.
#[derive(Clone, Copy, Debug, Default)]
struct UnitRecord {
    /// The epoch in which it was paged out; `None` while it belongs to memory.
    out_since: Option<u32>,
    mistakes: u32,
    /// The unit stays in memory before this epoch, because it was paged out by mistake.
    held_until: u32,
    /// The unit stays in memory before this epoch, because the kernel did not page it out.
    stays_until: u32,
    /// Bytes in memory in the last observation.
    present: Bytes,
}

/// The step and its state between epochs.
pub struct PagedStep {
    config: PagedConfig,
    units: UnitStep,
    records: BTreeMap<Unit, UnitRecord>,
    savings: UnitSavings,
    /// Units that are to come back and for which there was no time; those that are needed first come first.
    coming: Vec<Unit>,
    /// Bytes that may be in memory by the limits of control groups that hold all processes, where no budget decides.
    most_of_groups: Bytes,
}

/// The present sums of the units.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    present: u64,
    out: u64,
    returned: u64,
    /// Bytes of the units that belong to memory.
    fast: u64,
    /// Bytes of these units that are out.
    saved: u64,
}

impl PagedStep {
    /// A step without observations.
    #[must_use]
    pub fn new(config: PagedConfig, make: MakePolicy) -> Self {
        let units = UnitStepConfig {
            unit: config.unit,
            page: config.page,
            fast_nodes: vec![IN_MEMORY],
            slow_nodes: vec![PAGED_OUT],
            combine: Combine::Balanced,
            splits: false,
            modelled: config.modelled,
        };
        let savings = SavingsConfig {
            unit: config.unit,
            page: config.page,
            back: config.costs.back,
            slowdown: config.slowdown,
            modelled: config.modelled,
        };
        Self {
            units: UnitStep::new(units, make),
            records: BTreeMap::new(),
            savings: UnitSavings::new(&savings),
            coming: Vec::new(),
            most_of_groups: Bytes(u64::MAX),
            config,
        }
    }

    /// Processes one epoch: counts what returned, decides, has the executor move, and reports the outcomes.
    pub fn run(
        &mut self,
        seen: &PagedObservation,
        limits: &PagedLimits,
        executor: &mut impl RangeExecutor,
    ) -> PagedReport {
        let (unit, page) = (self.config.unit.0.max(1), self.config.page.0.max(1));
        self.most_of_groups = match self.savings.is_unlimited() {
            true => most_of_all(seen),
            false => Bytes(u64::MAX),
        };
        let observed = seen;
        let (seen, limits) = self.without_fixed(observed, limits);
        let touched = touched_units(&seen, unit);
        let stalled = self.stalled(&seen);
        let span = seen.seen.span;
        let returning = self.savings.follow(&seen.units, &touched, (span, stalled));
        let touches = self.savings.touches(&seen.units, span);
        let mistakes = self.follow(&seen);
        let undone = self.undo(&mistakes, &seen, &limits);
        let sums = self.sums(&seen);
        let back = self.back_again(&returning, &seen, sums, &limits);
        let capacity = self.capacity(&seen, sums, &limits);
        let observation = self.observation(&seen, accesses(touches, Bytes(unit)), capacity);
        let now = seen.seen.epoch.0;
        let mut guard = Guard {
            inner: executor,
            held: self.held(now),
            unit,
            outcomes: Vec::new(),
        };
        let step_limits = StepLimits {
            accesses_per_sample: (unit / page / TOUCHED_PARTS).max(1),
            moves: limits.moves,
            groups: limits.groups.clone(),
            fair_start: limits.fair_start,
        };
        let mut units = self.units.run(&observation, &step_limits, &mut guard);
        guard.execute(&actions(&undone, unit, IN_MEMORY));
        if !self.config.modelled {
            let again = self.leaving_again(&seen.units, &touched, &limits);
            guard.execute(&actions(&again, unit, PAGED_OUT));
        }
        let mut outcomes = std::mem::take(&mut guard.outcomes);
        self.settle(&outcomes, now);
        outcomes.extend(self.bring_back(&back, executor));
        outcomes.extend(self.make_room(&seen, &mut units, executor));
        outcomes.extend(self.save(&seen, &limits, stalled, &mut units, executor));
        PagedReport {
            units,
            present: Bytes(sum_of(&observed.units, |held| held.present.0)),
            out: Bytes(sum_of(&observed.units, |held| held.out.0)),
            returned: Bytes(sums.returned),
            stalled,
            mistakes: (mistakes.len() + returning.needed.len()) as u64,
            left: moved(&outcomes, PAGED_OUT),
            brought_back: moved(&outcomes, IN_MEMORY),
            is_overdrawn: self.savings.is_overdrawn(),
            lacks_swap: outcomes.iter().any(lacks_swap),
            shortages: shortages(observed, &outcomes),
        }
    }

    /// An epoch in which the kernel chooses what leaves. Units of which most is out then count as paged out, so that [`Self::run`]
    /// can go on from there.
    pub fn watch(&mut self, seen: &PagedObservation) -> PagedReport {
        let stalled = self.stalled(seen);
        let touched = touched_units(seen, self.config.unit.0.max(1));
        self.savings
            .follow(&seen.units, &touched, (seen.seen.span, stalled));
        // As if paged out long ago: a return is then no mistake of this step.
        let since = seen.seen.epoch.0.saturating_sub(SOON_EPOCHS + 1);
        let record = |held: &PagedUnit| UnitRecord {
            out_since: (held.out > held.present).then_some(since),
            present: held.present,
            ..UnitRecord::default()
        };
        let units = seen.units.iter();
        self.records = units.map(|held| (held.unit, record(held))).collect();
        let sums = self.sums(seen);
        PagedReport {
            present: Bytes(sums.present),
            out: Bytes(sums.out),
            returned: Bytes(sums.returned),
            stalled,
            ..PagedReport::default()
        }
    }

    /// Between two epochs: pages out again the parts that came back of units that the limit paged out, if memory exceeds its limit and
    /// nothing came back since the last call. These are units that a scan has passed. Returns the bytes that left.
    pub fn sweep(
        &mut self,
        units: &[PagedUnit],
        limits: &PagedLimits,
        executor: &mut impl RangeExecutor,
    ) -> Bytes {
        let seen = PagedObservation {
            units: units.to_vec(),
            ..PagedObservation::default()
        };
        let (seen, limits) = self.without_fixed(&seen, limits);
        let over =
            sum_of(&seen.units, |held| held.present.0).saturating_sub(self.most_of_units(&limits));
        let mut rests: Vec<&PagedUnit> = Vec::new();
        for held in &seen.units {
            let Some(record) = self.records.get_mut(&held.unit) else {
                continue;
            };
            let before = std::mem::replace(&mut record.present, held.present);
            if record.out_since.is_some() && held.present > Bytes::ZERO && before == held.present {
                rests.push(held);
            }
        }
        let leaving = most_first(rests, over);
        let outcomes = executor.execute(&actions(&leaving, self.config.unit.0.max(1), PAGED_OUT));
        moved(&outcomes, PAGED_OUT)
    }

    /// True where a program that waited for this part of the span is in a change of phase: an epoch that ends at once shows which
    /// units it needs.
    #[must_use]
    pub fn is_change(&self, span: Nanos, waited: Nanos) -> bool {
        self.config.rule == SavingRule::Probes && self.savings.is_change((span, waited))
    }

    /// True where a limit alone decides, and any loss of time is accepted.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.savings.is_unlimited()
    }

    /// True where a limit has paged units out.
    #[must_use]
    pub fn has_limit(&self, limits: &PagedLimits) -> bool {
        self.limit(limits).min(self.most_of_groups) < Bytes(u64::MAX)
    }

    /// Pages out the coldest units of control groups that are near their limits.
    fn make_room(
        &mut self,
        seen: &PagedObservation,
        units: &mut EpochReport,
        executor: &mut impl RangeExecutor,
    ) -> Vec<RangeOutcome> {
        let mut outcomes = Vec::new();
        for (group, excess) in over_full(seen, self.most_of_groups) {
            let is_free =
                |unit: Unit| group.processes.contains(&unit.process) && !self.is_out(&unit);
            let leaving = self.savings.coldest(&seen.units, excess, is_free);
            let unit = self.config.unit.0.max(1);
            outcomes.extend(executor.execute(&actions(&leaving, unit, PAGED_OUT)));
        }
        self.record_saved(&outcomes, units);
        outcomes
    }

    /// Pages out whole units, and probes of others, without those that the limit paged out: what the budget allows, and under a limit alone
    /// what exceeds it.
    fn save(
        &mut self,
        seen: &PagedObservation,
        limits: &PagedLimits,
        stalled: Nanos,
        units: &mut EpochReport,
        executor: &mut impl RangeExecutor,
    ) -> Vec<RangeOutcome> {
        let keep = match self.savings.is_unlimited() {
            true => Bytes(self.most_of_units(limits)),
            false => limits.keep,
        };
        let floors = Floors::find(seen, &limits.groups);
        let is_free = |unit: Unit| !self.is_out(&unit) && !floors.keeps(unit.process);
        let saving = match self.config.rule {
            SavingRule::Probes => self.savings.choose(&seen.units, keep, is_free),
            SavingRule::Pressure => {
                let rule = PressureReclaim::new(self.config.slowdown, RECLAIM_A_SECOND);
                let present = Bytes(sum_of(&seen.units, |held| held.present.0));
                let bytes = rule.bytes(present, seen.seen.span, stalled);
                let bytes = bytes.min(present.saturating_sub(keep));
                EpochSaving {
                    leaving: self.savings.least_recent(&seen.units, bytes, is_free),
                    ..EpochSaving::default()
                }
            }
        };
        let (unit, page) = (self.config.unit.0.max(1), self.config.page.0.max(1));
        let mut outcomes = executor.execute(&actions(&saving.leaving, unit, PAGED_OUT));
        self.record_saved(&outcomes, units);
        let probes = executor.execute(&probe_actions(&saving.probes, page));
        for (unit, pages) in probes_that_left(&probes, (unit, page)) {
            self.savings.probed(unit, pages);
        }
        outcomes.extend(probes);
        outcomes
    }

    /// Records which units left as a whole for the budget's sake, and adds up the moves.
    fn record_saved(&mut self, outcomes: &[RangeOutcome], units: &mut EpochReport) {
        let (unit, modelled) = (self.config.unit.0.max(1), self.config.modelled);
        for outcome in outcomes {
            units.moves.add(outcome, false, modelled);
            for (unit, result) in by_unit(outcome, unit, modelled) {
                match result {
                    UnitOutcome::There => self.savings.left(unit),
                    UnitOutcome::Stays => self.savings.stayed(unit),
                    UnitOutcome::Later => {}
                }
            }
        }
    }

    /// The units that are to come back, from this epoch or those before, for which there is room. TMO's rule knows no mistakes.
    fn back_again(
        &mut self,
        returning: &ReturningUnits,
        seen: &PagedObservation,
        sums: Sums,
        limits: &PagedLimits,
    ) -> Vec<Unit> {
        let earlier = std::mem::take(&mut self.coming);
        if self.config.rule == SavingRule::Pressure {
            return Vec::new();
        }
        let room = self.most_of_units(limits).saturating_sub(sums.present);
        let room = usize::try_from(room / self.config.unit.0.max(1)).unwrap_or(usize::MAX);
        let near = near_limit(seen);
        let out = seen.units.iter();
        let out = out.filter(|held| held.out > Bytes::ZERO && !near.contains(&held.unit.process));
        let mut out: BTreeSet<Unit> = out.map(|held| held.unit).collect();
        let due = [&returning.needed, &earlier, &returning.recalled];
        let due = due.into_iter().flatten();
        // Each unit once, and only if a part of it is out.
        due.filter(|unit| out.remove(*unit))
            .copied()
            .take(room)
            .collect()
    }

    /// Brings units back, and remembers those for which there was no time.
    fn bring_back(
        &mut self,
        units: &[Unit],
        executor: &mut impl RangeExecutor,
    ) -> Vec<RangeOutcome> {
        let (unit, modelled) = (self.config.unit.0.max(1), self.config.modelled);
        let outcomes = executor.execute(&actions(units, unit, IN_MEMORY));
        let is_late = |outcome: &&RangeOutcome| {
            let mut fates = outcome.parts.iter().map(|part| &part.fate);
            fates.any(|fate| *fate == Fate::NotAttempted(Reason::OutOfTime))
        };
        let late = outcomes.iter().filter(is_late);
        let units = late.flat_map(|outcome| by_unit(outcome, unit, modelled));
        self.coming = units.map(|(unit, _)| unit).collect();
        outcomes
    }

    /// True where units are to come back for which an epoch had no time.
    #[must_use]
    pub const fn has_late_units(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Between two epochs: brings back units for which the last one had no time, by urgency. Returns the bytes that came back.
    pub fn bring_back_late(&mut self, executor: &mut impl RangeExecutor) -> Bytes {
        let units = std::mem::take(&mut self.coming);
        moved(&self.bring_back(&units, executor), IN_MEMORY)
    }

    /// The observations of each unit in the last processed epoch.
    pub fn seen(&self) -> impl Iterator<Item = UnitHeat> {
        self.units.seen()
    }

    /// Updates the state of the units; returns those that were paged out by mistake.
    fn follow(&mut self, seen: &PagedObservation) -> Vec<Unit> {
        let now = seen.seen.epoch.0;
        let living: BTreeSet<Unit> = seen.units.iter().map(|held| held.unit).collect();
        self.records
            .retain(|unit, record| living.contains(unit) || now < record.stays_until);
        let mut mistakes = Vec::new();
        for held in &seen.units {
            let record = self.records.entry(held.unit).or_default();
            let is_soon = record
                .out_since
                .is_some_and(|since| now.saturating_sub(since) <= SOON_EPOCHS);
            if is_soon && held.returned.0.saturating_mul(MUCH) >= held.all().0 {
                mistakes.push(held.unit);
            }
        }
        mistakes
    }

    /// The time for which the program waited for pages that came back.
    fn stalled(&self, seen: &PagedObservation) -> Nanos {
        let pages = sum_of(&seen.units, |held| held.returned.0) / 4096;
        let by_pages = Nanos(pages.saturating_mul(self.config.costs.back.0));
        by_pages.max(seen.stalled.unwrap_or_default())
    }

    /// Makes the mistakes belong to memory again, as far as there is room.
    fn undo(
        &mut self,
        mistakes: &[Unit],
        seen: &PagedObservation,
        limits: &PagedLimits,
    ) -> Vec<Unit> {
        let now = seen.seen.epoch.0;
        let sums = self.sums(seen);
        let mut taken = sums.fast.max(sums.present);
        let mut undone = Vec::new();
        for unit in mistakes {
            if taken.saturating_add(self.config.unit.0) > self.most_of_units(limits) {
                break;
            }
            if let Some(record) = self.records.get_mut(unit) {
                let epochs = HELD_EPOCHS << record.mistakes.min(DOUBLED_AT_MOST);
                record.mistakes = record.mistakes.saturating_add(1);
                record.held_until = now.saturating_add(epochs);
                record.out_since = None;
                taken = taken.saturating_add(self.config.unit.0);
                undone.push(*unit);
            }
        }
        undone
    }

    fn sums(&self, seen: &PagedObservation) -> Sums {
        let mut sums = Sums::default();
        for held in &seen.units {
            sums.present += held.present.0;
            sums.out += held.out.0;
            sums.returned += held.returned.0;
            if !self.is_out(&held.unit) {
                sums.fast += held.all().0;
                sums.saved += held.out.0;
            }
        }
        sums
    }

    /// True of units that a limit paged out.
    fn is_out(&self, unit: &Unit) -> bool {
        let record = self.records.get(unit);
        record.is_some_and(|record| record.out_since.is_some())
    }

    /// Bytes that the units that belong to memory may have, in memory and out. While the probes of new memory are out, the policies wait.
    fn capacity(&self, seen: &PagedObservation, sums: Sums, limits: &PagedLimits) -> u64 {
        let over = sums.present.saturating_sub(self.limit(limits).0);
        if self.savings.is_unlimited() && over > 0 && self.savings.unknown(&seen.units).0 >= over {
            return sums.fast;
        }
        let most = self.most_of_units(limits).saturating_add(sums.saved);
        // Nothing is brought back while memory has more than its limit.
        if over > 0 { most.min(sums.fast) } else { most }
    }

    /// Bytes that the units that belong to memory may have: a part of the limit is kept for pages that come back meanwhile.
    fn most_of_units(&self, limits: &PagedLimits) -> u64 {
        let limit = self.limit(limits).0;
        limit - limit / COMING
    }

    /// Bytes that may be in memory, whatever the budget.
    fn limit(&self, limits: &PagedLimits) -> Bytes {
        match self.savings.is_unlimited() {
            true => limits.keep.min(limits.most),
            false => limits.most,
        }
    }

    /// The units that stay in memory because they were paged out by mistake.
    fn held(&self, now: u32) -> BTreeSet<Unit> {
        let held = self.records.iter();
        let held = held.filter(|(_, record)| now < record.held_until);
        held.map(|(unit, _)| *unit).collect()
    }

    /// The observation and the limits without the units that stay in any case: units that are too small to move, and units that the kernel
    /// did not page out.
    fn without_fixed(
        &self,
        seen: &PagedObservation,
        limits: &PagedLimits,
    ) -> (PagedObservation, PagedLimits) {
        let now = seen.seen.epoch.0;
        let least = self.config.unit.0 / SMALL;
        let moves = |held: &PagedUnit| {
            let record = self.records.get(&held.unit);
            held.all().0 >= least && record.is_none_or(|record| now >= record.stays_until)
        };
        let (units, fixed): (Vec<PagedUnit>, Vec<PagedUnit>) =
            seen.units.iter().copied().partition(moves);
        let fixed = sum_of(&fixed, |held| held.all().0);
        let seen = PagedObservation {
            units,
            ..seen.clone()
        };
        let most = limits.most.min(self.most_of_groups);
        let limits = PagedLimits {
            keep: limits.keep.saturating_sub(Bytes(fixed)),
            most: most.saturating_sub(Bytes(fixed)),
            ..limits.clone()
        };
        (seen, limits)
    }

    /// The input of the step of the units.
    fn observation(
        &self,
        seen: &PagedObservation,
        accesses: Vec<ObservedAccess>,
        capacity: u64,
    ) -> Observation {
        Observation {
            epoch: seen.seen.epoch,
            span: seen.seen.span,
            processes: seen.seen.processes.clone(),
            residency: self.residency(&seen.units),
            accesses,
            capacity: Bytes(capacity),
            sources: seen.seen.sources.clone(),
            ..Observation::default()
        }
    }

    /// The residency as the policies see it: a unit that was paged out is slow, although parts of it may have returned.
    fn residency(&self, units: &[PagedUnit]) -> Vec<UnitResidency> {
        let residency = units.iter().map(|held| UnitResidency {
            unit: held.unit,
            resident: held.all(),
            fast: match self.is_out(&held.unit) {
                true => Bytes::ZERO,
                false => held.all(),
            },
            grain: held.grain,
        });
        residency.collect()
    }

    /// Units that the limit paged out and of which parts returned, as far as memory exceeds its limit: those that were not touched in this
    /// epoch first, then the fullest.
    fn leaving_again(
        &self,
        units: &[PagedUnit],
        touched: &BTreeSet<Unit>,
        limits: &PagedLimits,
    ) -> Vec<Unit> {
        let returned = units.iter();
        let returned =
            returned.filter(|held| held.present > Bytes::ZERO && self.is_out(&held.unit));
        let (rests, others): (Vec<&PagedUnit>, Vec<&PagedUnit>) = returned
            .partition(|held| held.returned == Bytes::ZERO && !touched.contains(&held.unit));
        let present = sum_of(units, |held| held.present.0);
        let rest: u64 = rests.iter().map(|held| held.present.0).sum();
        let over = present.saturating_sub(rest);
        let mut leaving = most_first(rests, present.saturating_sub(self.most_of_units(limits)));
        leaving.extend(most_first(
            others,
            over.saturating_sub(self.limit(limits).0),
        ));
        leaving.sort_unstable();
        leaving
    }

    /// Records which units are out.
    fn settle(&mut self, outcomes: &[RangeOutcome], now: u32) {
        for outcome in outcomes {
            let is_out = outcome.action.node == PAGED_OUT;
            for (unit, result) in by_unit(outcome, self.config.unit.0.max(1), self.config.modelled)
            {
                let Some(record) = self.records.get_mut(&unit) else {
                    continue;
                };
                match result {
                    UnitOutcome::There => record.out_since = is_out.then_some(now),
                    UnitOutcome::Stays if is_out => {
                        record.stays_until = now.saturating_add(STAYS_EPOCHS)
                    }
                    UnitOutcome::Stays | UnitOutcome::Later => {}
                }
            }
        }
    }
}

/// The fullest units, as many as have these bytes in memory, by address.
fn most_first(mut units: Vec<&PagedUnit>, bytes: u64) -> Vec<Unit> {
    units.sort_unstable_by_key(|held| (std::cmp::Reverse(held.present), held.unit));
    first_units(units, Bytes(bytes))
}

/// The units in which accesses fell, or of which pages came back.
fn touched_units(seen: &PagedObservation, unit: u64) -> BTreeSet<Unit> {
    let step = usize::try_from(unit).unwrap_or(usize::MAX);
    let accessed = seen.seen.accesses.iter().flat_map(|access| {
        let process = access.process;
        let starts =
            (access.address / unit * unit..access.end().max(access.address + 1)).step_by(step);
        starts.map(move |start| Unit { process, start })
    });
    let returned = seen.units.iter();
    let returned = returned.filter(|held| held.returned > Bytes::ZERO);
    accessed.chain(returned.map(|held| held.unit)).collect()
}

fn sum_of(units: &[PagedUnit], bytes: fn(&PagedUnit) -> u64) -> u64 {
    units.iter().map(bytes).fold(0, u64::saturating_add)
}

fn lacks_swap(outcome: &RangeOutcome) -> bool {
    let is_out = outcome.action.node == PAGED_OUT;
    is_out && outcome.parts.iter().any(|part| part.fate.lacks_room())
}

fn moved(outcomes: &[RangeOutcome], node: NodeId) -> Bytes {
    let outcomes = outcomes
        .iter()
        .filter(|outcome| outcome.action.node == node);
    let bytes = outcomes.map(|it| it.bytes_of(|fate| matches!(fate, Fate::Moved)));
    bytes.sum()
}
