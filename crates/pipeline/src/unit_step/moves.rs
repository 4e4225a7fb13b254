//! [`choose`] selects which promotions and demotions towards the wanted state are carried out in this epoch ([`Moves`]), and their order,
//! within the bytes that may be moved and the floors of groups. [`actions`] joins neighbours to moves of ranges for the executor.
//!
//! Demotions make the room for promotions, of groups below their floors first and then hottest first; the step promotes batch by batch as
//! far as there is actual room, as a failed demotion makes none. No group falls below its floor, even while its own units change places.

mod demotion_queue;

use isotherm_model::movement::{NodeId, RangeAction};
use isotherm_model::page::PageIndex;
use isotherm_model::units::Bytes;

use super::index::Index;
use super::placement_requests::PlacementRequests;
use demotion_queue::DemotionQueue;

/// The moves: both lists in order of execution. The first of the units that move together
/// represents all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Coldest first.
    pub demotions: Vec<PageIndex>,
    /// Hottest first.
    pub promotions: Vec<PageIndex>,
}

/// The fast tier before the moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastTier {
    /// Bytes in it. New data may make them more than the capacity.
    pub held: u64,
    /// Bytes that it may have.
    pub capacity: u64,
}

/// Chooses moves towards the wanted state, of at most `bytes` bytes. Bytes above the capacity leave first, without anything in exchange.
/// `spare` is the fast bytes that each group may lose.
pub(super) fn choose(
    requests: PlacementRequests<'_>,
    spare: Vec<i64>,
    tier: FastTier,
    bytes: u64,
) -> Moves {
    let [promotions, demotions] = requests.lists(&spare);
    let mut demotions = DemotionQueue::new(requests, demotions, spare);
    let mut moves = Moves::default();
    let (mut held, mut left) = (tier.held, bytes);
    while held > tier.capacity
        && let Some(page) = demotions.coldest()
    {
        let costs = requests.resident(page);
        if costs > left {
            return moves;
        }
        left -= costs;
        held = held.saturating_sub(requests.fast(page));
        moves.demotions.push(page);
    }
    let mut room = tier.capacity.saturating_sub(held);
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

/// Joins neighbours of one process that go to the same node: one action for each run, with the units of the run. This needs fewer system
/// calls and names no page twice.
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
        runs.push((unit.move_to(node, Bytes(unit_bytes)), vec![*page]));
    }
    runs
}
