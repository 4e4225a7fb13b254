//! Protected-chunk sampling: a random choice of touched pages is trapped for a while; whoever
//! touches one is recorded.
//!
//! The choice is uniform over the touched pages of the pool, whatever their tier, so the share of
//! a site's pages that are caught says how much of the site is in use. Where pages of the slow
//! tier are trapped anyway, only those of the choice are recorded: otherwise the slow tier would
//! look busier than the fast one merely because it is watched more.

use core::sync::atomic::Ordering;

use super::fault_handler::FaultHandler;
use super::page::PageState;
use super::runs::CHUNK_PAGES;

/// Most pages trapped at a time. Beyond this the program pays more than the sample tells.
const MOST_PAGES: usize = 1024;

/// Random places looked at for each page wanted. With a tenth of a chunk's pages touched, 32
/// looks find one with 97 % probability.
const LOOKS_PER_PAGE: usize = 32;

/// The present choice.
pub(crate) struct Sample {
    pages: [u32; MOST_PAGES],
    count: usize,
    until_ns: u64,
    random: u64,
}

impl Sample {
    /// An empty choice. A seed of 0 is replaced, because the generator would stay there.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            pages: [0; MOST_PAGES],
            count: 0,
            until_ns: 0,
            random: if seed == 0 {
                0x9e37_79b9_7f4a_7c15
            } else {
                seed
            },
        }
    }

    /// Forgets the choice without touching the pages.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.until_ns = 0;
    }

    /// Xorshift64 (Marsaglia 2003).
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// A number below `bound`, which is small against 2^32, so that the bias is too.
    fn below(&mut self, bound: u32) -> u32 {
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

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

#[cfg(test)]
mod tests {
    use super::Sample;

    #[test]
    fn the_choice_is_uniform_and_repeats_with_its_seed() {
        let mut sample = Sample::new(42);
        let mut counts = [0_u32; 16];
        for _ in 0..16_000 {
            counts[sample.below(16) as usize] += 1;
        }
        assert!(
            counts.iter().all(|&count| (800..1200).contains(&count)),
            "seed 42: {counts:?}"
        );
        let (mut one, mut other) = (Sample::new(7), Sample::new(7));
        assert!((0..100).all(|_| one.below(1000) == other.below(1000)));
        assert_ne!(Sample::new(0).next(), 0);
    }
}
