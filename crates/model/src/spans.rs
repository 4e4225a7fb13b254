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

use crate::units::Bytes;

/// A contiguous range of virtual addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    /// First address.
    pub start: u64,
    /// Length. Start plus length does not pass the end of the address space: see [`Self::end`].
    pub bytes: Bytes,
}

impl AddressRange {
    /// The range from one address up to another; empty if the second is not after the first.
    #[must_use]
    pub const fn between(start: u64, end: u64) -> Self {
        Self {
            start,
            bytes: Bytes(end.saturating_sub(start)),
        }
    }

    /// The first address past the range, or the last address of the address space.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.0)
    }

    /// Its addresses as a [`Range`].
    #[must_use]
    pub const fn span(&self) -> Range<u64> {
        self.start..self.end()
    }

    /// The pieces of the range between the multiples of `size`, in order.
    pub fn cut(self, size: u64) -> impl Iterator<Item = Self> {
        let pieces = by_unit(&self.span(), size);
        pieces.map(|(_, piece)| Self::between(piece.start, piece.end))
    }
}

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

/// Keeps, of items with ranges sorted by their starts, those that do not begin within an earlier range, whether that was kept or not.
pub fn keep_apart<T>(things: &mut Vec<T>, range: impl Fn(&T) -> &Range<u64>) {
    let mut end = 0;
    things.retain(|thing| {
        let range = range(thing);
        let is_apart = range.start >= end;
        end = end.max(range.end);
        is_apart
    });
}

/// The parts of a range in units of this size, each with the start of its unit.
pub fn by_unit(range: &Range<u64>, unit: u64) -> impl Iterator<Item = (u64, Range<u64>)> + use<> {
    let (mut at, end) = (range.start, range.end);
    std::iter::from_fn(move || {
        let start = at / unit * unit;
        let next = start.saturating_add(unit).min(end);
        (at < end).then(|| (start, std::mem::replace(&mut at, next)..next))
    })
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
