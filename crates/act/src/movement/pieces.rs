//! [`pieces`] divides the move of a range into moves of its parts: a limit can pause between them, several threads share them, and the
//! progress of a runtime that is requested to move shows after each. `in_pieces` has the pieces of several moves carried out, and joins
//! their outcomes to one for each move.

use isotherm_model::movement::{AddressRange, RangeAction};
use isotherm_model::units::Bytes;

/// Bytes of a piece, and the multiple at which pieces end: whole huge pages, and some milliseconds of moving.
pub const PIECE: u64 = 16 << 20;

/// An action in pieces that end at multiples of [`PIECE`].
pub fn pieces(action: RangeAction) -> impl Iterator<Item = RangeAction> {
    let mut start = action.range.start;
    std::iter::from_fn(move || {
        let end = (start / PIECE + 1)
            .saturating_mul(PIECE)
            .min(action.range.end());
        let bytes = Bytes(end.checked_sub(start).filter(|bytes| *bytes > 0)?);
        let range = AddressRange { start, bytes };
        start = end;
        Some(RangeAction { range, ..action })
    })
}
