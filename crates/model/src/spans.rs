//! [`AddressRange`] is a contiguous range of addresses; the functions compute with sets of ranges (of `u64`, sorted, no overlap), make such
//! sets of ranges in any order, and cut a range at the multiples of a size.
//!
//! ```text
//! a                |=====|   |====|
//! b                   |=====|   |=====|
//! intersection        |==|      |=|
//! difference       |==|      |==|
//! ```

use std::ops::Range;

/// The parts of the ranges of a set that lie within a range.
pub fn within(set: &[Range<u64>], range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
    let first = set.partition_point(|span| span.end <= range.start);
    let inside = set[first..].iter();
    inside
        .take_while(move |span| span.start < range.end)
        .map(move |span| span.start.max(range.start)..span.end.min(range.end))
}

/// Bytes of a set that lie within a range.
#[must_use]
pub fn bytes_within(set: &[Range<u64>], range: &Range<u64>) -> u64 {
    let inside = within(set, range.clone());
    inside.map(|span| span.end - span.start).sum()
}

/// The addresses in both sets.
#[must_use]
pub fn intersection(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    a.iter().flat_map(|span| within(b, span.clone())).collect()
}

/// The addresses in the first set and not in the second.
#[must_use]
pub fn difference(a: &[Range<u64>], b: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    for span in a {
        let mut start = span.start;
        for taken in within(b, span.clone()) {
            if start < taken.start {
                left.push(start..taken.start);
            }
            start = taken.end;
        }
        if start < span.end {
            left.push(start..span.end);
        }
    }
    left
}

/// The set of these ranges, which may come in any order and overlap. Neighbours are one range.
#[must_use]
pub fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| range.start < range.end);
    ranges.sort_unstable_by_key(|range| range.start);
    let mut set: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match set.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => set.push(range),
        }
    }
    set
}

/// Bytes of a set.
#[must_use]
pub fn total(set: &[Range<u64>]) -> u64 {
    set.iter().map(|span| span.end - span.start).sum()
}

#[cfg(test)]
mod tests {
    use super::{difference, intersection, joined, total};
    use proptest::prelude::*;
    use std::ops::Range;

    fn set(ranges: &[(u64, u64)]) -> Vec<Range<u64>> {
        joined(
            ranges
                .iter()
                .map(|(start, length)| *start..start + length)
                .collect(),
        )
    }

    fn holds(set: &[Range<u64>], address: u64) -> bool {
        set.iter().any(|span| span.contains(&address))
    }

    proptest! {
        #[test]
        fn sets_are_those_of_single_addresses(
            a in prop::collection::vec((0_u64..60, 0_u64..9), 0..8),
            b in prop::collection::vec((0_u64..60, 0_u64..9), 0..8),
        ) {
            let (a, b) = (set(&a), set(&b));
            let (both, first) = (intersection(&a, &b), difference(&a, &b));
            for address in 0..80 {
                let (in_a, in_b) = (holds(&a, address), holds(&b, address));
                prop_assert_eq!(holds(&both, address), in_a && in_b);
                prop_assert_eq!(holds(&first, address), in_a && !in_b);
            }
            prop_assert_eq!(total(&both) + total(&first), total(&a));
            prop_assert!(a.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
