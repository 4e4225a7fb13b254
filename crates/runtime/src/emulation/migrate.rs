//! Moves pages between the emulated tiers, as the observer, the Isotherm process outside, requests: the service thread takes small batches
//! away, so that accesses wait, for as long as their migration costs; pages for the fast tier then come back. A request for an arena or
//! a mapping also sets the tier of its pages that are first touched later.
//!
//! An access waits for the end of its batch (`migrate_ns` for each page), like an access to a page that a kernel is migrating. On real
//! nodes the observer moves pages from outside.

use core::ops::Range;

use isotherm_abi::config::TierRecord;
use isotherm_abi::session::SessionCounter;

use super::fault_handler::FaultHandler;
use super::migration::{BATCH, Job};
use super::page::PageState;
use super::placement_requests::Subject;
use super::pool_range;
use super::runs::CHUNK_PAGES;
use super::table::{PAGE_BYTES, Table};
use crate::published_tiers::Side;
use crate::tables::SessionTables;

/// Chunks looked at in one step, after which faults are served.
const CHUNKS_PER_STEP: usize = 4;

const CHUNK_BYTES: usize = isotherm_abi::CHUNK_BYTES as usize;

impl FaultHandler {
    /// Starts the next request, if none is in progress.
    pub(crate) fn start_next_request(&mut self, requests: &SessionTables, tiers: &[TierRecord]) {
        if self.migration.is_busy() || self.held > 0 {
            return;
        }
        let Some(request) = requests.first_request(tiers.len() as u32) else {
            return;
        };
        requests.accept(&request);
        let of_chunks = |chunks: Range<usize>| Job {
            request,
            page: Table::pages_of(chunks.start).start,
            end: u32::MAX,
            chunks,
        };
        self.migration.job = match request.subject {
            Subject::Arena(_) => Some(of_chunks(0..requests.owners.len())),
            Subject::Mapping(index) => match requests.mapping_range(index) {
                Some(range) => {
                    let chunks = pool_range::touched(&self.pool, &range, CHUNK_BYTES);
                    Some(of_chunks(chunks))
                }
                None => return,
            },
            Subject::Pages(start, count) => {
                let end = start.saturating_add(count.saturating_mul(PAGE_BYTES));
                let pages = pool_range::touched(&self.pool, &(start..end), PAGE_BYTES);
                let in_chunk = CHUNK_PAGES as usize;
                Some(Job {
                    page: pages.start as u32,
                    end: pages.end as u32,
                    ..of_chunks(pages.start / in_chunk..pages.end.div_ceil(in_chunk))
                })
            }
        };
    }

    /// Advances the migration by one step, if its time has come.
    pub(crate) fn migrate_step(
        &mut self,
        requests: &SessionTables,
        tiers: &[TierRecord],
        now_ns: u64,
    ) {
        if self.migration.batch_count > 0 {
            if now_ns < self.migration.batch_until_ns {
                return;
            }
            self.finish_batch();
        }
        if self.held > 0 {
            return;
        }
        let Some(mut job) = self.migration.job.take() else {
            return;
        };
        let side = Side::of_tier(tiers, job.request.tier);
        let mut looked = 0;
        while looked < CHUNKS_PER_STEP && self.migration.batch_count == 0 {
            let Some(chunk) = self.next_chunk(&mut job, requests) else {
                return;
            };
            looked += 1;
            self.gather(chunk, &mut job, side);
        }
        let cost_ns = self.emulation.migrate_ns * self.migration.batch_count as u64;
        self.migration.batch_until_ns = now_ns + cost_ns;
        self.migration.job = Some(job);
    }

    /// The next chunk of the job's subject; `None` at the end.
    fn next_chunk(&self, job: &mut Job, requests: &SessionTables) -> Option<usize> {
        let end = job.chunks.end.min(self.table.high());
        while job.chunks.start < end {
            let chunk = job.chunks.start;
            let ours = match job.request.subject {
                Subject::Arena(arena) => requests.owns(arena, chunk),
                Subject::Mapping(_) | Subject::Pages(..) => true,
            };
            if ours {
                return Some(chunk);
            }
            job.chunks.start += 1;
        }
        None
    }

    /// Collects a batch of pages from a chunk and takes them to the shadow.
    fn gather(&mut self, chunk: usize, job: &mut Job, side: Side) {
        // A request for pages is about data that exists, and leaves first touches as they were.
        if !matches!(job.request.subject, Subject::Pages(..)) {
            self.table.chunk(chunk).set_label(Some(side));
        }
        let pages = Table::pages_of(chunk);
        let first = job.page.clamp(pages.start, pages.end);
        for page in first..pages.end.min(job.end) {
            if self.migration.batch_count == BATCH {
                job.page = page;
                return;
            }
            match side {
                Side::Fast => self.promote(page),
                Side::Slow => self.demote(page),
            }
        }
        job.chunks.start += 1;
        job.page = pages.end;
    }

    fn promote(&mut self, page: u32) {
        let state = self.table.state(page);
        // A page with a waiting thread stays where it is; that costs one page.
        let can = state.side() == Some(Side::Slow)
            && !matches!(
                state,
                PageState::Waiting | PageState::ToSlow | PageState::ToSlowWaited
            );
        if !can || !self.has_fast_room(1) {
            return;
        }
        self.account.add(SessionCounter::PagesPromoted, 1);
        if state.in_shadow() || self.take_one(page) {
            self.become_state(page, PageState::ToFast);
            self.batch(page);
        } else {
            self.become_state(page, PageState::Fast);
        }
    }

    fn demote(&mut self, page: u32) {
        let state = self.table.state(page);
        if !matches!(state, PageState::Fast | PageState::FastSampled) {
            return;
        }
        self.account.add(SessionCounter::PagesDemoted, 1);
        if state.in_shadow() || self.take_one(page) {
            self.become_state(page, PageState::ToSlow);
            self.batch(page);
        } else {
            self.account.add(SessionCounter::Unslowed, 1);
            self.become_state(page, PageState::Stuck);
            self.stuck.push(page);
        }
    }

    fn take_one(&self, page: u32) -> bool {
        let settled = self.table.chunk_of(page).is_settled();
        let mover = self.mover.as_ref().filter(|_| !settled);
        mover.is_some_and(|mover| mover.away(page, 1).error.is_none())
    }

    fn batch(&mut self, page: u32) {
        self.migration.batch[self.migration.batch_count] = page;
        self.migration.batch_count += 1;
    }

    fn finish_batch(&mut self) {
        for index in 0..self.migration.batch_count {
            let page = self.migration.batch[index];
            match self.table.state(page) {
                PageState::ToFast | PageState::ToSlowWaited => {
                    self.rescue(page);
                }
                PageState::ToSlow => self.become_state(page, PageState::Away),
                // Discarded or held since.
                _ => {}
            }
        }
        self.migration.batch_count = 0;
    }
}
