//! Sliding window: accesses a sixteenth of the pages at random, and moves this window over all pages, from the first to the last, once in
//! the trace. Pages that have just become hot stay hot longest, which a policy that predicts (`payback`) can learn.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, Place, somewhere_in};

pub(super) struct SlidingWindow {
    pages: u64,
    accesses: u64,
}

impl SlidingWindow {
    pub(super) fn new(settings: &GeneratorSettings) -> Self {
        Self {
            pages: settings.pages(),
            accesses: settings.accesses.max(1),
        }
    }
}

impl Pattern for SlidingWindow {
    fn place(&mut self, at: u64, random: &mut Pcg32) -> Place {
        let window = self.pages / 16;
        let way = u128::from(self.pages - window + 1);
        // Below `way`, because `at` is below the number of accesses.
        let start = (u128::from(at) * way / u128::from(self.accesses)) as u64;
        somewhere_in(start + random.below(window), random)
    }
}
