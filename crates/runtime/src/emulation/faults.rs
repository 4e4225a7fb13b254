//! Serves the faults that the service thread reads from userfaultfd: makes the pages of a first touch, lets an access to a slow page wait
//! for its delay, records one to a sampled page, and brings the page back when the access may continue.

use isotherm_abi::session::SessionCounter;
use rustix::io::Errno;

use super::due::Waiting;
use super::fault_handler::FaultHandler;
use super::moves::Rescue;
use super::page::PageState;
use super::runs::{CHUNK_PAGES, populate_length};
use super::table::{PAGE_BYTES, Table};
use crate::published_tiers::Side;

/// Most pages made at one first touch. 32 pages (128 KiB) bring the cost of a fault that another thread serves
/// down to that of a kernel fault; more would only delay other faults.
const POPULATE_PAGES: usize = 32;

/// Wait before the next request for memory that the kernel did not have.
const RETRY_NS: u64 = 1_000_000;

impl FaultHandler {
    /// Serves a fault on a page, which was read at `read_ns`: a thread waits for the page.
    ///
    /// The access is assumed to have begun one round trip earlier, so that the whole of it takes as long as the
    /// settings state.
    pub(crate) fn fault(&mut self, page: u32, read_ns: u64) {
        if page as usize >= self.table.pages() {
            return;
        }
        self.progress.count_fault(read_ns);
        let now_ns = read_ns.saturating_sub(self.costs.round_trip_ns());
        match self.table.state(page) {
            PageState::Untouched => self.first_touch(page, now_ns),
            PageState::Away => self.slow_access(page, now_ns),
            PageState::AwaySampled => {
                self.record_touch(page, now_ns);
                self.slow_access(page, now_ns);
            }
            PageState::FastSampled | PageState::SlowSampled => self.sampled_access(page, now_ns),
            PageState::ToSlow => self.become_state(page, PageState::ToSlowWaited),
            // These threads wait already, and all of them are woken together.
            PageState::Waiting
            | PageState::FirstWaiting
            | PageState::ToFast
            | PageState::ToSlowWaited => {}
            PageState::Fast | PageState::Slow | PageState::Stuck => self.refill(page),
        }
    }

    /// The page should be at home. Possible causes: the fault was resolved since it was reported; the page was
    /// taken away and the call reported a failure (see [`FaultHandler::leave_step`]), or at the moment of a
    /// fork; or the kernel dropped it on the program's request (`madvise`), and zeroes are right. Bringing it
    /// home covers all of them.
    fn refill(&mut self, page: u32) {
        self.rescue(page);
    }

    fn first_touch(&mut self, page: u32, now_ns: u64) {
        let fast = self.table.chunk_of(page).label() != Some(Side::Slow);
        if fast && self.has_fast_room(1) {
            self.first_touch_fast(page);
            return;
        }
        if fast {
            self.account.add(SessionCounter::Spilled, 1);
        }
        self.become_touched(page, PageState::FirstWaiting);
        self.wait(page, now_ns, self.emulation.access_ns);
    }

    fn first_touch_fast(&mut self, page: u32) {
        let Some(mover) = &self.mover else { return };
        let pages = self.populate_pages(page);
        let made = mover.make(page, pages);
        // A page that is there already was put there without a fault (`MAP_POPULATE`, `mlock`).
        let there = made.pages + usize::from(made.error == Some(Errno::EXIST));
        if made.error.is_some() {
            mover.wake(page);
        }
        for page in page..page + there as u32 {
            self.become_touched(page, PageState::Fast);
        }
        self.account.add(SessionCounter::FirstTouches, 1);
    }

    /// Number of pages to make at once: see [`populate_length`].
    fn populate_pages(&self, page: u32) -> usize {
        let chunk = Table::pages_of((page / CHUNK_PAGES) as usize);
        let table = self.table;
        let before = (chunk.start..page)
            .rev()
            .take(POPULATE_PAGES)
            .take_while(|&page| table.state(page) == PageState::Fast)
            .count();
        let free = (page..chunk.end)
            .take(POPULATE_PAGES)
            .take_while(|&page| table.state(page) == PageState::Untouched)
            .count();
        let room = (self.capacity_bytes - self.fast_bytes) / PAGE_BYTES as u64;
        let free = free.min(usize::try_from(room).unwrap_or(usize::MAX));
        populate_length(before, free, POPULATE_PAGES)
    }

    fn slow_access(&mut self, page: u32, now_ns: u64) {
        self.account.add(SessionCounter::SlowAccesses, 1);
        let mut delay_ns = self.emulation.access_ns;
        if self.table.word(page).touched_just_before(self.period) {
            self.account.add(SessionCounter::HotSlowAccesses, 1);
            delay_ns += self.emulation.hot_ns;
        }
        self.become_touched(page, PageState::Waiting);
        self.wait(page, now_ns, delay_ns);
    }

    fn sampled_access(&mut self, page: u32, now_ns: u64) {
        self.record_touch(page, now_ns);
        self.rescue(page);
    }

    fn record_touch(&self, page: u32, now_ns: u64) {
        let address = self.pool.start + page as usize * PAGE_BYTES;
        self.account.touch(address, now_ns);
    }

    /// Lets the access continue after `delay_ns`; at once where too many wait already.
    fn wait(&mut self, page: u32, now_ns: u64, delay_ns: u64) {
        let waiting = Waiting {
            due_ns: now_ns + delay_ns,
            seen_ns: now_ns,
            page,
        };
        if delay_ns == 0 || !self.due.push(waiting) {
            self.let_go(&waiting, now_ns);
        }
    }

    /// Lets every access continue whose time has come.
    pub(crate) fn let_due_go(&mut self, now_ns: u64) {
        while let Some(waiting) = self.due.pop(now_ns) {
            self.let_go(&waiting, now_ns);
        }
    }

    fn let_go(&mut self, waiting: &Waiting, now_ns: u64) {
        let page = waiting.page;
        let later = match self.table.state(page) {
            PageState::Waiting => self.rescue(page) == Rescue::Later,
            PageState::FirstWaiting => !self.make_slow(page),
            // Since then the page was discarded, or a hold brought it home; waiting threads were woken then.
            _ => return,
        };
        if later {
            let again = Waiting {
                due_ns: now_ns + RETRY_NS,
                ..*waiting
            };
            // The queue has room: the entry was just taken out, or the next fault tries again.
            self.due.push(again);
            return;
        }
        self.account.add(
            SessionCounter::DelayNanos,
            now_ns.saturating_sub(waiting.seen_ns),
        );
    }

    /// Makes the page of a first touch in the slow tier. `false` where there is no memory.
    fn make_slow(&mut self, page: u32) -> bool {
        let Some(mover) = &self.mover else {
            return true;
        };
        match mover.make(page, 1).error {
            None => {}
            Some(Errno::EXIST) => mover.wake(page),
            Some(Errno::NOENT | Errno::INVAL) => {
                mover.wake(page);
                self.become_state(page, PageState::Untouched);
                return true;
            }
            Some(_) => return false,
        }
        self.account.add(SessionCounter::FirstTouches, 1);
        self.become_touched(page, PageState::Slow);
        self.returned.push(page);
        true
    }
}
