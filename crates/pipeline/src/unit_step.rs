//! [`UnitStep`] turns the observations of all watched processes in an epoch into moves of units by an epoch policy, and has an executor
//! make them: the step of the daemon, of a run by an epoch policy, and of page-out under a limit.
//!
//! ```text
//! Observation --> index (dense numbers) --> ranks --> priorities, caps --> EpochPolicy --> caps, floors
//!                                                                                           |
//!          EpochReport <----- fast units <----- RangeExecutor <-- moves, unit splits <------+
//! ```
//!
//! The policies are those of the simulator, with the same input. When a process ends, the state of
//! its units is dropped. Regardless of the policy, the wanted units never exceed the capacity, and
//! promotions never exceed the room that demotions have actually made.

mod caps;
mod floors;
mod groups;
mod huge_page_groups;
mod index;
mod moves;
mod newcomers;
mod placement_requests;
mod rank;
mod report;
mod share;
mod sparse_units;
#[cfg(test)]
mod tests;
mod unit_splits;

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::{Epoch, ObservedAccess};
use isotherm_model::movement::{NodeId, RangeAction};
use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::port::{EpochPolicy, RangeExecutor};
use isotherm_model::tier_loads::TierLoads;
use isotherm_model::units::{Bytes, Nanos, portion};
use isotherm_model::watch::{Observation, UnitHeat};

use crate::retry_backoff::RetryBackoff;
use floors::{Floors, PlacementState};
use groups::Groups;
pub(crate) use groups::entry_of;
pub use groups::{GroupLimit, Priority};
use huge_page_groups::HugePageGroups;
use index::Index;
use moves::{FastTier, Moves};
use newcomers::Newcomers;
use placement_requests::PlacementRequests;
pub use rank::Combine;
use rank::Ranks;
pub use report::{EpochReport, GroupShare, ProcessShare, Sums};
use share::{Share, shares};
use sparse_units::{SparseUnits, UnitSplit};
use unit_splits::PartMoves;

/// Most bytes demoted before the promotions that fit the room: some milliseconds of moves, and long
/// enough that neighbours move together.
const BATCH_BYTES: u64 = 16 << 20;
/// The batch as a fraction of the fast tier, one in this number: an eighth of it may be empty if time runs out.
const BATCH_PART: u64 = 8;

/// Settings of the step.
#[derive(Clone, Debug)]
pub struct UnitStepConfig {
    /// Size of a unit; a multiple of the page size.
    pub unit: Bytes,
    /// Size of the kernel's pages.
    pub page: Bytes,
    /// Nodes of the fast tier, in the order of filling.
    pub fast_nodes: Vec<NodeId>,
    /// Nodes for demoted data, in the order of filling.
    pub slow_nodes: Vec<NodeId>,
    /// How the hits of both kinds are combined into one rank.
    pub combine: Combine,
    /// True if a unit of which little is hot may be placed part by part: the executor moves parts of a huge page alone.
    pub splits: bool,
    /// True if no data really moves: moves that the executor would make count as made.
    pub modelled: bool,
}

/// Limits that may change from epoch to epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepLimits {
    /// Accesses that one trace sample represents; 0 counts as 1.
    pub accesses_per_sample: u64,
    /// Bytes that may be moved in one epoch.
    pub moves: Bytes,
    /// Limits of control groups, by the group's name: for its processes and those of groups below
    /// it without an entry of their own.
    pub groups: BTreeMap<String, GroupLimit>,
    /// Epochs for which a new process that obeys no entry keeps a fair share of the fast tier,
    /// whatever its heat; 0 for none.
    pub fair_start: u32,
}

impl StepLimits {
    /// The limits of an epoch that was shorter than a whole one: less is moved in proportion, and each sample represents proportionally
    /// more accesses, so that the ranks of both can be compared.
    #[must_use]
    pub fn of_part(mut self, span: Nanos, whole: Nanos) -> Self {
        // The loop is never exact; three quarters or more count as whole.
        if span.0 < whole.0 / 4 * 3 {
            self.accesses_per_sample = portion(self.accesses_per_sample.max(1), whole.0, span.0);
            self.moves = Bytes(portion(self.moves.0, span.0, whole.0));
        }
        self
    }
}

/// Makes a policy without observations.
pub type MakePolicy = Box<dyn Fn() -> Box<dyn EpochPolicy>>;

/// The step and its state between epochs.
pub struct UnitStep {
    config: UnitStepConfig,
    make: MakePolicy,
    policy: Box<dyn EpochPolicy>,
    index: Index,
    grains: HugePageGroups,
    ranks: Ranks,
    sparse: SparseUnits,
    backoff: RetryBackoff<PageIndex>,
    floors: Floors,
    newcomers: Newcomers,
    /// The accesses of the epoch that begins, if known.
    next_accesses: Option<Vec<ObservedAccess>>,
    /// The loads of the tiers in the epoch that ends, if known.
    loads: Option<TierLoads>,
    /// Kept to reuse its memory.
    wanted: Vec<PageIndex>,
}

impl UnitStep {
    /// A step without observations. `make` is called again when all units are renumbered.
    #[must_use]
    pub fn new(config: UnitStepConfig, make: MakePolicy) -> Self {
        Self {
            ranks: Ranks::default(),
            policy: make(),
            make,
            config,
            index: Index::default(),
            grains: HugePageGroups::default(),
            sparse: SparseUnits::default(),
            backoff: RetryBackoff::default(),
            floors: Floors::default(),
            newcomers: Newcomers::default(),
            next_accesses: None,
            loads: None,
            wanted: Vec::new(),
        }
    }

    /// Sets the accesses of the epoch that begins when the next one is processed. A recording knows
    /// them, and the oracle decides by them (TMP, table II). They apply to that one epoch.
    pub fn set_next_epoch(&mut self, accesses: Vec<ObservedAccess>) {
        self.next_accesses = Some(accesses);
    }

    /// Sets the loads of the tiers in the epoch that is processed next, by which a policy may balance them.
    pub fn set_loads(&mut self, loads: Option<TierLoads>) {
        self.loads = loads;
    }

    /// Processes one epoch: ranks, decides, has the executor move, and reports the outcomes.
    pub fn run(
        &mut self,
        seen: &Observation,
        limits: &StepLimits,
        executor: &mut impl RangeExecutor,
    ) -> EpochReport {
        let unit = self.config.unit.0.max(1);
        if self
            .index
            .update(&seen.residency, unit, self.config.modelled)
        {
            self.policy = (self.make)();
            self.backoff = RetryBackoff::default();
            self.floors = Floors::default();
            self.ranks = Ranks::default();
            self.sparse = SparseUnits::default();
        } else {
            self.policy.forget(self.index.removed());
        }
        let (page, combine) = (self.config.page.0, self.config.combine);
        if self.config.splits {
            self.sparse
                .follow(&mut self.index, &seen.accesses, (unit, page));
        }
        let index = &self.index;
        let lives = |page: PageIndex| {
            index
                .known()
                .get(page.at())
                .is_some_and(|k| k.unit.is_some())
        };
        self.backoff.retain(lives);
        let worth = limits.accesses_per_sample;
        let hits = self
            .ranks
            .take(index, &seen.accesses, unit, page, (combine, worth));
        let mut report = report::begin(seen, index, &self.ranks, hits, self.config.modelled);
        self.grains = HugePageGroups::find(index, unit);
        self.grains.level(&mut self.ranks.ranks);
        self.index.warm_up(&self.ranks.ranks);
        // A slowed source scans in some epochs only. An epoch without a scan does not mean that
        // memory is cold.
        let is_blind = hits == [0, 0] && self.next_accesses.is_none();
        self.newcomers.observe(&seen.processes, is_blind);
        let groups = self.groups(seen, limits, &mut report);
        let (moves, splits) = match is_blind && self.fast_bytes() <= seen.capacity.0 {
            true => {
                self.policy.skip_epoch(self.loads.take());
                (self.stay(&mut report), Vec::new())
            }
            false => self.decide(seen, limits, &groups, &mut report),
        };
        let splits = self.move_cold_parts(splits, seen.epoch, executor, &mut report);
        self.carry_out(moves, seen, executor, &mut report);
        self.move_hot_parts(splits, seen, executor, &mut report);
        report.split_units = self.sparse.count();
        report.split_fast = Bytes(self.sparse.fast_bytes());
        report.backoff = self.backoff.count(seen.epoch);
        report::end(&mut report, &self.index, &limits.groups);
        report
    }

    /// The observations of each unit in the last processed epoch.
    pub fn seen(&self) -> impl Iterator<Item = UnitHeat> {
        let known = self.index.known().iter().zip(self.ranks.hits());
        known.filter_map(|(known, hits)| {
            Some(UnitHeat {
                unit: known.unit?,
                resident: Bytes(known.resident),
                fast: Bytes(known.fast),
                hits,
            })
        })
    }

    /// Finds the limits of each process, and reports the shares of newcomers.
    fn groups(&self, seen: &Observation, limits: &StepLimits, report: &mut EpochReport) -> Groups {
        let unit = self.config.unit;
        let is_new = |process| self.newcomers.has(process, limits.fair_start);
        let groups = Groups::find(&limits.groups, seen, &self.index, unit, is_new);
        for process in &mut report.processes {
            let units = groups.fair_share(process.process) as u64;
            process.fair_share = Bytes(units.saturating_mul(unit.0));
        }
        groups
    }

    /// Decides which units should be fast, the moves towards that within the limits, and which units are placed part by part.
    fn decide(
        &mut self,
        seen: &Observation,
        limits: &StepLimits,
        groups: &Groups,
        report: &mut EpochReport,
    ) -> (Moves, Vec<UnitSplit>) {
        let cold = self.sparse.end();
        let next = self.next_accesses.take();
        let next_ranks = next.map(|accesses| self.ranked(&accesses, limits));
        let mut ranks = self.ranks.ranks.clone();
        groups.weigh(&mut ranks);
        let mut fast = self.index.fast();
        let all = (0..fast.len() as u32).map(PageIndex);
        let movable = |page| !self.backoff.has(page, seen.epoch);
        let mut movable: Vec<bool> = all.map(movable).collect();
        self.sparse.hide(&mut ranks, &mut fast, &mut movable);
        // Lent to the functions that decide, and restored below.
        let grains = std::mem::take(&mut self.grains);
        let standing = PlacementState {
            ranks: &ranks,
            fast: &fast,
            movable: &movable,
            grains: &grains,
        };
        let of_split = Bytes(self.sparse.fast_bytes());
        let capacity = seen.capacity.saturating_sub(of_split);
        let wanted = self.wanted(capacity, groups, standing, next_ranks.as_deref());
        self.report_wanted(&wanted, report);
        let requests = PlacementRequests {
            index: &self.index,
            ranks: &ranks,
            wanted: &wanted,
            movable: &movable,
            groups,
            grains: &grains,
        };
        let spare = self.floors.spare(groups, &self.index);
        let tier = FastTier {
            held: self.fast_bytes(),
            capacity: seen.capacity.0,
        };
        let mut moves = moves::choose(requests, spare.clone(), tier, limits.moves.0);
        let leaving = moves.demotions.iter().map(|page| requests.resident(*page));
        let left = limits.moves.0.saturating_sub(leaving.sum());
        let tier = (seen.capacity.0, left);
        let splits = self
            .sparse
            .choose(&mut moves.promotions, requests, &spare, tier);
        moves.demotions.splice(..0, cold);
        self.grains = grains;
        (moves, splits)
    }

    /// Leaves every unit in its tier and moves none.
    fn stay(&mut self, report: &mut EpochReport) -> Moves {
        let fast = self.index.fast();
        self.floors.keep(&fast);
        self.report_wanted(&fast, report);
        Moves::default()
    }

    /// Ranks of the present units by the observations of another epoch.
    fn ranked(&self, accesses: &[ObservedAccess], limits: &StepLimits) -> Vec<u64> {
        let mut ranks = Ranks::default();
        let (unit, page) = (self.config.unit.0.max(1), self.config.page.0);
        let combine = (self.config.combine, limits.accesses_per_sample);
        ranks.take(&self.index, accesses, unit, page, combine);
        self.grains.level(&mut ranks.ranks);
        ranks.ranks
    }

    /// Queries the policy, and fits its answer to caps, floors and the tier.
    fn wanted(
        &mut self,
        capacity: Bytes,
        groups: &Groups,
        standing: PlacementState<'_>,
        next_ranks: Option<&[u64]>,
    ) -> Vec<bool> {
        let PlacementState { ranks, fast, .. } = standing;
        let units = capacity.0 / self.config.unit.0.max(1);
        let capacity = u32::try_from(units).unwrap_or(u32::MAX);
        self.floors.begin(groups, &self.index, fast);
        let (mut previous, mut shown) = (ranks.to_vec(), fast.to_vec());
        caps::hide(groups, &mut previous, fast);
        let hidden = self.floors.hide(&mut previous, &mut shown);
        let view = EpochView {
            previous_ranks: &previous,
            next_ranks,
            fast: &shown,
            capacity: capacity.saturating_sub(u32::try_from(hidden).unwrap_or(u32::MAX)),
            hit: self.ranks.hit,
            loads: self.loads.take(),
        };
        let (index, chosen) = (&self.index, &mut self.wanted);
        self.policy.decide(&view, chosen);
        chosen.retain(|page| page.at() < fast.len());
        caps::cut(groups, ranks, fast, chosen);
        // A policy promises to keep the capacity; this code does not depend on it.
        self.floors
            .lift(groups, index, standing, capacity as usize, chosen);
        let mut wanted = vec![false; fast.len()];
        for page in &*chosen {
            wanted[page.at()] = index.known()[page.at()].unit.is_some();
        }
        standing.grains.make_whole(&mut wanted);
        wanted
    }

    /// Promotes as far as there is room now, and demotes a batch if there is none for the next
    /// promotion. An executor that stops in the middle leaves little of the fast tier empty.
    fn carry_out(
        &mut self,
        moves: Moves,
        seen: &Observation,
        executor: &mut impl RangeExecutor,
        report: &mut EpochReport,
    ) {
        let slow = self.config.slow_nodes.clone();
        let fast = self.config.fast_nodes.clone();
        let (mut promotions, mut demotions) = (moves.promotions, moves.demotions.as_slice());
        loop {
            let (promoted, waiting) = self.fitting(promotions, seen.capacity);
            promotions = waiting;
            if !promoted.is_empty() {
                self.move_to(&promoted, &fast, true, seen, executor, report);
            } else if !demotions.is_empty() {
                let (leaving, rest) = demotions.split_at(self.batch(demotions, seen.capacity));
                self.move_to(leaving, &slow, false, seen, executor, report);
                demotions = rest;
            } else {
                break;
            }
        }
    }

    /// Divides promotions into those that fit into the present room of the fast tier and the
    /// others.
    fn fitting(
        &self,
        promotions: Vec<PageIndex>,
        capacity: Bytes,
    ) -> (Vec<PageIndex>, Vec<PageIndex>) {
        let mut room = capacity.0.saturating_sub(self.fast_bytes());
        promotions.into_iter().partition(|page| {
            let slow = |known: &index::UnitState| known.resident - known.fast;
            let needs = self.grains.sum(&self.index, *page, slow);
            let fits = needs <= room;
            room -= if fits { needs } else { 0 };
            fits
        })
    }

    /// Number of leaving units in one batch: at least one, with those that move with it.
    fn batch(&self, demotions: &[PageIndex], capacity: Bytes) -> usize {
        let most = BATCH_BYTES.min(capacity.0 / BATCH_PART).max(1);
        let mut bytes = 0_u64;
        let fits = demotions.iter().take_while(|page| {
            let begins = bytes < most;
            bytes += self.grains.sum(&self.index, **page, |known| known.fast);
            begins
        });
        fits.count()
    }

    /// Moves units to the first node that accepts them.
    fn move_to(
        &mut self,
        pages: &[PageIndex],
        nodes: &[NodeId],
        to_fast: bool,
        seen: &Observation,
        executor: &mut impl RangeExecutor,
        report: &mut EpochReport,
    ) {
        let together = pages.iter().flat_map(|page| self.grains.with(page));
        let mut left: Vec<PageIndex> = together.copied().collect();
        for (turn, node) in nodes.iter().enumerate() {
            // Sorted by address, so that neighbours move together; there is no priority here.
            left.sort_unstable_by_key(|page| self.index.known()[page.at()].unit);
            let runs = moves::actions(&self.index, &left, self.config.unit.0, *node);
            let (actions, runs): (Vec<RangeAction>, Vec<_>) = runs.into_iter().unzip();
            let outcomes = executor.execute(&actions);
            left.clear();
            let mut elsewhere = BTreeSet::new();
            for (outcome, pages) in outcomes.iter().zip(runs) {
                report.moves.add(outcome, to_fast, self.config.modelled);
                for (page, share) in pages.iter().zip(shares(outcome, pages.len())) {
                    if !self.settle(*page, to_fast, share) {
                        left.push(*page);
                        // The next epoch may have the room or the time, and the unit itself was not
                        // the cause.
                        elsewhere.extend((share.missed > 0).then_some(*page));
                    }
                }
            }
            let last = turn + 1 == nodes.len();
            for page in left.iter().filter(|page| last && !elsewhere.contains(page)) {
                self.backoff.refused(*page, seen.epoch);
            }
        }
    }

    /// Moves the cold parts of units to the slow tier. Returns the splits that can be completed: no part refused to move.
    fn move_cold_parts(
        &mut self,
        splits: Vec<UnitSplit>,
        epoch: Epoch,
        executor: &mut impl RangeExecutor,
        report: &mut EpochReport,
    ) -> Vec<UnitSplit> {
        let moved = self
            .part_moves(false)
            .carry_out(&splits, executor, &mut report.moves);
        let mut complete = Vec::new();
        for (split, share) in splits.into_iter().zip(moved) {
            if self.settle_split(split.page, share, epoch) {
                // An upper limit: of a unit that was slow, fast parts may have been cold.
                let hot = split.hot_bytes(self.config.unit);
                if let Some(known) = self.index.known_mut(split.page) {
                    known.fast = known.fast.min(hot.0);
                }
                complete.push(split);
            }
        }
        complete
    }

    /// Moves the hot parts of units to the fast tier, as far as it has room.
    fn move_hot_parts(
        &mut self,
        mut splits: Vec<UnitSplit>,
        seen: &Observation,
        executor: &mut impl RangeExecutor,
        report: &mut EpochReport,
    ) {
        let mut room = seen.capacity.0.saturating_sub(self.fast_bytes());
        splits.retain(|split| {
            let fast = self.index.known()[split.page.at()].fast;
            let needs = split.hot_bytes(self.config.unit).0.saturating_sub(fast);
            let fits = needs <= room;
            room -= if fits { needs } else { 0 };
            fits
        });
        let moved = self
            .part_moves(true)
            .carry_out(&splits, executor, &mut report.moves);
        for (split, share) in splits.into_iter().zip(moved) {
            if self.settle_split(split.page, share, seen.epoch) {
                let fast = share.there + if self.config.modelled { share.dry } else { 0 };
                if let Some(known) = self.index.known_mut(split.page) {
                    known.fast = fast.min(known.resident);
                }
                self.sparse.set_split(split, fast);
            }
        }
    }

    fn part_moves(&self, to_fast: bool) -> PartMoves<'_> {
        PartMoves {
            index: &self.index,
            unit: self.config.unit.0,
            nodes: match to_fast {
                true => &self.config.fast_nodes,
                false => &self.config.slow_nodes,
            },
            to_fast,
            modelled: self.config.modelled,
        }
    }

    /// Records the outcome of a split; true where all parts moved. A unit that refused is not retried soon; one without room or time is.
    fn settle_split(&mut self, page: PageIndex, share: Share, epoch: Epoch) -> bool {
        let is_dry = share.dry > 0 && !self.config.modelled;
        if share.not_there == 0 && !is_dry {
            return true;
        }
        self.sparse.set_whole(page);
        if share.missed == 0 && !is_dry {
            self.backoff.refused(page, epoch);
        }
        false
    }

    /// Records the tier of a unit, given its bytes that are at the target now. Returns true if most of it is, and, where it should leave,
    /// any of it left.
    fn settle(&mut self, page: PageIndex, to_fast: bool, share: Share) -> bool {
        let modelled = self.config.modelled;
        let Some(known) = self.index.known_mut(page) else {
            return true;
        };
        let there = share.there + if modelled { share.dry } else { 0 };
        let all = share.there + share.dry + share.not_there;
        // Shares are of the bytes that have pages; the unit's own number may be slightly older.
        let there = portion(known.resident, there, all);
        let before = known.fast;
        known.fast = if to_fast {
            there.max(before)
        } else {
            before.min(known.resident - there)
        };
        let all_stayed = !to_fast && before > 0 && known.fast == before;
        let settled = all == 0 || (known.is_fast() == to_fast && !all_stayed);
        if settled {
            self.backoff.moved(page);
        }
        settled
    }

    fn fast_bytes(&self) -> u64 {
        let fast = self.index.known().iter().map(|known| known.fast);
        fast.fold(0, u64::saturating_add)
    }

    fn report_wanted(&self, wanted: &[bool], report: &mut EpochReport) {
        let known = self.index.known().iter().zip(wanted);
        let wanted = known.filter(|(_, wanted)| **wanted);
        let wanted = wanted.map(|(known, _)| known);
        report.wanted = wanted.clone().map(|known| Bytes(known.resident)).sum();
        report.wanted_units = wanted.filter_map(|known| known.unit).collect();
    }
}
