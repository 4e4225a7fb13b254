//! [`touched`] and [`whole`] convert a range of addresses to pages or chunks of the pool, numbered from its first address: those that the
//! range touches, and those that lie wholly within it. Both emulations, by page faults and by time ([`crate::delay`]), use them.

use core::ops::Range;

/// The units of `unit` bytes that a range touches, without those outside the pool.
pub(crate) fn touched(pool: &Range<usize>, range: &Range<usize>, unit: usize) -> Range<usize> {
    let (start, end) = (range.start.max(pool.start), range.end.min(pool.end));
    match start < end {
        true => (start - pool.start) / unit..(end - pool.start).div_ceil(unit),
        false => 0..0,
    }
}

/// The units of `unit` bytes that lie wholly in a range and in the pool.
pub(crate) fn whole(pool: &Range<usize>, range: &Range<usize>, unit: usize) -> Range<usize> {
    let offset = |address: usize| address.clamp(pool.start, pool.end) - pool.start;
    offset(range.start).div_ceil(unit)..offset(range.end) / unit
}

#[cfg(test)]
mod tests {
    use super::{touched, whole};

    #[test]
    fn a_range_is_cut_to_the_pool_and_rounded_outwards_or_inwards() {
        let pool = 100..200;
        for (range, outwards, inwards) in [
            (100..200, 0..10, 0..10),
            (0..300, 0..10, 0..10),
            (115..139, 1..4, 2..3),
            (115..125, 1..3, 2..2),
        ] {
            assert_eq!(touched(&pool, &range, 10), outwards);
            assert_eq!(whole(&pool, &range, 10), inwards);
        }
        for empty in [115..115, 0..100, 200..300] {
            assert!(touched(&pool, &empty, 10).is_empty(), "{empty:?}");
            assert!(whole(&pool, &empty, 10).is_empty(), "{empty:?}");
        }
    }
}
