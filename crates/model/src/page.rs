//! [`PageIndex`] is the number of a page, given in the order of first touch. [`EpochView`] is the input of an epoch policy: by page, the
//! rank in the epoch that ended (in a replay, or by an earlier recording, also in the next) and whether the page is fast; the pages that
//! the fast tier holds, the rank of one hit, and the loads of the tiers.
//!
//! *Page* here means any equal-sized piece of memory that is moved as a whole: a kernel page in a
//! trace, a chunk of a recorded profile. Numbers are dense so that ranks and tiers are flat lists
//! and no decision needs a hash table.
//!
//! ```text
//! page                       0   1   2   3   4 | 5   6 .     5 and 6 are touched first in this epoch
//! rank in the epoch before   9   0   4   4   1 | 0   0 .
//! fast                       y   y   n   y   n | n   n .
//! ```

use crate::tier_loads::TierLoads;

/// Number of a page, from 0, in the order of first touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageIndex(pub u32);

impl PageIndex {
    /// Index in a list of pages.
    #[must_use]
    pub const fn at(self) -> usize {
        self.0 as usize
    }
}

/// The input of an epoch policy at the turn of an epoch. All lists are indexed by page and have one
/// length. Pages that are not touched yet have rank 0 and are not fast.
#[derive(Clone, Copy, Debug)]
pub struct EpochView<'a> {
    /// Rank of each page in the epoch that ended: the sum of its observations from all sources.
    pub previous_ranks: &'a [u64],
    /// Rank of each page in the epoch that begins. A replay knows it; a live run has it from an earlier recording alone.
    pub next_ranks: Option<&'a [u64]>,
    /// Which pages are in the fast tier.
    pub fast: &'a [bool],
    /// Number of pages that the fast tier holds.
    pub capacity: u32,
    /// Rank that one hit of the source adds, at least 1: a sample represents all accesses until the
    /// next. Ranks vary by chance as hits do, far more than the same number of single accesses.
    pub hit: u64,
    /// How slow both tiers were in the epoch that ended, where that is known.
    pub loads: Option<TierLoads>,
}
