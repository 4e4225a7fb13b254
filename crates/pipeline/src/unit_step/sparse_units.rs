//! `SparseUnits` finds the units of which little is hot and decides when they are split, with their hot parts in the fast tier and the rest
//! in the slow one, and when they are whole again.
//!
//! A unit is a huge page by default, and takes the fast memory of a whole one although a few of its objects are hot. If that leaves other
//! units without room that are warmer than the rest of it, such a unit is split, as the executor splits its huge page, instead of being
//! promoted or kept whole:
//!
//! ```text
//! promoted, kept --few hot parts, others lack room--> split --hits in many parts, or the rest--> whole again
//!                                                        |  +-no hit for 32 epochs------------> whole again, and demoted
//!                                                        +--a further part is hot-------------> that part is promoted
//! ```
//!
//! The policy sees neither split units nor the fast memory that they have, at most half of the tier. The kernel collapses pages into huge
//! ones again in time (khugepaged), and parts cool, so a split unit is split anew now and then.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::ObservedAccess;
use isotherm_model::page::PageIndex;
use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
use isotherm_model::units::Bytes;
use isotherm_policy::{PARTS, PartHits, Parts};

use super::index::Index;
use super::placement_requests::PlacementRequests;

/// Epochs without a hit after which a split unit is cold. Longer than a unit counts as warm: few samples fall on so little memory, and
/// it takes little of the fast tier.
pub(super) const QUIET_EPOCHS: u32 = 32;

/// Epochs after which all hits are halved.
const HALVED_AFTER: u32 = 16;

/// A unit is split if the warm units without room are this many times as hot as the rest of it. While it is split they may be as hot.
const HOTTER: u64 = 2;

/// Up to this many hits, the hits of the rest of a split unit count as chance.
const REST_AT_LEAST: u64 = 8;

/// Epochs after which a unit may be split anew.
pub(super) const RENEWED_AFTER: u32 = 4;

/// Units that are split anew in an epoch, at most: some milliseconds of queries. As shipped, khugepaged collapses eight huge pages in 10 s.
const RENEWED_AT_MOST: usize = 64;

/// The hits of units by part, and the units that are split.
#[derive(Clone, Debug, Default)]
pub(super) struct SparseUnits {
    hits: BTreeMap<PageIndex, PartHits>,
    /// The units with a hit in this epoch: only these are examined, so that the cost is by sample.
    hit: BTreeSet<PageIndex>,
    split: BTreeMap<PageIndex, SplitState>,
    /// Epochs since the hits were halved.
    since_halved: u32,
    /// Hits of a warm unit that has no room, on average; 0 if all have room.
    waiting: u64,
}

/// A split unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SplitState {
    /// The parts that were promoted.
    hot: Parts,
    /// Bytes of these parts in the fast tier.
    fast: u64,
    /// Epochs since its last hit.
    quiet: u32,
    /// Epochs since it was split.
    age: u32,
}

/// The parts of a unit that belong in each tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitSplit {
    /// The unit.
    pub page: PageIndex,
    /// Its hot parts.
    pub hot: Parts,
}

impl UnitSplit {
    /// Bytes of the hot parts of a unit of this size.
    pub(super) fn hot_bytes(&self, unit: Bytes) -> Bytes {
        Bytes(unit.0 / PARTS as u64 * u64::from(self.hot.count()))
    }
}

impl SparseUnits {
    /// Follows an epoch: counts the samples by part, and forgets units that are gone. The fast bytes of split units are set to the bytes
    /// that were promoted: the few pages queried of a unit do not show them.
    pub(super) fn follow(
        &mut self,
        index: &mut Index,
        accesses: &[ObservedAccess],
        (unit_bytes, page_bytes): (u64, u64),
    ) {
        for page in index.removed() {
            self.hits.remove(page);
            self.split.remove(page);
        }
        for state in self.split.values_mut() {
            (state.quiet, state.age) = (state.quiet + 1, state.age + 1);
        }
        self.since_halved += 1;
        if self.since_halved == HALVED_AFTER {
            self.since_halved = 0;
            self.hits.retain(|_, hits| hits.halve());
        }
        self.hit.clear();
        let part_bytes = unit_bytes / PARTS as u64;
        if part_bytes < page_bytes {
            return;
        }
        // Accessed bits and hint faults show that a page was touched, and not how often.
        let is_sample = |source: SourceKind| source.method() == ProfilingMethod::TraceSamples;
        let exact = |access: &&ObservedAccess| access.count > 0 && is_sample(access.source);
        for access in accesses.iter().filter(exact) {
            let start = access.address / unit_bytes * unit_bytes;
            let unit = index.within(access.process, start, start.saturating_add(1));
            let Some((_, page)) = unit.take(1).next() else {
                continue;
            };
            let part = (access.address - start) / part_bytes;
            self.hits.entry(page).or_default().add(part as usize);
            self.hit.insert(page);
            if let Some(state) = self.split.get_mut(&page) {
                state.quiet = 0;
            }
        }
        for (page, state) in &self.split {
            if let Some(known) = index.known_mut(*page) {
                known.fast = state.fast.min(known.resident);
            }
        }
    }

    /// Ends the split of units that are hot in many parts, or cold, or whose rest is hotter than units without room. Returns those that are
    /// cold and have fast memory.
    pub(super) fn end(&mut self) -> Vec<PageIndex> {
        let (hits, waiting) = (&self.hits, self.waiting);
        let is_hot = |page: &PageIndex, hot: Parts| {
            hits.get(page).is_some_and(|hits| {
                let is_rest_hot = waiting > 0 && hits.rest(hot) > waiting.max(REST_AT_LEAST);
                is_rest_hot || hits.is_dense()
            })
        };
        let mut cold = Vec::new();
        self.split.retain(|page, state| {
            let is_cold = state.quiet > QUIET_EPOCHS;
            if is_cold && state.fast > 0 {
                cold.push(*page);
            }
            !is_cold && !is_hot(page, state.hot)
        });
        cold
    }

    /// Hides the split units from the policy.
    pub(super) fn hide(&self, ranks: &mut [u64], fast: &mut [bool], movable: &mut [bool]) {
        for page in self.split.keys() {
            (ranks[page.at()], fast[page.at()], movable[page.at()]) = (0, false, false);
        }
    }

    /// Bytes of the fast tier that split units have.
    pub(super) fn fast_bytes(&self) -> u64 {
        let fast = self.split.values().map(|state| state.fast);
        fast.fold(0, u64::saturating_add)
    }

    /// Number of split units.
    pub(super) fn count(&self) -> usize {
        self.split.len()
    }

    /// The units to split: first promotions, which are removed from the list, then other slow units, units that would stay in the fast
    /// tier, and split ones with further hot parts. `spare` is the fast bytes that each group may lose, and `bytes` the most that leave the
    /// fast tier.
    pub(super) fn choose(
        &mut self,
        promotions: &mut Vec<PageIndex>,
        requests: PlacementRequests<'_>,
        spare: &[i64],
        (capacity, mut bytes): (u64, u64),
    ) -> Vec<UnitSplit> {
        let mut splits = self.renewed();
        self.waiting = self.waiting(requests);
        let mut room = (capacity / 2).saturating_sub(self.fast_bytes());
        let [slow, fast] = self.candidates(promotions, requests);
        for (page, hot) in slow {
            let needs = requests.resident(page) / PARTS as u64 * u64::from(hot.count());
            if needs <= room {
                room -= needs;
                splits.push(UnitSplit { page, hot });
            }
        }
        let pages: BTreeSet<PageIndex> = splits.iter().map(|split| split.page).collect();
        promotions.retain(|page| !pages.contains(page));
        for (page, hot) in fast {
            let leaves = requests.fast(page);
            let may_lose = requests
                .groups
                .of(page)
                .is_none_or(|group| spare[group] >= i64::try_from(leaves).unwrap_or(i64::MAX));
            if may_lose && leaves <= bytes {
                bytes -= leaves;
                splits.push(UnitSplit { page, hot });
            }
        }
        splits
    }

    /// Hits of the warm units that find no room in the fast tier, on average; 0 where all find it.
    fn waiting(&self, requests: PlacementRequests<'_>) -> u64 {
        let is_waiting = |page: &PageIndex| {
            let is_slow = !requests.index.known()[page.at()].is_fast();
            is_slow && !requests.wanted[page.at()] && !self.split.contains_key(page)
        };
        let hits = self.hits.iter().filter(|(page, _)| is_waiting(page));
        let (units, sum) = hits.fold((0, 0), |(units, sum), (_, hits)| {
            (units + 1, sum + hits.sum())
        });
        u64::div_ceil(sum, u64::max(units, 1))
    }

    /// The units of which little is hot, the hottest first: slow ones, and fast ones that should stay.
    fn candidates(
        &self,
        promotions: &[PageIndex],
        requests: PlacementRequests<'_>,
    ) -> [Vec<(PageIndex, Parts)>; 2] {
        let is_movable = |page: &PageIndex| requests.movable[page.at()];
        let examined: BTreeSet<PageIndex> = self.hit.iter().chain(promotions).copied().collect();
        let all = examined.into_iter().filter(is_movable);
        let all = all.filter_map(|page| Some((page, self.few(page, requests)?)));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(page, _)| (Reverse(requests.ranks[page.at()]), *page));
        let (fast, slow): (Vec<_>, Vec<_>) = all
            .into_iter()
            .filter(|(page, _)| requests.ranks[page.at()] > 0 || requests.wanted[page.at()])
            .partition(|(page, _)| requests.index.known()[page.at()].is_fast());
        let kept = fast
            .into_iter()
            .filter(|(page, _)| requests.wanted[page.at()]);
        [slow, kept.collect()]
    }

    /// The few hot parts of a unit that may be split: the rest of it is colder than units without room, it does not move with others, and
    /// its group has no cap, which counts whole units.
    fn few(&self, page: PageIndex, requests: PlacementRequests<'_>) -> Option<Parts> {
        let hits = self.hits.get(&page)?;
        let hot = hits.few()?;
        if hits.rest(hot) * HOTTER > self.waiting || self.waiting == 0 {
            return None;
        }
        let group = requests.groups.of(page);
        let is_capped = group.is_some_and(|it| requests.groups.bounds()[it].cap < usize::MAX);
        (requests.grains.with(&page).len() == 1 && !is_capped).then_some(hot)
    }

    /// Split units with hot parts that are not promoted, and those that were split longest ago, whose other parts are demoted.
    fn renewed(&self) -> Vec<UnitSplit> {
        let hot = |page: &PageIndex, state: &SplitState| {
            let hits = self.hits.get(page);
            hits.and_then(PartHits::few).unwrap_or(state.hot)
        };
        let mut renewed = Vec::new();
        let mut aged = Vec::new();
        for (page, state) in &self.split {
            let split = UnitSplit {
                page: *page,
                hot: hot(page, state),
            };
            if state.age >= RENEWED_AFTER {
                aged.push((state.age, split));
            } else if !split.hot.are_in(state.hot) {
                let hot = split.hot.and(state.hot);
                renewed.push(UnitSplit { hot, ..split });
            }
        }
        aged.sort_by_key(|(age, _)| Reverse(*age));
        renewed.extend(
            aged.into_iter()
                .map(|(_, split)| split)
                .take(RENEWED_AT_MOST),
        );
        renewed
    }

    /// Records that a unit is not split, or no longer.
    pub(super) fn set_whole(&mut self, page: PageIndex) {
        self.split.remove(&page);
    }

    /// Records that a unit is split, with this many bytes of its hot parts in the fast tier.
    pub(super) fn set_split(&mut self, split: UnitSplit, fast: u64) {
        let state = self.split.entry(split.page).or_default();
        (state.hot, state.fast, state.age) = (split.hot, fast, 0);
    }
}
