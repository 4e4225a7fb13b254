//! [`FaultHandler`] is the state of the service thread, which serves the page faults of the emulation: the pages of one pool with their
//! tiers, and the accesses that wait. The functions here serve requests of program threads (before a fork, for discarded data), count the
//! bytes of each tier, and bring pages home: back to the address that the program uses.
//!
//! Faults, periods and migrations are in files of their own. One thread, no locks: other threads only store labels and
//! call the service thread. Everything is done in small steps, between which faults are served.

use core::ops::Range;

use isotherm_abi::config::{EmulationConfig, PageTrapConfig};
use isotherm_abi::session::SessionCounter;

use super::account::Account;
use super::due::DueQueue;
use super::migration::Migration;
use super::moves::{BATCH_PAGES, Mover, Rescue};
use super::page::{PageState, PageWord};
use super::pool_range;
use super::progress::{FaultCosts, Progress};
use super::sample::Sample;
use super::service_channel::{ServiceCommand, ServiceRequest};
use super::sparse::PageList;
use super::table::{PAGE_BYTES, Table};
use crate::published_tiers::Side;

const CHUNK_BYTES: usize = isotherm_abi::CHUNK_BYTES as usize;

/// The pages of one pool.
pub(crate) struct FaultHandler {
    pub(crate) table: &'static Table,
    pub(crate) pool: Range<usize>,
    pub(crate) emulation: EmulationConfig,
    pub(crate) trapping: PageTrapConfig,
    pub(crate) capacity_bytes: u64,
    pub(crate) account: Account,
    /// `None` until the service thread has opened its userfaultfd, and where none is needed.
    pub(crate) mover: Option<Mover>,
    /// Accesses that wait.
    pub(crate) due: DueQueue,
    /// Slow pages that were moved home in this period.
    pub(crate) returned: PageList,
    /// Slow pages that are being taken away now, from `leaving_done` on.
    pub(crate) leaving: PageList,
    pub(crate) leaving_done: usize,
    /// Slow pages that the kernel refused to move.
    pub(crate) stuck: PageList,
    pub(crate) period: u64,
    /// The clock that periods are counted by.
    pub(crate) progress: Progress,
    pub(crate) costs: &'static FaultCosts,
    pub(crate) sample: Sample,
    pub(crate) migration: Migration,
    /// While not 0, pages stay at home: a fork is in progress.
    pub(crate) held: u32,
    pub(crate) fast_bytes: u64,
    pub(crate) slow_bytes: u64,
}

impl FaultHandler {
    /// Whether the slow tier is slowed.
    pub(crate) fn emulates(&self) -> bool {
        self.emulation.period_ns > 0
    }

    /// Changes a page's state and the bytes in use of both tiers with it.
    pub(crate) fn become_state(&mut self, page: u32, state: PageState) {
        let word = self.table.word(page);
        self.count(word.state().side(), state.side());
        self.table.set_word(page, word.with(state));
    }

    /// As [`Self::become_state`], and marks the page as touched in this period.
    pub(crate) fn become_touched(&mut self, page: u32, state: PageState) {
        self.count(self.table.state(page).side(), state.side());
        self.table.set_word(page, PageWord::new(state, self.period));
    }

    fn count(&mut self, before: Option<Side>, after: Option<Side>) {
        if before == after {
            return;
        }
        let bytes = PAGE_BYTES as u64;
        match before {
            Some(Side::Fast) => self.fast_bytes -= bytes,
            Some(Side::Slow) => self.slow_bytes -= bytes,
            None => {}
        }
        match after {
            Some(Side::Fast) => self.fast_bytes += bytes,
            Some(Side::Slow) => self.slow_bytes += bytes,
            None => {}
        }
    }

    /// Publishes the bytes in use.
    pub(crate) fn publish(&self) {
        self.account.set(SessionCounter::FastBytes, self.fast_bytes);
        self.account.set(SessionCounter::SlowBytes, self.slow_bytes);
    }

    /// Whether this many more pages fit into the fast tier.
    pub(crate) fn has_fast_room(&self, pages: usize) -> bool {
        self.fast_bytes + (pages * PAGE_BYTES) as u64 <= self.capacity_bytes
    }

    /// Serves a request of a program thread.
    pub(crate) fn serve(&mut self, request: &ServiceRequest) {
        match request.command {
            ServiceCommand::Forget => self.forget(&request.range),
            ServiceCommand::Settle => self.settle(&request.range),
            ServiceCommand::Hold => {
                self.held += 1;
                self.bring_all_home();
            }
            ServiceCommand::Release => self.held = self.held.saturating_sub(1),
            ServiceCommand::Register => self.register(&request.range),
        }
        self.publish();
    }

    /// Registers a range with userfaultfd again. Where the kernel refuses, faults on its pages are not observed.
    fn register(&self, range: &Range<usize>) {
        if let Some(mover) = &self.mover {
            // SAFETY: the range is in the pool, which the service thread never touches.
            let _ = unsafe { mover.uffd().register(range) };
        }
    }

    /// Pages of an address range, cut to the pool; partly covered pages included.
    fn pages_in(&self, range: &Range<usize>) -> Range<u32> {
        let pages = pool_range::touched(&self.pool, range, PAGE_BYTES);
        pages.start as u32..pages.end as u32
    }

    /// The pages of a range, chunk by chunk, without the chunks that hold nothing.
    fn touched_parts(&self, range: &Range<usize>) -> impl Iterator<Item = Range<u32>> + use<> {
        let pages = self.pages_in(range);
        let table = self.table;
        pool_range::touched(&self.pool, range, CHUNK_BYTES)
            .filter(move |&chunk| table.chunk(chunk).touched() > 0)
            .map(move |chunk| {
                let whole = Table::pages_of(chunk);
                whole.start.max(pages.start)..whole.end.min(pages.end)
            })
    }

    fn forget(&mut self, range: &Range<usize>) {
        for part in self.touched_parts(range) {
            // All of the shadow, not only pages known to be there: later content of the page must not meet any
            // of this content.
            if let Some(mover) = &self.mover {
                mover.drop_shadow(part.start, part.len());
            }
            for page in part {
                self.forget_page(page);
            }
        }
    }

    fn forget_page(&mut self, page: u32) {
        let state = self.table.state(page);
        self.become_state(page, PageState::Untouched);
        let has_waiters = matches!(
            state,
            PageState::Waiting
                | PageState::FirstWaiting
                | PageState::ToFast
                | PageState::ToSlowWaited
        );
        if has_waiters && let Some(mover) = &self.mover {
            mover.wake(page);
        }
    }

    fn settle(&mut self, range: &Range<usize>) {
        for chunk in pool_range::touched(&self.pool, range, CHUNK_BYTES) {
            self.table.chunk(chunk).set_settled(true);
            if self.table.chunk(chunk).touched() > 0 {
                self.bring_home(Table::pages_of(chunk));
            }
        }
    }

    /// Brings every page home.
    pub(crate) fn bring_all_home(&mut self) {
        let table = self.table;
        for chunk in table.used() {
            let chunk = chunk.load(core::sync::atomic::Ordering::Relaxed) as usize;
            self.bring_home(Table::pages_of(chunk));
        }
    }

    /// Brings the pages of a range home, in runs.
    fn bring_home(&mut self, pages: Range<u32>) {
        let mut page = pages.start;
        while page < pages.end {
            let run = self.shadow_run(page, pages.end).min(BATCH_PAGES);
            if run == 0 {
                page += 1;
                continue;
            }
            let Some(mover) = &self.mover else { return };
            let moved = mover.home_again(page, run).pages;
            for page in page..page + moved as u32 {
                self.came_home(page);
            }
            page += moved as u32;
            if moved < run {
                self.rescue(page);
                page += 1;
            }
        }
    }

    /// Pages from `page` on whose content is in the shadow.
    fn shadow_run(&self, page: u32, end: u32) -> usize {
        (page..end)
            .take_while(|&page| self.table.state(page).in_shadow())
            .count()
    }

    /// The page's content is at home again for another reason than an access.
    pub(crate) fn came_home(&mut self, page: u32) {
        let before = self.table.state(page);
        let state = before.at_home();
        self.become_state(page, state);
        // A page of the sample that is slow was listed when it last paid its delay.
        if state == PageState::Slow && before != PageState::SlowSampled {
            self.returned.push(page);
        }
    }

    /// Brings one page home by every available means.
    pub(crate) fn rescue(&mut self, page: u32) -> Rescue {
        let Some(mover) = &self.mover else {
            return Rescue::Gone;
        };
        let rescue = mover.rescue(page);
        match rescue {
            Rescue::Home => self.came_home(page),
            Rescue::Gone => self.become_state(page, PageState::Untouched),
            Rescue::Later => {}
        }
        rescue
    }

    /// Rebuilds the counts and lists in a forked child, from the page words alone. No thread waits: the other threads
    /// are gone.
    pub(crate) fn start_over(&mut self, account: Account) {
        self.account = account;
        self.mover = None;
        self.due.clear();
        self.returned.clear();
        self.leaving.clear();
        self.leaving_done = 0;
        self.stuck.clear();
        self.sample.clear();
        self.migration = Migration::default();
        self.held = 0;
        self.progress = Progress::default();
        self.period = 0;
        (self.fast_bytes, self.slow_bytes) = (0, 0);
        self.table.rebuild();
        for index in 0..self.table.high() {
            if self.table.chunk(index).touched() > 0 {
                for page in Table::pages_of(index) {
                    self.start_page_over(page);
                }
            }
        }
        self.publish();
    }

    fn start_page_over(&mut self, page: u32) {
        let state = self.table.state(page).without_company();
        self.table.set_state(page, state);
        self.table.publish(page);
        self.count(None, state.side());
        if state == PageState::Slow {
            self.returned.push(page);
        }
    }
}
