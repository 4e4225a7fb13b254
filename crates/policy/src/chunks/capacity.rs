//! Limits a selection to the capacity: the best ranges first, until the fast tier is full. The
//! paper ignores the capacity and controls the size of the selection by the parameters.
//!
//! ```text
//! by missed reads a byte   | A      | B  | C          | D    | E  |
//! capacity                 |------------------|
//! kept                     | A      | B  | C  |                        C is cut, D and E are left out
//! ```

use isotherm_model::hotness::hotter_first;
use isotherm_model::units::Bytes;

use super::ranges::FastRange;

/// Keeps the ranges that fit, and returns the number of bytes left out. The ranges are in order of
/// process and address and stay so. The best range that does not fit whole is cut to the remaining
/// room, and no worse one is considered, so the free rest is smaller than one of its chunks. More
/// capacity never keeps fewer missed reads.
pub(super) fn bound(
    ranges: Vec<FastRange>,
    capacity: Bytes,
    cut: impl Fn(&FastRange, Bytes) -> Option<FastRange>,
) -> (Vec<FastRange>, Bytes) {
    let all = total(&ranges);
    if all <= u128::from(capacity.0) {
        return (ranges, Bytes::ZERO);
    }
    // More missed reads a byte first; the position breaks ties.
    let key = |at: usize| (ranges[at].missed_reads, ranges[at].bytes, at);
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_unstable_by(|&a, &b| hotter_first(key(a), key(b)));
    let mut room = capacity;
    let mut kept: Vec<Option<FastRange>> = vec![None; ranges.len()];
    for at in order {
        let range = &ranges[at];
        if range.bytes > room {
            kept[at] = cut(range, room);
            break;
        }
        room = room.saturating_sub(range.bytes);
        kept[at] = Some(*range);
    }
    let kept: Vec<FastRange> = kept.into_iter().flatten().collect();
    let left_out = all - total(&kept);
    (kept, Bytes(u64::try_from(left_out).unwrap_or(u64::MAX)))
}

fn total(ranges: &[FastRange]) -> u128 {
    ranges.iter().map(|range| u128::from(range.bytes.0)).sum()
}
