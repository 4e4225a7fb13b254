//! Which of the policy's requests are carried out in this epoch, and in what order.
//!
//! Demotions make the room; promotions follow batch by batch, hottest first, as far as there is room in truth: a
//! demotion that failed made none. No group is brought below its floor,
//! not even for the epoch in which its own units change places.

mod demotion_queue;

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeRequest};
use isotherm_model::page::PageIndex;
use isotherm_model::units::Bytes;

use super::groups::Groups;
use super::huge_page_groups::HugePageGroups;
use super::index::{Index, UnitState};
use demotion_queue::DemotionQueue;

/// What is to be done: both lists in the order in which it should be. Of units that move together the
/// first one stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Coldest first.
    pub demotions: Vec<PageIndex>,
    /// Hottest first.
    pub promotions: Vec<PageIndex>,
}

/// What is wanted, by number of the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacementRequests<'a> {
    /// The units.
    pub index: &'a Index,
    /// Their heat.
    pub ranks: &'a [u64],
    /// Which of them should be fast.
    pub wanted: &'a [bool],
    /// Which of them may be moved.
    pub movable: &'a [bool],
    /// Whose they are.
    pub groups: &'a Groups,
    /// Which of them move together.
    pub grains: &'a HugePageGroups,
}

impl PlacementRequests<'_> {
    /// Bytes that a unit has with those that move with it, and below what of them is fast and how
    /// many they are.
    fn resident(&self, page: PageIndex) -> u64 {
        self.sum(page, |known| known.resident)
    }

    fn fast(&self, page: PageIndex) -> u64 {
        self.sum(page, |known| known.fast)
    }

    fn units(&self, page: PageIndex) -> i64 {
        self.grains.with(&page).len() as i64
    }

    fn sum(&self, page: PageIndex, of: impl Fn(&UnitState) -> u64) -> u64 {
        self.grains.sum(self.index, page, of)
    }

    fn is_movable(&self, page: PageIndex) -> bool {
        let mut members = self.grains.with(&page).iter();
        members.all(|member| self.movable[member.at()])
    }

    /// Units that should come, those of groups below their floors first and then the hottest, and
    /// units that should go, coldest first.
    fn lists(&self, spare: &[i64]) -> [Vec<PageIndex>; 2] {
        let rank = |page: &PageIndex| self.ranks[page.at()];
        let below = |page: &PageIndex| {
            let group = self.groups.of(*page);
            group.is_some_and(|group| spare[group] < 0)
        };
        let (mut promotions, mut demotions) = (Vec::new(), Vec::new());
        for (known, number) in self.index.known().iter().zip(0_u32..) {
            let page = PageIndex(number);
            if known.unit.is_none() || !self.grains.is_first(page) {
                continue;
            }
            let wanted = self.wanted[page.at()];
            let is_fast = self.fast(page) > self.resident(page) / 2;
            if wanted == is_fast || !self.is_movable(page) {
                continue;
            }
            let list = if wanted {
                &mut promotions
            } else {
                &mut demotions
            };
            list.push(page);
        }
        promotions
            .sort_unstable_by_key(|page| (std::cmp::Reverse((below(page), rank(page))), *page));
        demotions.sort_unstable_by_key(|page| (rank(page), *page));
        [promotions, demotions]
    }
}

/// Chooses moves from what is wanted, at most `bytes` of them. `room` is what the fast tier has left,
/// `spare` the fast units that each group may lose.
pub(super) fn choose(
    requests: PlacementRequests<'_>,
    spare: Vec<i64>,
    room: u64,
    bytes: u64,
) -> Moves {
    let [promotions, demotions] = requests.lists(&spare);
    let mut demotions = DemotionQueue::new(requests, demotions, spare);
    let mut moves = Moves::default();
    let (mut room, mut left) = (room, bytes);
    for page in promotions {
        let needs = requests.resident(page);
        let Some(takes) = demotions.beside(page, needs.saturating_sub(room)) else {
            continue;
        };
        let sum = |size: &dyn Fn(PageIndex) -> u64| {
            let sizes = takes.iter().map(|page| size(*page));
            sizes.fold(0, u64::saturating_add)
        };
        let costs = sum(&|page| requests.resident(page)).saturating_add(needs);
        if costs > left {
            demotions.give_back(page, takes);
            break;
        }
        left -= costs;
        room = room.saturating_add(sum(&|page| requests.fast(page))) - needs;
        moves.demotions.extend(takes);
        moves.promotions.push(page);
    }
    for page in demotions.rest() {
        let bytes = requests.resident(page);
        if bytes > left {
            break;
        }
        left -= bytes;
        moves.demotions.push(page);
    }
    moves
}

/// Neighbours of one process that go to the same node, as one action each run, and the units in
/// each. The kernel is asked less often that way, and told of no page twice.
pub(super) fn actions(
    index: &Index,
    pages: &[PageIndex],
    unit_bytes: u64,
    node: NodeId,
) -> Vec<(RangeAction, Vec<PageIndex>)> {
    let mut runs: Vec<(RangeAction, Vec<PageIndex>)> = Vec::new();
    for page in pages {
        let Some(unit) = index.known()[page.at()].unit else {
            continue;
        };
        if let Some((action, pages)) = runs.last_mut()
            && action.process == unit.process
            && action.range.end() == unit.start
        {
            action.range.bytes += Bytes(unit_bytes);
            pages.push(*page);
            continue;
        }
        runs.push((
            of_unit(unit.process, unit.start, unit_bytes, node),
            vec![*page],
        ));
    }
    runs
}

const fn of_unit(process: Process, start: u64, bytes: u64, node: NodeId) -> RangeAction {
    RangeAction {
        process,
        range: AddressRange {
            start,
            bytes: Bytes(bytes),
        },
        request: RangeRequest::Move(node),
    }
}
