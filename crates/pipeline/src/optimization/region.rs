//! `Region` is a data object, or a stretch of an extent outside data objects, from its first resident page to its last, with the accesses
//! of each of its chunks. An optimization chooses chunks of regions by ATMem's selection, or parts of regions by a policy.

use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use isotherm_policy::chunks::DataObject;

/// A stretch of memory of which each chunk is chosen or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) process: Process,
    /// Whole pages; whole huge pages where most of the region is in huge pages.
    pub(super) range: Range<u64>,
    /// Size of the pages that most of the region is in.
    pub(super) page: u64,
    /// Bytes of a chunk.
    pub(super) grain: u64,
    /// The accesses of each chunk.
    pub(super) counts: Vec<u64>,
}

impl Region {
    pub(super) fn total(&self) -> u64 {
        self.counts
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The addresses of these chunks.
    pub(super) fn chunks(&self, chunks: Range<usize>) -> Range<u64> {
        let at = |chunk: usize| {
            let offset = (chunk as u64).saturating_mul(self.grain);
            self.range.start.saturating_add(offset).min(self.range.end)
        };
        at(chunks.start)..at(chunks.end)
    }

    /// The region as a data object of chunk selection.
    pub(super) fn object(&self) -> DataObject<'_> {
        DataObject {
            process: self.process,
            // Here objects are identified by their addresses.
            site: SiteId::UNATTRIBUTED,
            address: self.range.start,
            bytes: Bytes(self.range.end - self.range.start),
            grain: Bytes(self.grain),
            missed_reads: &self.counts,
        }
    }

    /// The addresses between two offsets.
    pub(super) fn place(&self, start: Bytes, end: Bytes) -> Range<u64> {
        let at = |offset: Bytes| {
            let address = self.range.start.saturating_add(offset.0);
            address.min(self.range.end)
        };
        at(start)..at(end)
    }
}
