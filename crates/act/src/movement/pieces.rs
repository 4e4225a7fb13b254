//! [`pieces`] divides the move of a range into moves of its parts: a limit can pause between them, several threads share them, and the
//! progress of a runtime that is requested to move shows after each. `in_pieces` has the pieces of several moves carried out, and joins
//! their outcomes to one for each move.

use isotherm_model::movement::{RangeAction, RangeOutcome};

/// Bytes of a piece, and the multiple at which pieces end: whole huge pages, and some milliseconds of moving.
pub const PIECE: u64 = 16 << 20;

/// An action in pieces that end at multiples of `size`.
pub fn pieces(action: RangeAction, size: u64) -> impl Iterator<Item = RangeAction> {
    let ranges = action.range.cut(size);
    ranges.map(move |range| RangeAction { range, ..action })
}

/// The outcomes of actions whose pieces are carried out in place of them.
pub(super) fn in_pieces(
    actions: &[RangeAction],
    size: u64,
    carry_out: impl FnOnce(&[RangeAction]) -> Vec<RangeOutcome>,
) -> Vec<RangeOutcome> {
    let all = (0..).zip(actions);
    let all = all.flat_map(|(of, action)| pieces(*action, size).map(move |piece| (of, piece)));
    let (owners, pieces): (Vec<usize>, Vec<RangeAction>) = all.unzip();
    let mut outcomes: Vec<RangeOutcome> =
        actions.iter().copied().map(RangeOutcome::begin).collect();
    for (of, outcome) in owners.into_iter().zip(carry_out(&pieces)) {
        for part in outcome.parts {
            outcomes[of].push(part.bytes, part.fate);
        }
    }
    outcomes
}
