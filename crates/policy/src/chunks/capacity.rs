//! Limits the critical chunks of a selection, which are to be fast, to the capacity of the fast tier: [`bound`] keeps those of most missed
//! reads a byte, up to the first that does not fit, and reports the others. ATMem's paper ignores the capacity and controls the size of the
//! selection by the parameters.
//!
//! ```text
//! ranges of critical chunks    | 9 7 2 8 |   | 3 5 |
//! by missed reads a byte         9 8 7 5 3 2
//! capacity                     |---------|
//! kept                         | 9 7 | 8 |   |   5 |    two ranges are cut; what is kept side by side is one range
//! ```

use isotherm_model::units::Bytes;

/// A critical chunk with the numbers by which the capacity is divided.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The bits of its priority, which are in the order of the priorities because none is negative.
    priority: u64,
    bytes: u64,
    /// Its number among the chunks of all objects.
    chunk: usize,
}

impl Candidate {
    pub(super) const fn new(priority: f64, bytes: Bytes, chunk: usize) -> Self {
        Self {
            priority: priority.to_bits(),
            bytes: bytes.0,
            chunk,
        }
    }

    /// The sort key: highest priority first, then the lower number.
    fn rank(&self) -> (std::cmp::Reverse<u64>, usize) {
        (std::cmp::Reverse(self.priority), self.chunk)
    }
}

/// Passes the chunks for which the capacity has no room to `leave`, and returns their bytes. Chunks are kept in order of rank up to the
/// first that does not fit; all after it are left: more capacity never keeps fewer missed reads. Linear in the chunks.
pub(super) fn bound(
    candidates: &mut [Candidate],
    capacity: Bytes,
    mut leave: impl FnMut(usize),
) -> Bytes {
    let mut room = u128::from(capacity.0);
    let mut open = candidates;
    // The first chunk in `open` that does not fit is unknown; all before them are kept, all after them are left.
    let mut left_out = 0;
    while !open.is_empty() {
        let middle = open.len() / 2;
        let (before, at, after) = open.select_nth_unstable_by_key(middle, Candidate::rank);
        let upper = total(before) + u128::from(at.bytes);
        if upper <= room {
            room -= upper;
            open = after;
        } else {
            for chunk in after.iter().chain([&*at]) {
                leave(chunk.chunk);
                left_out += u128::from(chunk.bytes);
            }
            open = before;
        }
    }
    Bytes(u64::try_from(left_out).unwrap_or(u64::MAX))
}

/// Bytes of these chunks.
fn total(candidates: &[Candidate]) -> u128 {
    candidates.iter().map(|chunk| u128::from(chunk.bytes)).sum()
}

#[cfg(test)]
mod tests {
    use super::{Candidate, bound};
    use isotherm_model::units::Bytes;

    /// The chunks that a capacity leaves out of these priorities and sizes.
    fn left(chunks: &[(f64, u64)], capacity: u64) -> (Vec<usize>, u64) {
        let candidate =
            |(number, &(priority, bytes))| Candidate::new(priority, Bytes(bytes), number);
        let mut candidates: Vec<_> = chunks.iter().enumerate().map(candidate).collect();
        let mut left = Vec::new();
        let bytes = bound(&mut candidates, Bytes(capacity), |chunk| left.push(chunk));
        left.sort_unstable();
        (left, bytes.0)
    }

    #[test]
    fn the_first_that_does_not_fit_ends_it_although_a_smaller_one_would() {
        let chunks = [(1.0, 1), (9.0, 4), (5.0, 4), (5.0, 2)];
        assert_eq!(left(&chunks, 11), (vec![], 0));
        assert_eq!(left(&chunks, 10), (vec![0], 1));
        assert_eq!(left(&chunks, 9), (vec![0, 3], 3));
        assert_eq!(left(&chunks, 7), (vec![0, 2, 3], 7));
        assert_eq!(left(&chunks, 3), (vec![0, 1, 2, 3], 11));
        assert_eq!(left(&[], 0), (vec![], 0));
    }
}
