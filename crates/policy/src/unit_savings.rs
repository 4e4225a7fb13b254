//! [`UnitSavings`] chooses the units (aligned ranges of a process) that are paged out under a budget of lost time: those of which a probe,
//! a few pages that leave first as a test, stayed out, and units of huge pages without samples. It also chooses the probes and the units to
//! bring back, and, under a memory limit, finds the coldest units and how often units are touched.
//!
//! Samples show which memory is hot, but not which is cold: of a thousand samples a second none falls on most of the units that a scan
//! reads. So a few pages of a unit are paged out first, as in Thermostat (ASPLOS 2017). Each page that is needed returns at the cost of one
//! page, and the page table shows that it did. The rest of the unit leaves once its probe stayed out for the *patience*.
//!
//! ```text
//! in memory --8 pages leave--> probed --at most 2 returned within the patience--> out --half of it returned--> in memory
//!     ^                          |                                                 |     (the rest is brought back)
//!     +---- more returned -------+                                                 +-- its pages that returned are probed again
//! ```
//!
//! Pages that return of a unit that is out stay in memory: they are its hot ones. If half of it returns soon, paging it out was a mistake.
//! A scan makes all its units mistakes, one after another, so mistakes lengthen the patience: a probe that is out for longer than a round
//! of the scan returns. A unit that is out for less than the new patience would not have left by it, and is recalled: a program that
//! changes its phase is likely to need its other data as soon.
//!
//! While the program waits for most of its time, it touches data of a new phase. Then a unit comes back ahead as soon as a few of its pages
//! returned.
//!
//! Huge pages leave as a whole, and cannot be probed. They leave once no sample fell on them for the patience.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::paged::PagedUnit;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::Unit;

use crate::stall_budget::StallBudget;
use crate::unit_reuse::{UnitReuse, touched_parts};

/// Size of a probe as a part of the unit, one in this number, and the most pages of a probe.
const PROBE_PART: u64 = 64;
const PROBE_PAGES_AT_MOST: u64 = 8;
/// Pages of a probe that may return: they are hot pages of the unit, which will return once.
const MAY_RETURN: u64 = 2;
/// Pages of the unit that were out before its probe and may return, one in this number.
const MAY_RETURN_OF_OUT: u64 = 64;
/// Part of an epoch, one in this number, for which the program waits in a change of phase; and the part of a unit whose return shows that
/// it is needed then.
const WAITS_IN_CHANGE: u64 = 3;
const NEEDED_IN_CHANGE: u64 = 64;
/// Most addresses that are tried for the pages of a probe: some units have few pages.
const TRIES: u64 = 64;
/// Patience at first; and under a limit alone, where memory must leave unless it is known to be hot.
const FIRST_PATIENCE: Nanos = Nanos(500_000_000);
const LIMIT_PATIENCE: Nanos = Nanos(150_000_000);
/// The longest patience, and the time without mistakes after which the patience is halved.
const LONGEST_PATIENCE: Nanos = Nanos(60_000_000_000);
/// Share of mistakes among the units that left, above which the patience with all others is lengthened.
const MANY_MISTAKES: f64 = 0.12;
/// The time within which a return is a mistake, in patiences.
const SOON: u64 = 8;
/// Time after a probe that returned until the next one; doubled by each further return.
const NEXT_PROBE: Nanos = Nanos(2_000_000_000);
/// Most doublings: 64 s, and 4 s under a limit alone, where probes show which units stay.
const DOUBLED_AT_MOST: u32 = 5;
const DOUBLED_UNDER_LIMIT: u32 = 1;
/// The least part of a unit that is worth a probe, one in this number.
const WORTH: u64 = 8;

/// The place of a unit between memory and swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// In memory.
    #[default]
    InMemory,
    /// This many of its pages were paged out then; pages that returned since.
    Probed {
        since: Nanos,
        pages: u64,
        returned: u64,
    },
    /// It was paged out then; the time for which it had rested, bytes that returned since, and whether it stayed out for the patience.
    Out {
        since: Nanos,
        rested: Nanos,
        returned: u64,
        is_proven: bool,
    },
}

/// The state of a unit.
#[derive(Clone, Copy, Debug, Default)]
struct SavedUnit {
    place: Place,
    /// The time of its last known touch, or the time at which it was found.
    touched: Nanos,
    /// The least patience with it.
    patience: Nanos,
    /// No probe and no move before this time.
    rests_until: Nanos,
    /// Probes in a row that returned or could not be made.
    failed: u32,
    /// Probes so far: each takes different pages.
    probes: u64,
    reuse: UnitReuse,
}

impl SavedUnit {
    /// Leaves the unit alone for a while, twice as long after each further failure, up to `doublings`.
    fn fail(&mut self, now: Nanos, doublings: u32) {
        let rests = NEXT_PROBE.0 << self.failed.min(doublings);
        self.failed = self.failed.saturating_add(1);
        self.rests_until = now.saturating_add(self.patience.max(Nanos(rests)));
    }
}

/// Settings of [`UnitSavings`].
#[derive(Clone, Copy, Debug)]
pub struct SavingsConfig {
    /// Size of a unit; a multiple of the page size.
    pub unit: Bytes,
    /// Size of the kernel's pages.
    pub page: Bytes,
    /// Measured time that a page of 4 KiB takes on its way back.
    pub back: Nanos,
    /// Share of the time that may be lost; at 1 and above there is no budget.
    pub slowdown: f64,
    /// True if no data really moves, so that no probe ever returns.
    pub modelled: bool,
}

/// Chooses the units that are paged out within a budget, and the probes for the choice of the next ones.
///
/// The caller pages out the result of [`choose`](Self::choose) and reports the units that left.
#[derive(Debug)]
pub struct UnitSavings {
    unit: u64,
    page: u64,
    /// Time that a unit takes on its way back.
    back: Nanos,
    modelled: bool,
    budget: StallBudget,
    doublings: u32,
    units: BTreeMap<Unit, SavedUnit>,
    /// Observed time.
    now: Nanos,
    first_patience: Nanos,
    patience: Nanos,
    /// The time at which the patience last changed.
    changed: Nanos,
}

/// The memory to page out in an epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochSaving {
    /// Units that leave as a whole, in order.
    pub leaving: Vec<Unit>,
    /// Single pages of other units: their numbers within the unit, from 0.
    pub probes: Vec<(Unit, Vec<u64>)>,
}

/// The units to bring back after an epoch, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReturningUnits {
    /// Units that the program needs now: units that returned soon after they had left, and units of a new phase.
    pub needed: Vec<Unit>,
    /// Units that would not have left under the longer patience after later mistakes; the last that left first.
    pub recalled: Vec<Unit>,
}

/// The most that the units that leave in an epoch may cost.
struct Allowance {
    /// Time that the program may yet lose.
    left: f64,
    /// Bytes that may leave.
    spare: u64,
}

impl Allowance {
    /// Takes the expected loss of time and the bytes; false where there is too little of either.
    fn takes(&mut self, loss: f64, bytes: u64) -> bool {
        let fits = loss <= self.left && bytes <= self.spare;
        if fits {
            self.left -= loss;
            self.spare -= bytes;
        }
        fits
    }
}

fn in_memory(units: &[PagedUnit], free: impl Fn(Unit) -> bool) -> Vec<&PagedUnit> {
    let units = units.iter();
    let in_memory = units.filter(|held| held.present > Bytes::ZERO && free(held.unit));
    in_memory.collect()
}

/// The first of these units, as many as have these bytes in memory, in the order of units.
#[must_use]
pub fn first_units(units: Vec<&PagedUnit>, bytes: Bytes) -> Vec<Unit> {
    let mut left = bytes;
    let leaves = |held: &&PagedUnit| {
        let leaves = left > Bytes::ZERO;
        left = left.saturating_sub(held.present);
        leaves
    };
    let leaving = units.into_iter().take_while(leaves);
    let mut leaving: Vec<Unit> = leaving.map(|held| held.unit).collect();
    leaving.sort_unstable();
    leaving
}

impl UnitSavings {
    /// Begins without a known unit.
    #[must_use]
    pub fn new(config: &SavingsConfig) -> Self {
        let (unit, page) = (config.unit.0.max(1), config.page.0.max(1));
        let budget = StallBudget::new(config.slowdown);
        let (first_patience, doublings) = match budget.is_unlimited() {
            true => (LIMIT_PATIENCE, DOUBLED_UNDER_LIMIT),
            false => (FIRST_PATIENCE, DOUBLED_AT_MOST),
        };
        Self {
            unit,
            page,
            back: Nanos(config.back.0.saturating_mul((unit / 4096).max(1))),
            modelled: config.modelled,
            budget,
            doublings,
            units: BTreeMap::new(),
            now: Nanos::ZERO,
            first_patience,
            patience: first_patience,
            changed: Nanos::ZERO,
        }
    }

    /// True where any loss of time is accepted.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.budget.is_unlimited()
    }

    /// True where the program has waited longer than it may.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        self.budget.is_overdrawn()
    }

    /// Ends an epoch of this length, in which the program waited for `stalled`. `units` are all units of the program, `touched` those that
    /// are known to have been used.
    pub fn follow(
        &mut self,
        units: &[PagedUnit],
        touched: &BTreeSet<Unit>,
        (span, stalled): (Nanos, Nanos),
    ) -> ReturningUnits {
        self.now = self.now.saturating_add(span);
        self.budget.spend(span, stalled);
        let living: BTreeSet<Unit> = units.iter().map(|held| held.unit).collect();
        self.units.retain(|unit, _| living.contains(unit));
        let is_change = self.is_change((span, stalled));
        let patience = self.patience;
        let mut returning = ReturningUnits::default();
        for held in units {
            let new = SavedUnit {
                touched: self.now,
                reuse: UnitReuse::found(self.now),
                ..SavedUnit::default()
            };
            let mut unit = *self.units.get(&held.unit).unwrap_or(&new);
            if held.returned > Bytes::ZERO || touched.contains(&held.unit) {
                unit.touched = self.now;
            }
            let place = unit.place;
            if !self.has_probes(held) && unit.touched == self.now {
                unit.reuse.end(self.now);
            } else if !matches!(place, Place::Probed { .. }) {
                unit.reuse.follow(held, self.now);
            }
            match place {
                Place::InMemory => {}
                Place::Probed { .. } => self.follow_probe(held, &mut unit),
                Place::Out { .. } if self.follow_out(held, &mut unit, is_change) => {
                    returning.needed.push(held.unit);
                }
                Place::Out { .. } => {}
            }
            self.units.insert(held.unit, unit);
        }
        if self.patience > patience && !self.is_unlimited() {
            returning.recalled = self.recall();
        }
        if self.now.saturating_sub(self.changed) > LONGEST_PATIENCE {
            self.patience = self.first_patience.max(Nanos(self.patience.0 / 2));
            self.changed = self.now;
        }
        returning
    }

    /// True if the program waited for so large a share of this span that it is in a new phase. Always false without a budget.
    #[must_use]
    pub fn is_change(&self, (span, stalled): (Nanos, Nanos)) -> bool {
        !self.is_unlimited() && stalled.0.saturating_mul(WAITS_IN_CHANGE) >= span.0.max(1)
    }

    /// The units that would not have left by the present patience; the last that left first.
    fn recall(&mut self) -> Vec<Unit> {
        let (now, patience, doublings) = (self.now, self.patience, self.doublings);
        let mut recalled = Vec::new();
        for (name, unit) in &mut self.units {
            if let Place::Out { since, .. } = unit.place
                && now.saturating_sub(since) < patience
            {
                unit.place = Place::InMemory;
                unit.fail(now, doublings);
                recalled.push((std::cmp::Reverse(since), *name));
            }
        }
        recalled.sort_unstable();
        recalled.into_iter().map(|(_, unit)| unit).collect()
    }

    fn follow_probe(&self, held: &PagedUnit, unit: &mut SavedUnit) {
        let Place::Probed {
            since,
            pages,
            mut returned,
        } = unit.place
        else {
            return;
        };
        returned += held.returned.0 / self.page;
        let others = (held.out.0 / self.page).saturating_sub(pages);
        let may_return = MAY_RETURN.min(pages / 2) + others / MAY_RETURN_OF_OUT;
        unit.place = Place::Probed {
            since,
            pages,
            returned,
        };
        if returned > may_return {
            unit.place = Place::InMemory;
            unit.reuse.end(self.now);
            unit.fail(self.now, self.doublings);
        }
    }

    /// The touches of each known unit in an epoch of this length, in [`TOUCHED_PARTS`](crate::TOUCHED_PARTS), by its measured reuse.
    #[must_use]
    pub fn touches(&self, units: &[PagedUnit], span: Nanos) -> Vec<(Unit, u64)> {
        let units = units.iter().filter_map(|held| {
            let unit = self.units.get(&held.unit)?;
            let has_probe = matches!(unit.place, Place::Probed { .. });
            let interval = unit.reuse.interval(self.now, has_probe);
            Some((held.unit, touched_parts(span, interval)))
        });
        units.collect()
    }

    /// True where the rest of the unit is to come back: it is needed in a change of phase, or half of it returned so soon that it was a mistake.
    fn follow_out(&mut self, held: &PagedUnit, unit: &mut SavedUnit, is_change: bool) -> bool {
        let Place::Out {
            since,
            rested,
            mut returned,
            is_proven,
        } = unit.place
        else {
            return false;
        };
        returned += held.returned.0;
        let age = self.now.saturating_sub(since);
        let patience = unit.patience.max(self.patience);
        let is_needed =
            is_change && held.returned.0.saturating_mul(NEEDED_IN_CHANGE) >= held.all().0;
        if !is_needed && returned.saturating_mul(2) < held.all().0 {
            let proves = age >= patience;
            self.budget.learn(u64::from(proves && !is_proven), 0);
            unit.failed = if proves { 0 } else { unit.failed };
            unit.place = Place::Out {
                since,
                rested,
                returned,
                is_proven: is_proven || proves,
            };
            return false;
        }
        unit.place = Place::InMemory;
        if age.0 > patience.0.saturating_mul(SOON) {
            return is_needed;
        }
        // The whole time without a touch counts: a scan may return just after the units that rested longest left.
        let rest = rested.saturating_add(age);
        unit.patience = LONGEST_PATIENCE.min(patience.max(Nanos(rest.0.saturating_mul(2))));
        unit.fail(self.now, self.doublings);
        self.budget.learn(u64::from(!is_proven), 1);
        if self.budget.risk() > MANY_MISTAKES && unit.patience > self.patience {
            self.patience = unit.patience;
            self.changed = self.now;
        }
        true
    }

    /// Chooses the memory that leaves in the epoch that begins, among units that are `free` to leave, so that `keep` bytes stay in memory.
    #[must_use]
    pub fn choose(
        &self,
        units: &[PagedUnit],
        keep: Bytes,
        free: impl Fn(Unit) -> bool,
    ) -> EpochSaving {
        let mut saving = EpochSaving::default();
        let present: Bytes = units.iter().map(|held| held.present).sum();
        let pending = self.pending() * self.budget.risk() * self.back.0 as f64;
        let mut allowance = Allowance {
            left: match self.is_unlimited() {
                true => f64::INFINITY,
                false => self.budget.available().0 as f64 - pending,
            },
            spare: present.saturating_sub(keep).0,
        };
        for held in self.ripe(units) {
            let loss = self.budget.risk().max(self.hot_share(held.unit)) * self.back.0 as f64;
            if free(held.unit) && allowance.takes(loss, held.present.0) {
                saving.leaving.push(held.unit);
            }
        }
        saving.leaving.sort_unstable();
        for held in units {
            let unit = held.unit;
            // Units on which samples fell are included: all samples may fall on a few pages of a unit.
            if !self.may_be_probed(held) || !free(unit) {
                continue;
            }
            let bytes = self.probe_pages() * self.page;
            let loss = self.back.0 as f64 * bytes as f64 / self.unit as f64;
            if allowance.spare < self.unit || !allowance.takes(loss, bytes) {
                break;
            }
            let turn = self.units.get(&unit).map_or(0, |known| known.probes);
            saving.probes.push((unit, self.probe(held, turn)));
        }
        saving
    }

    /// The units that are `free` to leave and rest longest, of at least these bytes together.
    #[must_use]
    pub fn least_recent(
        &self,
        units: &[PagedUnit],
        bytes: Bytes,
        free: impl Fn(Unit) -> bool,
    ) -> Vec<Unit> {
        let touched = |held: &PagedUnit| self.units.get(&held.unit).map(|known| known.touched);
        let mut oldest = in_memory(units, free);
        oldest.sort_unstable_by_key(|held| (touched(held), held.unit));
        first_units(oldest, bytes)
    }

    /// The units that are `free` to leave and cost least when they do, of at least these bytes together: first units whose probe stayed out
    /// for the patience, last units that lately were mistakes, and within each kind those that rest longest.
    #[must_use]
    pub fn coldest(
        &self,
        units: &[PagedUnit],
        bytes: Bytes,
        free: impl Fn(Unit) -> bool,
    ) -> Vec<Unit> {
        let ripe: BTreeSet<Unit> = self.ripe(units).iter().map(|held| held.unit).collect();
        let key = |held: &PagedUnit| {
            let known = self.units.get(&held.unit);
            let was_mistake = known.is_some_and(|known| self.now < known.rests_until);
            let touched = known.map(|known| known.touched);
            (was_mistake, !ripe.contains(&held.unit), touched, held.unit)
        };
        let mut coldest = in_memory(units, free);
        coldest.sort_unstable_by_key(|held| key(held));
        first_units(coldest, bytes)
    }

    /// Bytes of the units whose first probe is out or could not be made yet, so that nothing is known of them.
    #[must_use]
    pub fn unknown(&self, units: &[PagedUnit]) -> Bytes {
        let is_unknown = |held: &&PagedUnit| {
            self.has_probes(held)
                && self
                    .units
                    .get(&held.unit)
                    .is_some_and(|known| match known.place {
                        Place::InMemory => known.probes == 0,
                        Place::Probed { .. } => known.probes == 1,
                        Place::Out { .. } => false,
                    })
        };
        let unknown = units.iter().filter(is_unknown);
        unknown.map(|held| held.present).sum()
    }

    /// Number of units that left lately, of which nothing is known yet.
    fn pending(&self) -> f64 {
        let is_pending =
            |unit: &&SavedUnit| matches!(unit.place, Place::Out { is_proven, .. } if !is_proven);
        self.units.values().filter(is_pending).count() as f64
    }

    /// The units that may leave as a whole: those of which least returned first, and among equals those that rest longest.
    fn ripe<'a>(&self, units: &'a [PagedUnit]) -> Vec<&'a PagedUnit> {
        let now = self.now;
        let mut ripe: Vec<(u64, Nanos, &PagedUnit)> = Vec::new();
        for held in units {
            let Some(unit) = self.units.get(&held.unit) else {
                continue;
            };
            let patience = unit.patience.max(self.patience);
            match unit.place {
                Place::Probed {
                    since, returned, ..
                } if now.saturating_sub(since) >= patience => {
                    ripe.push((returned, unit.touched, held));
                }
                Place::InMemory | Place::Out { .. } if self.rests_unprobed(held, unit) => {
                    ripe.push((0, unit.touched, held));
                }
                Place::InMemory | Place::Probed { .. } | Place::Out { .. } => {}
            }
        }
        ripe.sort_unstable_by_key(|(returned, touched, held)| (*returned, *touched, held.unit));
        ripe.into_iter().map(|(_, _, held)| held).collect()
    }

    /// True for a unit that cannot be probed, and on which no sample fell for the patience.
    fn rests_unprobed(&self, held: &PagedUnit, unit: &SavedUnit) -> bool {
        let rests = self.now.saturating_sub(unit.touched) >= unit.patience.max(self.patience);
        rests && !self.has_probes(held) && self.is_worth(held, unit)
    }

    /// The share of the unit that will return at once, by its probe.
    fn hot_share(&self, unit: Unit) -> f64 {
        match self.units.get(&unit).map(|known| known.place) {
            Some(Place::Probed {
                pages, returned, ..
            }) => returned as f64 / pages.max(1) as f64,
            Some(Place::InMemory | Place::Out { .. }) | None => 0.0,
        }
    }

    /// True for small pages that really leave: huge pages leave as a whole, and memory that leaves only in a model never returns.
    const fn has_probes(&self, held: &PagedUnit) -> bool {
        !self.modelled && !held.has_huge
    }

    fn is_worth(&self, held: &PagedUnit, unit: &SavedUnit) -> bool {
        held.present.0 >= self.unit / WORTH && self.now >= unit.rests_until
    }

    fn may_be_probed(&self, held: &PagedUnit) -> bool {
        self.has_probes(held)
            && self.units.get(&held.unit).is_some_and(|unit| {
                let is_settled = match unit.place {
                    Place::InMemory => true,
                    Place::Probed { .. } => false,
                    Place::Out { is_proven, .. } => is_proven,
                };
                is_settled && self.is_worth(held, unit)
            })
    }

    fn probe_pages(&self) -> u64 {
        (self.unit / self.page / PROBE_PART).clamp(1, PROBE_PAGES_AT_MOST)
    }

    /// The pages of a probe: one in each of equal parts of the unit, of which there are more where fewer of its pages are in
    /// memory.
    fn probe(&self, held: &PagedUnit, turn: u64) -> Vec<u64> {
        let pages = (self.unit / self.page).max(1);
        let wanted = self.probe_pages();
        let tries = wanted * self.unit / held.present.0.max(1);
        let tries = tries.clamp(wanted, TRIES.min(pages).max(wanted));
        let part = pages / tries;
        let mut at = held.unit.start ^ turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let pages = (0..tries).map(|number| {
            at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            number * part + (at >> 33) % part
        });
        pages.collect()
    }

    /// Records how many pages of a unit's probe left.
    pub fn probed(&mut self, unit: Unit, pages: u64) {
        let Some(known) = self.units.get_mut(&unit) else {
            return;
        };
        known.probes += 1;
        match pages {
            0 => known.fail(self.now, self.doublings),
            pages => {
                known.reuse.begin(self.now);
                known.place = Place::Probed {
                    since: self.now,
                    pages,
                    returned: 0,
                };
            }
        }
    }

    /// Records that a unit left as a whole.
    pub fn left(&mut self, unit: Unit) {
        if let Some(known) = self.units.get_mut(&unit) {
            let rests_since = match known.place {
                Place::Probed { since, .. } => since,
                Place::InMemory | Place::Out { .. } => known.touched,
            };
            known.place = Place::Out {
                since: self.now,
                rested: self.now.saturating_sub(rests_since),
                returned: 0,
                is_proven: false,
            };
        }
    }

    /// Records that a unit was to leave and stays, for a reason in the unit.
    pub fn stayed(&mut self, unit: Unit) {
        if let Some(known) = self.units.get_mut(&unit) {
            known.place = Place::InMemory;
            known.fail(self.now, self.doublings);
        }
    }
}
