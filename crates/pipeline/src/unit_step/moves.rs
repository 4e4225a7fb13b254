//! Which of the policy's wishes are carried out in this epoch, and in what order.
//!
//! Demotions come first, because they make the room; promotions follow, hottest first, as far as
//! there is room in truth: a demotion that failed made none. No group is brought below its floor,
//! not even for the epoch in which its own units change places.

mod leavers;

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, Request};
use isotherm_model::page::PageIndex;
use isotherm_model::units::Bytes;

use super::groups::Groups;
use super::index::Index;
use leavers::Leavers;

/// What is to be done: both lists in the order in which it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Coldest first.
    pub demotions: Vec<PageIndex>,
    /// Hottest first.
    pub promotions: Vec<PageIndex>,
}

/// What is wanted, by number of the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes<'a> {
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
}

impl Wishes<'_> {
    fn resident(&self, page: PageIndex) -> u64 {
        self.index.known()[page.at()].resident
    }

    fn fast(&self, page: PageIndex) -> u64 {
        self.index.known()[page.at()].fast
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
            let wanted = self.wanted[page.at()];
            if known.unit.is_none() || wanted == known.is_fast() || !self.movable[page.at()] {
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
pub(super) fn choose(wishes: Wishes<'_>, spare: Vec<i64>, room: u64, bytes: u64) -> Moves {
    let [promotions, demotions] = wishes.lists(&spare);
    let mut leavers = Leavers::new(wishes, demotions, spare);
    let mut moves = Moves::default();
    let (mut room, mut left) = (room, bytes);
    for page in promotions {
        let needs = wishes.resident(page);
        let Some(takes) = leavers.beside(page, needs.saturating_sub(room)) else {
            continue;
        };
        let sum = |size: &dyn Fn(PageIndex) -> u64| {
            let sizes = takes.iter().map(|page| size(*page));
            sizes.fold(0, u64::saturating_add)
        };
        let costs = sum(&|page| wishes.resident(page)).saturating_add(needs);
        if costs > left {
            leavers.give_back(page, takes);
            break;
        }
        left -= costs;
        room = room.saturating_add(sum(&|page| wishes.fast(page))) - needs;
        moves.demotions.extend(takes);
        moves.promotions.push(page);
    }
    for page in leavers.rest() {
        let bytes = wishes.resident(page);
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
        request: Request::Move(node),
    }
}
