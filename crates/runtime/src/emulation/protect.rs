//! [`FaultHandler::advance_period`] ends a period of the emulation: it hands the slow pages accessed in it to
//! [`FaultHandler::leave_step`], which moves them, a few runs at a time, to their shadow, where the program cannot reach them, so that
//! their next accesses fault again (TMP, section VI). Pages that the kernel refuses to move, or that must stay for the time being, are
//! listed again for a later period.

use isotherm_abi::session::SessionCounter;
use rustix::io::Errno;

use super::fault_handler::FaultHandler;
use super::moves::BATCH_PAGES;
use super::page::PageState;
use super::runs::run_length;

/// Pages sorted at a time, so that runs are found without a sort that would hold up faults: 8,192
/// numbers take some 0.1 ms.
const SORT_PAGES: usize = 8192;

/// Runs taken away in one step, after which faults are served.
const RUNS_PER_STEP: usize = 8;

/// A stuck page is tried again after this many periods: it is usually stuck because a child shares
/// it, which lasts until one of the two writes.
const STUCK_PERIODS: u64 = 16;

impl FaultHandler {
    /// Begins a new period if it is time: the slow pages that came home in the last one are taken away.
    pub(crate) fn advance_period(&mut self, now_ns: u64) {
        if !self.emulates() || !self.progress.is_due(now_ns) {
            return;
        }
        let done_ns = self.progress.read(self.costs.processor_ns());
        let period = done_ns / self.emulation.period_ns;
        let left_ns = (period + 1) * self.emulation.period_ns - done_ns;
        self.progress.look_again(now_ns, left_ns);
        if period == self.period {
            return;
        }
        self.period = period;
        if self.held > 0 || self.is_leaving() {
            return;
        }
        if period.is_multiple_of(STUCK_PERIODS) {
            self.retry_stuck();
        }
        core::mem::swap(&mut self.returned, &mut self.leaving);
        self.returned.clear();
        self.leaving_done = 0;
    }

    /// Whether a period's pages are still being taken away.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving_done < self.leaving.len()
    }

    /// When to check whether a new period has begun; `None` while no page waits for it.
    pub(crate) fn next_period_ns(&self) -> Option<u64> {
        let waits = !self.returned.is_empty() || !self.stuck.is_empty();
        (self.emulates() && waits && self.held == 0).then(|| self.progress.next_look_ns())
    }

    fn retry_stuck(&mut self) {
        for index in 0..self.stuck.len() {
            let page = self.stuck.pages()[index];
            self.returned.push(page);
        }
        self.stuck.clear();
    }

    /// Takes the pages of the next few runs away.
    pub(crate) fn leave_step(&mut self) {
        if self.held > 0 {
            self.postpone_leaving();
            return;
        }
        for _ in 0..RUNS_PER_STEP {
            if !self.is_leaving() {
                self.leaving.clear();
                self.leaving_done = 0;
                return;
            }
            let done = self.leaving_done;
            if done.is_multiple_of(SORT_PAGES) {
                let end = self.leaving.len().min(done + SORT_PAGES);
                self.leaving.pages()[done..end].sort_unstable();
            }
            // A run must not reach into the block that is not sorted yet.
            let end = self.leaving.len().min((done / SORT_PAGES + 1) * SORT_PAGES);
            let run = run_length(&self.leaving.pages()[done..end], BATCH_PAGES);
            let first = self.leaving.pages()[done];
            self.leaving_done += self.take_away(first, run);
        }
    }

    /// Puts pages that were to be taken away back among those of the next period.
    fn postpone_leaving(&mut self) {
        for index in self.leaving_done..self.leaving.len() {
            let page = self.leaving.pages()[index];
            self.returned.push(page);
        }
        self.leaving.clear();
        self.leaving_done = 0;
    }

    /// Takes the leading pages of a run away and returns how many it has handled, at least 1.
    fn take_away(&mut self, first: u32, run: usize) -> usize {
        let end = first + run as u32;
        let movable = (first..end)
            .take_while(|&page| self.may_leave(page))
            .count();
        if movable == 0 {
            self.leave_one(first);
            return 1;
        }
        let Some(mover) = &self.mover else {
            return run;
        };
        let moved = mover.away(first, movable);
        for page in first..first + moved.pages as u32 {
            self.become_state(page, PageState::Away);
        }
        match moved.error {
            None => moved.pages,
            Some(error) => {
                self.could_not_leave(first + moved.pages as u32, error);
                moved.pages + 1
            }
        }
    }

    fn may_leave(&self, page: u32) -> bool {
        matches!(self.table.state(page), PageState::Slow | PageState::Stuck)
            && !self.table.chunk_of(page).is_settled()
    }

    /// Handles a listed page that cannot or need not be taken away.
    fn leave_one(&mut self, page: u32) {
        match self.table.state(page) {
            PageState::SlowSampled => self.become_state(page, PageState::AwaySampled),
            // In a settled chunk: listed again like a page that the kernel refuses to move.
            PageState::Slow | PageState::Stuck => self.give_up_for_now(page),
            _ => {}
        }
    }

    /// Handles the page at which the kernel stopped.
    ///
    /// The kernel's report is not final: Linux 6.18 was observed to report `EEXIST` for a page that the same
    /// call had moved, while the program broke the sharing of that page after a fork. So before any content is
    /// discarded, the page is moved home; the content of the shadow is a leftover only where home has content too.
    fn could_not_leave(&mut self, page: u32, error: Errno) {
        if matches!(error, Errno::EXIST | Errno::NOENT) {
            self.find(page);
            return;
        }
        self.give_up_for_now(page);
    }

    /// Leaves a page at home and lists it to be tried again.
    fn give_up_for_now(&mut self, page: u32) {
        if self.table.state(page) != PageState::Stuck {
            self.account.add(SessionCounter::Unslowed, 1);
            self.become_state(page, PageState::Stuck);
        }
        self.stuck.push(page);
    }

    /// Finds the content of a page that should be at home.
    fn find(&mut self, page: u32) {
        let Some(mover) = &self.mover else { return };
        match mover.home_again(page, 1).error {
            None => self.returned.push(page),
            Some(Errno::EXIST) => {
                mover.drop_shadow(page, 1);
                self.returned.push(page);
            }
            // It is nowhere: the kernel dropped it on the program's request. The next access is a first touch.
            Some(Errno::NOENT) => self.become_state(page, PageState::Untouched),
            Some(_) => self.stuck.push(page),
        }
    }
}
