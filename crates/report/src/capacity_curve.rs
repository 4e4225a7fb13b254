//! [`CapacityCurve`] computes how many accesses the hottest bytes of a program serve, for any capacity, and how many bytes serve a share of
//! the accesses.
//!
//! ```text
//! pieces by hotness   |■■■■|■■|■■■■■■■■|■■■■■■■■■■■■■■|   one square, so many bytes
//! accesses            | 60 | 20|  15   |      5       |
//! with 8 squares      60 + 20 + 15 · 2/8 = 83.75
//! ```
//!
//! A piece that fits in part counts in proportion to the part that fits, so the curve is an upper bound
//! for every placement of these pieces.

use isotherm_model::footprint::Footprint;
use isotherm_model::hotness::hotter_first;
use isotherm_model::units::{Accesses, Bytes};
use serde::Serialize;

use crate::words::share;

/// Divisors of the footprint: the table shows 1/128 of it to all of it.
pub(crate) const PARTS: [u64; 8] = [128, 64, 32, 16, 8, 4, 2, 1];
/// Shares of the accesses for which the bytes that they need are shown, in percent.
pub(crate) const NEEDS: [u64; 5] = [50, 80, 90, 95, 99];

/// A part of a program's memory that is placed as a whole: a chunk, a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Accesses to it.
    pub accesses: Accesses,
    /// Its size.
    pub bytes: Bytes,
}

/// Accesses by capacity, for one way to divide the memory into pieces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapacityCurve {
    /// Sums up to and with each piece, hottest first.
    sums: Vec<(u64, u64)>,
}

/// The shares at one capacity.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityPoint {
    /// Fast memory.
    pub capacity_bytes: u64,
    /// Share of the footprint that this is, 0 to 1.
    pub share_of_footprint: f64,
    /// Share of the accesses that the hottest bytes of this capacity serve, 0 to 1.
    pub share_of_accesses: f64,
}

/// The bytes that serve a share of the accesses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapacityNeed {
    /// Share of the accesses, 0 to 1.
    pub share_of_accesses: f64,
    /// The fewest bytes that serve them, hottest first.
    pub capacity_bytes: u64,
}

impl CapacityCurve {
    /// The curve of these pieces, in whatever order they come; equally hot ones stay in that order.
    #[must_use]
    pub fn new(mut pieces: Vec<Piece>) -> Self {
        let key = |piece: &Piece| (piece.accesses.0, piece.bytes, ());
        pieces.sort_by(|a, b| hotter_first(key(a), key(b)));
        let mut sum = (0_u64, 0_u64);
        let sums = pieces.iter().map(|piece| {
            sum.0 = sum.0.saturating_add(piece.bytes.0);
            sum.1 = sum.1.saturating_add(piece.accesses.0);
            sum
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.sums.last().map_or(0, |sum| sum.0))
    }

    /// All accesses.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        Accesses(self.sums.last().map_or(0, |sum| sum.1))
    }

    /// Share of the accesses, 0 to 1, that the hottest bytes of a capacity serve.
    #[must_use]
    pub fn share_at(&self, capacity: Bytes) -> f64 {
        let whole = self.sums.partition_point(|sum| sum.0 <= capacity.0);
        let before = whole.checked_sub(1).map_or((0, 0), |last| self.sums[last]);
        let part = self.sums.get(whole).map_or(0.0, |sum| {
            let fits = share(capacity.0 - before.0, sum.0 - before.0);
            (sum.1 - before.1) as f64 * fits
        });
        let all = self.accesses().0;
        if all == 0 {
            return 0.0;
        }
        (before.1 as f64 + part) / all as f64
    }

    /// The points of the table.
    #[must_use]
    pub fn points(&self, footprint: Footprint) -> Vec<CapacityPoint> {
        let point = |part: u64| {
            let capacity = Bytes(footprint.0.0 / part);
            CapacityPoint {
                capacity_bytes: capacity.0,
                share_of_footprint: 1.0 / part as f64,
                share_of_accesses: self.share_at(capacity),
            }
        };
        PARTS.into_iter().map(point).collect()
    }

    /// The fewest bytes for each of some shares of the accesses, whole pieces.
    #[must_use]
    pub fn needs(&self) -> Vec<CapacityNeed> {
        let all = u128::from(self.accesses().0);
        let need = |percent: u64| {
            let enough = |sum: &(u64, u64)| u128::from(sum.1) * 100 >= all * u128::from(percent);
            let at = self.sums.partition_point(|sum| !enough(sum));
            CapacityNeed {
                share_of_accesses: percent as f64 / 100.0,
                capacity_bytes: self.sums.get(at).map_or(0, |sum| sum.0),
            }
        };
        NEEDS.into_iter().map(need).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{CapacityCurve, Piece};
    use isotherm_model::units::{Accesses, Bytes};

    /// The example at the head of the file: hotness 15, 10, 1.9 and 0.4.
    pub(crate) fn example() -> CapacityCurve {
        let pieces = [(5, 14), (15, 8), (60, 4), (20, 2)];
        let piece = |(accesses, bytes): (u64, u64)| Piece {
            accesses: Accesses(accesses),
            bytes: Bytes(bytes),
        };
        CapacityCurve::new(pieces.into_iter().map(piece).collect())
    }

    #[test]
    fn the_hottest_pieces_serve_first_and_the_last_one_in_part() {
        let curve = example();
        assert_eq!(
            (curve.bytes(), curve.accesses()),
            (Bytes(28), Accesses(100))
        );
        for (capacity, share) in [(0, 0.0), (4, 0.6), (8, 0.8375), (28, 1.0), (99, 1.0)] {
            let at = curve.share_at(Bytes(capacity));
            assert!((at - share).abs() < 1e-12, "{capacity}: {at}");
        }
    }

    #[test]
    fn what_a_share_of_the_accesses_needs_is_whole_pieces() {
        let needs = example().needs();
        let bytes: Vec<u64> = needs.iter().map(|need| need.capacity_bytes).collect();
        assert_eq!(bytes, [4, 6, 14, 14, 28]);
    }

    #[test]
    fn a_piece_of_no_bytes_and_no_accesses_changes_nothing_wherever_it_comes() {
        let pieces = [(0, 0), (5, 14), (0, 0), (15, 8), (60, 4), (0, 0), (20, 2)];
        let piece = |(accesses, bytes): (u64, u64)| Piece {
            accesses: Accesses(accesses),
            bytes: Bytes(bytes),
        };
        for first in 0..pieces.len() {
            let turned = pieces.iter().cycle().skip(first).take(pieces.len());
            let curve = CapacityCurve::new(turned.copied().map(piece).collect());
            assert_eq!(curve.needs(), example().needs());
            let at = curve.share_at(Bytes(8));
            assert!((at - 0.8375).abs() < 1e-12, "{at}");
        }
    }
}
