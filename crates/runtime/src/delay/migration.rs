//! Obeys the observer's requests to move arenas and mappings between the tiers, a few chunks at each sample.
//!
//! No content moves: the pages change their tier in the table. The thread that does a step pays the cost of its pages.

use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use isotherm_abi::config::{TierRecord, TierRecordKind};
use isotherm_abi::session::SessionCounter;

use super::page_tiers::{CHUNK_PAGES, PageTiers, Side};
use crate::emulation::{Account, PlacementRequest, RequestTables, Subject};

/// Chunks of one step.
const CHUNKS_PER_STEP: usize = 4;

/// A request under way.
struct Job {
    request: PlacementRequest,
    chunks: Range<usize>,
}

/// The requests of one pool.
pub(crate) struct Migration {
    tables: RequestTables,
    /// Set while a thread takes a step.
    busy: AtomicBool,
    job: UnsafeCell<Option<Job>>,
}

// SAFETY: `job` is touched only by the thread that set `busy`.
unsafe impl Sync for Migration {}

impl Migration {
    pub(crate) const fn new(tables: RequestTables) -> Self {
        Self {
            tables,
            busy: AtomicBool::new(false),
            job: UnsafeCell::new(None),
        }
    }

    /// Takes a step, unless another thread does. Returns the number of pages that moved.
    pub(crate) fn step(&self, pages: &PageTiers, tiers: &[TierRecord], account: &Account) -> u64 {
        if self.busy.swap(true, Ordering::Acquire) {
            return 0;
        }
        // SAFETY: this thread set `busy`.
        let job = unsafe { &mut *self.job.get() };
        if job.is_none() {
            *job = self.next_job(pages, tiers);
        }
        let moved = job
            .as_mut()
            .map_or(0, |job| self.advance(job, pages, tiers, account));
        if job.as_ref().is_some_and(|job| job.chunks.is_empty()) {
            *job = None;
        }
        self.busy.store(false, Ordering::Release);
        moved
    }

    fn next_job(&self, pages: &PageTiers, tiers: &[TierRecord]) -> Option<Job> {
        let request = self.tables.first(tiers.len() as u32)?;
        self.tables.accept(&request);
        let chunks = match request.subject {
            Subject::Arena(_) => 0..pages.used_chunks(),
            Subject::Mapping(index) => {
                let range = self.tables.mapping(index)?;
                pages.chunks(range.start, range.len())
            }
        };
        Some(Job { request, chunks })
    }

    /// Moves the pages of the job's next chunks.
    fn advance(
        &self,
        job: &mut Job,
        pages: &PageTiers,
        tiers: &[TierRecord],
        account: &Account,
    ) -> u64 {
        let fast = tiers[job.request.tier as usize].kind == TierRecordKind::EmulatedFast as u32;
        let (side, counter) = match fast {
            true => (Side::Fast, SessionCounter::PagesPromoted),
            false => (Side::Slow, SessionCounter::PagesDemoted),
        };
        let mut moved = 0;
        let mut left = CHUNKS_PER_STEP;
        while left > 0 && !job.chunks.is_empty() {
            let chunk = job.chunks.start;
            job.chunks.start += 1;
            let is_subject = match job.request.subject {
                Subject::Arena(arena) => self.tables.owns(arena, chunk),
                Subject::Mapping(_) => true,
            };
            if !is_subject || pages.wanted(chunk).is_none() {
                continue;
            }
            left -= 1;
            pages.want_chunk(chunk, side);
            let all = chunk * CHUNK_PAGES..(chunk + 1) * CHUNK_PAGES;
            moved += all.filter(|page| pages.migrate(*page, side)).count() as u64;
        }
        account.add(counter, moved);
        moved
    }
}
