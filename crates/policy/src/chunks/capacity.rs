//! Limits a selection to the capacity: the best ranges first, until the fast tier is full. The
//! paper ignores the capacity and controls the size of the selection by the parameters.
//!
//! ```text
//! by missed reads a byte   | A      | B  | C          | D    | E  |
//! capacity                 |------------------|
//! kept                     | A      | B  | C  |                        C is cut, D and E are left out
//! ```
//!
//! The range that crosses the capacity is found by bisection over the open candidates. If their
//! better half fits, the worse half stays open; otherwise the better half stays open. So the work
//! is linear in the number of ranges, which sorting is not.

use std::cmp::Ordering;

use isotherm_model::hotness::hotter_first;
use isotherm_model::units::Bytes;

use super::ranges::FastRange;

/// Rank of a range among all: its position breaks ties, so no two ranks are equal.
#[derive(Clone, Copy)]
struct Rank {
    missed_reads: u64,
    bytes: Bytes,
    position: usize,
}

impl Rank {
    fn of(range: &FastRange, position: usize) -> Self {
        Self {
            missed_reads: range.missed_reads,
            bytes: range.bytes,
            position,
        }
    }

    /// More missed reads a byte first.
    fn better_first(&self, other: &Self) -> Ordering {
        let key = |rank: &Self| (rank.missed_reads, rank.bytes, rank.position);
        hotter_first(key(self), key(other))
    }
}

/// Keeps the ranges that fit, and returns the number of bytes left out. The ranges are in order of
/// process and address and stay so. The best range that does not fit whole is cut to the remaining
/// room, and no worse one is considered, so the free rest is smaller than one of its chunks. More
/// capacity never keeps fewer missed reads.
pub(super) fn bound(
    mut ranges: Vec<FastRange>,
    capacity: Bytes,
    cut: impl Fn(&FastRange, Bytes) -> Option<FastRange>,
) -> (Vec<FastRange>, Bytes) {
    let all = total(ranges.iter().map(|range| range.bytes));
    if all <= u128::from(capacity.0) {
        return (ranges, Bytes::ZERO);
    }
    let (crossing, room) = crossing(&ranges, capacity);
    let mut position = 0;
    ranges.retain_mut(|range| {
        let rank = Rank::of(range, position);
        position += 1;
        match rank.better_first(&crossing) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => match cut(range, room) {
                Some(part) => {
                    *range = part;
                    true
                }
                None => false,
            },
        }
    });
    let left_out = all - total(ranges.iter().map(|range| range.bytes));
    (ranges, Bytes(u64::try_from(left_out).unwrap_or(u64::MAX)))
}

/// The best range that does not fit after all better ones, and the room that these leave. All
/// ranges together must not fit.
fn crossing(ranges: &[FastRange], capacity: Bytes) -> (Rank, Bytes) {
    let mut ranks: Vec<Rank> = ranges
        .iter()
        .enumerate()
        .map(|(position, range)| Rank::of(range, position))
        .collect();
    // The best `fits` fit, the best `too_many` do not; the ranges between them are open.
    let (mut fits, mut too_many) = (0, ranks.len());
    let mut room = capacity;
    while too_many - fits > 1 {
        let half = (too_many - fits) / 2;
        ranks[fits..too_many].select_nth_unstable_by(half, Rank::better_first);
        let better = total(ranks[fits..fits + half].iter().map(|rank| rank.bytes));
        match u64::try_from(better) {
            Ok(better) if better <= room.0 => {
                room = room.saturating_sub(Bytes(better));
                fits += half;
            }
            _ => too_many = fits + half,
        }
    }
    (ranks[fits], room)
}

fn total(bytes: impl Iterator<Item = Bytes>) -> u128 {
    bytes.map(|bytes| u128::from(bytes.0)).sum()
}
