//! Which of the policy's wishes are carried out in this epoch, and in what order.
//!
//! Demotions come first, because they make the room; promotions follow, hottest first, as far as
//! there is room in truth: a demotion that failed made none.

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, Request};
use isotherm_model::page::PageIndex;
use isotherm_model::units::Bytes;

use super::index::Index;

/// What is to be done: both lists in the order in which it should be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// Coldest first.
    pub demotions: Vec<PageIndex>,
    /// Hottest first.
    pub promotions: Vec<PageIndex>,
}

/// Chooses moves from what is wanted, at most `bytes` of them. `wanted` says of each unit whether
/// the policy wants it fast; `room` is what the fast tier has left.
pub(super) fn choose(
    index: &Index,
    ranks: &[u64],
    wanted: &[bool],
    movable: impl Fn(PageIndex) -> bool,
    room: u64,
    bytes: u64,
) -> Moves {
    let rank = |page: &PageIndex| ranks[page.at()];
    let resident = |page: &PageIndex| index.known()[page.at()].resident;
    let (mut promotions, mut demotions) = (Vec::new(), Vec::new());
    for (known, number) in index.known().iter().zip(0_u32..) {
        let page = PageIndex(number);
        if known.unit.is_none() || wanted[page.at()] == known.is_fast() || !movable(page) {
            continue;
        }
        let list = if wanted[page.at()] {
            &mut promotions
        } else {
            &mut demotions
        };
        list.push(page);
    }
    promotions.sort_unstable_by_key(|page| (std::cmp::Reverse(rank(page)), *page));
    demotions.sort_unstable_by_key(|page| (rank(page), *page));
    let mut moves = Moves::default();
    let (mut room, mut left) = (room, bytes);
    let mut demotions = demotions.into_iter().peekable();
    for page in promotions {
        let needs = resident(&page);
        let (mut gains, mut costs, mut takes) = (room, needs, Vec::new());
        while gains < needs
            && let Some(leaver) = demotions.peek().copied()
        {
            gains = gains.saturating_add(index.known()[leaver.at()].fast);
            costs = costs.saturating_add(resident(&leaver));
            takes.push(leaver);
            demotions.next();
        }
        if gains < needs || costs > left {
            moves.demotions.extend(
                takes
                    .iter()
                    .take_while(|page| take(&mut left, resident(page))),
            );
            break;
        }
        left -= costs;
        room = gains - needs;
        moves.demotions.extend(takes);
        moves.promotions.push(page);
    }
    for page in demotions {
        if !take(&mut left, resident(&page)) {
            break;
        }
        moves.demotions.push(page);
    }
    moves
}

/// Takes from what is left, if that is enough.
const fn take(left: &mut u64, bytes: u64) -> bool {
    if bytes > *left {
        return false;
    }
    *left -= bytes;
    true
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
