//! [`fill`] fills the room that is left in a tier, hottest first, with pieces (sites or parts of sites): as they are, cut to fit, or, as
//! the last one, one piece that is larger than the room and spills. A plan with parts of sites uses it after a policy that takes sites by
//! value (`SitePolicy::fills`), and alone, without a policy's choice, for the plan of the hottest pieces.
//!
//! A piece that fits enters. A piece that can be cut, by its places or by the order of allocation, is cut, so that a part of it enters.
//! Another piece is taken although it does not fit, as first touch would: memory allocated first enters, and the rest spills. That ends the
//! filling, and is only done where it serves more: memory that spills into the tier first takes the room of hotter data that is allocated
//! later.

use isotherm_model::plan::Item;
use isotherm_model::units::{Bytes, portion};

use crate::pieces::Pieces;
use crate::standing::first_touch_value;

/// Each step must add at least this part of the value of all pieces, one in this number.
const GAINS: u64 = 200;
/// Number of pieces that are tried without a gain before the filling ends.
const TRIES: usize = 16;

/// Chooses among the waiting pieces for a tier that holds the taken ones. Returns the pieces that enter, each with the reason. The rest of
/// a piece that was cut becomes a new piece, the last one.
pub(crate) fn fill(
    pieces: &mut Pieces,
    waiting: &[usize],
    mut taken: Vec<usize>,
    capacity: Bytes,
) -> Vec<(usize, String)> {
    let used: Bytes = taken.iter().map(|piece| pieces.items[*piece].weight).sum();
    let mut room = capacity.saturating_sub(used);
    let values = pieces.items.iter().map(|item| item.value);
    let least = values.fold(0, u64::saturating_add) / GAINS;
    let mut order = waiting.to_vec();
    order.sort_by(|a, b| pieces.items[*a].hotter_first(&pieces.items[*b]));
    let mut entered = Vec::new();
    let mut tries = 0;
    for piece in order {
        if room == Bytes::ZERO || tries == TRIES {
            break;
        }
        let Item { value, weight, .. } = pieces.items[piece];
        if value > 0 && weight <= room {
            room = room.saturating_sub(weight);
            taken.push(piece);
            entered.push((piece, "taken: it fits".to_owned()));
            continue;
        }
        if portion(value, room.0, weight.0) <= least {
            tries += 1;
        } else if pieces.cut(piece, room) {
            let fits = pieces.items[piece].weight;
            room = room.saturating_sub(fits);
            taken.push(piece);
            entered.push((piece, format!("taken: {fits} of {weight} fit")));
        } else if gain_of_spilling(pieces, &taken, piece, capacity) > least {
            let spills = weight.saturating_sub(room);
            entered.push((
                piece,
                format!("taken: {room} were left, and {spills} will spill"),
            ));
            break;
        } else {
            tries += 1;
        }
    }
    entered
}

/// The value that a tier serves in addition when a piece enters it beside others, each in the order of its first allocation.
fn gain_of_spilling(pieces: &Pieces, taken: &[usize], piece: usize, capacity: Bytes) -> u64 {
    let mut items: Vec<Item> = taken.iter().map(|piece| pieces.items[*piece]).collect();
    let before = first_touch_value(&items, capacity);
    items.push(pieces.items[piece]);
    first_touch_value(&items, capacity).saturating_sub(before)
}

#[cfg(test)]
mod tests {
    use super::fill;
    use crate::pieces::{Divisions, Pieces};
    use crate::properties::items;
    use isotherm_model::plan::Item;
    use isotherm_model::units::Bytes;

    /// The pieces that enter a tier of ten bytes that holds the first one.
    fn entered(sites: &[Item]) -> Vec<usize> {
        let mut pieces = Pieces::of(sites, Divisions::default());
        let waiting: Vec<usize> = (1..sites.len()).collect();
        let entered = fill(&mut pieces, &waiting, vec![0], Bytes(10));
        entered.into_iter().map(|(piece, _)| piece).collect()
    }

    #[test]
    fn the_hottest_that_does_not_fit_spills_and_ends_it() {
        assert_eq!(entered(&items(&[(90, 4), (50, 8), (80, 9), (9, 90)])), [2]);
    }

    #[test]
    fn data_that_would_take_the_room_of_hotter_data_does_not_enter() {
        let mut sites = items(&[(90, 4), (50, 30)]);
        assert_eq!(entered(&sites), [1]);
        // Allocated first, it fills the tier.
        sites[0].order = 9;
        assert_eq!(entered(&sites), []);
    }

    #[test]
    fn a_gain_too_small_to_matter_is_none() {
        assert_eq!(entered(&items(&[(9_000, 4), (40, 8)])), []);
    }
}
