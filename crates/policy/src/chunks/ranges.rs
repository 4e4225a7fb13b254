//! [`FastRange`] is the output of chunk selection: a contiguous range of critical chunks that goes to fast memory, or for which there is no
//! room. It has the missed reads, how many chunks are critical by samples and how many by neighbours, and whether the capacity cut it
//! ([`Fit`]). [`Categorised`] makes the ranges from the chunks of an object, each of which is cold or critical.

use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

use super::capacity::Candidate;
use super::granularity::{Chunks, total};
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
    /// Whether all of it fits the capacity.
    pub fit: Fit,
}

/// Whether the capacity has room for all of a range of critical chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The whole range.
    Whole,
    /// A part of a range: its other chunks are worse than all that are kept.
    Cut {
        /// Length of the range without a capacity.
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

    /// Bytes of the critical chunks.
    pub(super) fn bytes(&self) -> Bytes {
        let critical = self.categories.iter();
        let critical = critical.filter(|category| **category != Category::Cold);
        let last = self.categories.len().saturating_sub(1);
        let lacking = match self.categories.last() {
            None | Some(Category::Cold) => 0,
            Some(_) => self.chunks.chunk.0 - self.chunks.bytes_between(last, last + 1).0,
        };
        // The last chunk may extend beyond the end of the address space.
        let bytes = critical.count() as u128 * u128::from(self.chunks.chunk.0);
        Bytes(u64::try_from(bytes - u128::from(lacking)).unwrap_or(u64::MAX))
    }

    /// Passes each critical chunk to `add`.
    pub(super) fn candidates(&self, first: usize, mut add: impl FnMut(Candidate)) {
        for (index, priority) in self.chunks.priorities().enumerate() {
            if self.categories[index] != Category::Cold {
                let bytes = self.chunks.bytes_between(index, index + 1);
                add(Candidate::new(priority, bytes, first + index));
            }
        }
    }

    /// Appends each run of critical chunks that are kept as one range.
    pub(super) fn add_runs(&self, is_kept: impl Fn(usize) -> bool, ranges: &mut Vec<FastRange>) {
        let is_critical = |category: &Category| *category != Category::Cold;
        let runs = self
            .categories
            .chunk_by(|a, b| is_critical(a) == is_critical(b));
        let mut end = 0;
        for run in runs {
            let all = end..end + run.len();
            end = all.end;
            if is_critical(&run[0]) {
                self.add_kept(all, &is_kept, ranges);
            }
        }
    }

    /// Appends the kept stretches of one run.
    fn add_kept(
        &self,
        run: Range<usize>,
        is_kept: impl Fn(usize) -> bool,
        ranges: &mut Vec<FastRange>,
    ) {
        let of = self.chunks.bytes_between(run.start, run.end);
        let mut next = run.start;
        while let Some(start) = (next..run.end).find(|&chunk| is_kept(chunk)) {
            let end = (start..run.end).find(|&chunk| !is_kept(chunk));
            next = end.unwrap_or(run.end);
            let fit = match (start..next) == run {
                true => Fit::Whole,
                false => Fit::Cut { of },
            };
            ranges.push(self.range(start..next, fit));
        }
    }
}
