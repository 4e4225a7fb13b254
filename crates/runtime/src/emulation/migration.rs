//! [`Migration`] is the state of the migration between emulated tiers under way: its request, and the batch of pages that move.

use core::ops::Range;

use super::placement_requests::PlacementRequest;

/// Pages that move together. 16 pages at the paper's 50 us keep an access waiting 0.8 ms at most.
pub(super) const BATCH: usize = 16;

/// A migration under way.
#[derive(Default)]
pub(crate) struct Migration {
    pub(super) job: Option<Job>,
    pub(super) batch: [u32; BATCH],
    pub(super) batch_count: usize,
    pub(super) batch_until_ns: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) request: PlacementRequest,
    pub(super) chunks: Range<usize>,
    /// Next page to look at in the first chunk of `chunks`.
    pub(super) page: u32,
    /// First page behind those of the subject.
    pub(super) end: u32,
}

impl Migration {
    /// Whether there is anything to do.
    pub(crate) fn is_busy(&self) -> bool {
        self.job.is_some() || self.batch_count > 0
    }

    /// When the next step can be taken.
    pub(crate) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        if self.batch_count > 0 {
            Some(self.batch_until_ns)
        } else {
            self.job.is_some().then_some(now_ns)
        }
    }
}
