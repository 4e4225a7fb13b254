//! [`Splits`] holds the [`Split`] of each site whose objects a guided run places in parts, by the number that its placement in the plan
//! has: which ranges of an object go to which tier, and the tier of the rest. [`Split::pieces`] cuts a range of an object by tier.
//!
//! As in [`crate::plan`], the tables are checked when they are made, and made of memory that never changes.

use core::ops::Range;

use isotherm_abi::config::{PartRecord, SPLITS_MAX, SplitRecord};
use isotherm_sys::memory::PAGE_BYTES;

/// The splits of a configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Splits {
    records: &'static [SplitRecord],
    parts: &'static [PartRecord],
}

/// The placement of each object of a site.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    /// Tier of what lies in no part.
    pub(crate) tier: u32,
    /// In order and disjoint.
    parts: &'static [PartRecord],
}

impl Splits {
    /// The tables. `None` unless all tiers are below `tiers` and the parts of each split are whole pages, in order, and
    /// disjoint.
    pub(crate) fn checked(
        records: &'static [SplitRecord],
        parts: &'static [PartRecord],
        tiers: usize,
    ) -> Option<Self> {
        let all = Self { records, parts };
        let is_sound = |index| {
            let split: Option<Split> = all.get(index);
            split.is_some_and(|split| split.is_sound(tiers))
        };
        let fits = records.len() <= SPLITS_MAX as usize;
        (fits && (0..records.len() as u32).all(is_sound)).then_some(all)
    }

    /// Number of splits.
    pub(crate) const fn len(&self) -> usize {
        self.records.len()
    }

    /// One split; `None` beyond the last, and where its parts are beyond the last part.
    pub(crate) fn get(&self, index: u32) -> Option<Split> {
        let record = self.records.get(index as usize)?;
        let first = record.first_part as usize;
        let end = first.checked_add(record.parts as usize)?;
        Some(Split {
            tier: record.tier,
            parts: self.parts.get(first..end)?,
        })
    }
}

impl Split {
    fn is_sound(&self, tiers: usize) -> bool {
        let is_tier = |tier: u32| (tier as usize) < tiers;
        let page = PAGE_BYTES as u64;
        let mut end = 0;
        let mut follows = |part: &PartRecord| {
            let whole = part.start.is_multiple_of(page) && part.end.is_multiple_of(page);
            let follows = whole && end <= part.start && part.start < part.end;
            end = part.end;
            follows && is_tier(part.tier)
        };
        is_tier(self.tier) && self.parts.iter().all(&mut follows)
    }

    /// The pieces of a range of an object, in order: bytes from the object's start on, and their tier. The last part may reach
    /// beyond the object.
    pub(crate) const fn pieces(&self, range: Range<usize>) -> Pieces {
        Pieces {
            tier: self.tier,
            parts: self.parts,
            range,
        }
    }
}

/// See [`Split::pieces`].
pub(crate) struct Pieces {
    tier: u32,
    /// The parts that were not passed yet.
    parts: &'static [PartRecord],
    /// The rest of the range.
    range: Range<usize>,
}

impl Iterator for Pieces {
    type Item = (Range<usize>, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let Range { start, end } = self.range;
        if start >= end {
            return None;
        }
        let is_passed = |part: &&PartRecord| part.end as usize <= start;
        let passed = self.parts.iter().take_while(is_passed).count();
        self.parts = &self.parts[passed..];
        let (until, tier) = match self.parts.first() {
            None => (end, self.tier),
            Some(part) if start < part.start as usize => (part.start as usize, self.tier),
            Some(part) => (part.end as usize, part.tier),
        };
        self.range.start = until.min(end);
        Some((start..self.range.start, tier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64, tier: u32) -> PartRecord {
        PartRecord {
            start: start << 12,
            end: end << 12,
            tier,
            reserved: 0,
        }
    }

    fn one_split(parts: &[PartRecord], edit: impl FnOnce(&mut SplitRecord)) -> Option<Splits> {
        let mut record = SplitRecord {
            tier: 1,
            first_part: 0,
            parts: parts.len() as u32,
            reserved: 0,
        };
        edit(&mut record);
        let records = Box::leak(Box::new([record]));
        Splits::checked(records, parts.to_vec().leak(), 2)
    }

    #[test]
    fn the_pieces_of_a_range_cover_it_and_end_with_it() {
        let splits = one_split(&[part(2, 4, 0), part(4, 5, 1), part(8, 20, 0)], |_| {});
        let split = splits.and_then(|splits| splits.get(0)).expect("one");
        let pieces = |range: Range<usize>| -> Vec<_> {
            let pieces = split.pieces(range.start << 12..range.end << 12);
            pieces
                .map(|(piece, tier)| (piece.start >> 12, piece.end >> 12, tier))
                .collect()
        };
        let all = [(0, 2, 1), (2, 4, 0), (4, 5, 1), (5, 8, 1), (8, 12, 0)];
        assert_eq!(pieces(0..12), all);
        assert_eq!(pieces(3..6), [(3, 4, 0), (4, 5, 1), (5, 6, 1)]);
        assert_eq!(pieces(19..22), [(19, 20, 0), (20, 22, 1)]);
        assert_eq!(pieces(5..5), []);
    }

    #[test]
    fn parts_that_overlap_and_numbers_out_of_range_are_refused() {
        let parts = [part(2, 4, 0), part(4, 5, 1)];
        assert!(one_split(&parts, |_| {}).is_some());
        assert!(one_split(&parts, |split| split.tier = 2).is_none());
        assert!(one_split(&parts, |split| split.first_part = 1).is_none());
        assert!(one_split(&parts, |split| split.first_part = u32::MAX).is_none());
        assert!(one_split(&parts, |split| split.parts = 3).is_none());
        for wrong in [part(4, 4, 0), part(3, 9, 0), part(4, 9, 2), part(5, 4, 0)] {
            assert!(one_split(&[part(2, 4, 0), wrong], |_| {}).is_none());
        }
        let ragged = PartRecord {
            start: 100,
            ..part(0, 9, 0)
        };
        assert!(one_split(&[ragged], |_| {}).is_none());
    }
}
