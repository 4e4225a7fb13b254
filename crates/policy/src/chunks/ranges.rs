//! The output of chunk selection: contiguous ranges of critical chunks, each with the numbers of
//! its reason.

use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

use super::granularity::Chunks;
use super::local::Category;
use super::object_selection::ObjectSelection;

/// One contiguous range of an object that goes fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRange {
    /// Index of its object in the selection.
    pub object: usize,
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated the object.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Missed reads counted in it.
    pub missed_reads: u64,
    /// Chunks that are critical by their samples.
    pub sampled: u32,
    /// Chunks that were promoted because of their neighbours.
    pub estimated: u32,
    /// Whether the whole range fits the capacity.
    pub fit: Fit,
}

/// The part of a range of critical chunks that fits the capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The whole range.
    Whole,
    /// The part with the most missed reads, of a range of this length.
    Cut {
        /// Length before the cut.
        of: Bytes,
    },
}

/// The chunks of an object with their categories.
#[derive(Clone, Copy)]
pub(super) struct Categorised<'a> {
    /// Index of the object.
    pub(super) object: usize,
    pub(super) facts: &'a ObjectSelection,
    pub(super) chunks: Chunks<'a>,
    pub(super) categories: &'a [Category],
}

impl Categorised<'_> {
    /// These chunks as a range.
    fn range(&self, chunks: Range<usize>, fit: Fit) -> FastRange {
        let of = |category| {
            let categories = self.categories[chunks.clone()].iter();
            categories.filter(|c| **c == category).count() as u32
        };
        let before = self.chunks.bytes_between(0, chunks.start);
        FastRange {
            object: self.object,
            process: self.facts.process,
            site: self.facts.site,
            // The end of an object is a valid address, so no chunk begins beyond the last address.
            address: self.facts.address + before.0,
            bytes: self.chunks.bytes_between(chunks.start, chunks.end),
            missed_reads: total(&self.chunks.reads[chunks.clone()]),
            sampled: of(Category::Sampled),
            estimated: of(Category::Estimated),
            fit,
        }
    }

    /// Appends each run of critical chunks as one range.
    pub(super) fn add_runs(&self, ranges: &mut Vec<FastRange>) {
        let is_critical = |category: &Category| *category != Category::Cold;
        let runs = self
            .categories
            .chunk_by(|a, b| is_critical(a) == is_critical(b));
        let mut start = 0;
        for run in runs {
            let chunks = start..start + run.len();
            start = chunks.end;
            if is_critical(&run[0]) {
                ranges.push(self.range(chunks, Fit::Whole));
            }
        }
    }

    /// Neighbouring chunks of the range that fit into the room: those with the most missed reads,
    /// the first of several; `None` if not even one chunk fits.
    pub(super) fn cut(&self, range: &FastRange, room: Bytes) -> Option<FastRange> {
        let first = ((range.address - self.facts.address) / self.chunks.chunk.0) as usize;
        let length = (range.sampled + range.estimated) as usize;
        let wanted = usize::try_from(room.0 / self.chunks.chunk.0).unwrap_or(usize::MAX);
        let wanted = wanted.min(length);
        if wanted == 0 {
            return None;
        }
        let reads = &self.chunks.reads[first..first + length];
        let first_window = reads[..wanted].iter().map(|&reads| u128::from(reads));
        let mut sum = first_window.sum::<u128>();
        let (mut best, mut best_at) = (sum, 0);
        for end in wanted..length {
            sum = sum + u128::from(reads[end]) - u128::from(reads[end - wanted]);
            if sum > best {
                (best, best_at) = (sum, end + 1 - wanted);
            }
        }
        let start = first + best_at;
        let fit = Fit::Cut { of: range.bytes };
        Some(self.range(start..start + wanted, fit))
    }
}

fn total(reads: &[u64]) -> u64 {
    reads
        .iter()
        .fold(0, |sum, reads| sum.saturating_add(*reads))
}
