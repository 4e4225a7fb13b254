//! Chooses the pages that are sampled by page faults: [`FaultHandler::resample`], which the service thread calls, ends the present choice
//! once its time is over, and traps another random choice of touched pages of the pool, so that the next access to each of them faults.
//!
//! The choice is uniform over the touched pages, whatever their tier, so the share of a site's pages that are caught says how much of the
//! site is in use. Where pages of the slow tier are trapped anyway, only those of the choice are recorded: otherwise the slow tier would
//! look busier than the fast one merely because it is watched more.

use core::sync::atomic::Ordering;

use super::fault_handler::FaultHandler;
use super::page::PageState;
use super::runs::CHUNK_PAGES;
use super::sample::MOST_PAGES;

/// Random places looked at for each page wanted. With a tenth of a chunk's pages touched, 32
/// looks find one with 97 % probability.
const LOOKS_PER_PAGE: usize = 32;

impl FaultHandler {
    /// When the next choice is due; `None` while sampling is off.
    pub(crate) fn next_sample_ns(&self) -> Option<u64> {
        let on = self.trapping.pages > 0 && self.trapping.period_ns > 0 && self.held == 0;
        on.then_some(self.sample.until_ns)
    }

    /// Ends the present choice and makes another if it is time.
    pub(crate) fn resample(&mut self, now_ns: u64) {
        if self.next_sample_ns().is_none_or(|due_ns| now_ns < due_ns) {
            return;
        }
        self.end_sample();
        let wanted = (self.trapping.pages as usize).min(MOST_PAGES);
        for _ in 0..wanted * LOOKS_PER_PAGE {
            if self.sample.count == wanted {
                break;
            }
            self.sample_one();
        }
        self.sample.until_ns = now_ns + self.trapping.period_ns;
    }

    fn end_sample(&mut self) {
        for index in 0..self.sample.count {
            let page = self.sample.pages[index];
            match self.table.state(page) {
                PageState::FastSampled | PageState::SlowSampled => {
                    self.rescue(page);
                }
                PageState::AwaySampled => self.become_state(page, PageState::Away),
                _ => {}
            }
        }
        self.sample.count = 0;
    }

    /// Looks at one random page and traps it if it can be.
    fn sample_one(&mut self) {
        let used = self.table.used().len() as u32;
        if used == 0 {
            return;
        }
        let place = self.sample.below(used);
        let chunk = self.table.used()[place as usize].load(Ordering::Relaxed);
        let page = chunk * CHUNK_PAGES + self.sample.below(CHUNK_PAGES);
        if self.table.chunk(chunk as usize).is_settled() {
            return;
        }
        let sampled = match self.table.state(page) {
            PageState::Fast => PageState::FastSampled,
            PageState::Slow => PageState::SlowSampled,
            PageState::Away => PageState::AwaySampled,
            _ => return,
        };
        if sampled != PageState::AwaySampled {
            let Some(mover) = &self.mover else { return };
            if mover.away(page, 1).error.is_some() {
                return;
            }
        }
        self.become_state(page, sampled);
        self.sample.pages[self.sample.count] = page;
        self.sample.count += 1;
    }
}
