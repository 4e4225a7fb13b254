//! The bound by capacity: the best ranges first until the fast tier is full. The paper selects with
//! no regard to it, and sizes what it selects by the parameters.
//!
//! ```text
//! by missed reads a byte   | A      | B  | C          | D    | E  |
//! capacity                 |------------------|
//! kept                     | A      | B  | C  |                        C is cut, D and E are left out
//! ```
//!
//! The range that crosses is found by halving: the better half of what is in question either fits,
//! and the worse half is in question, or it does not, and it is in question itself. So the work is
//! linear in the number of ranges, which sorting them is not.

use std::cmp::Ordering;

use isotherm_model::hotness::hotter_first;
use isotherm_model::units::Bytes;

use super::ranges::FastRange;

/// What ranks a range among others: its position breaks ties, so no two rank the same.
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

/// Keeps what fits of the ranges, which are in order of process and address and stay so, and says how
/// many bytes were left out. The best range that does not fit whole is cut to what has room; no
/// worse one is looked at, so what stays free is less than a chunk of it. More capacity never keeps
/// fewer missed reads.
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

/// The best range that does not fit behind all better ones, and the room that these leave. All
/// ranges together must not fit.
fn crossing(ranges: &[FastRange], capacity: Bytes) -> (Rank, Bytes) {
    let mut ranks: Vec<Rank> = ranges
        .iter()
        .enumerate()
        .map(|(position, range)| Rank::of(range, position))
        .collect();
    // The best `fits` fit and the best `too_many` do not; those in between are in question.
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
