//! Sliding window: accesses a sixteenth of the pages at random, and moves this window over all pages, from the first to the last, once in
//! the trace. Pages that have just become hot stay hot longest, which a policy that predicts (`payback`) can learn.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, somewhere_in};

pub(super) fn sliding_window(settings: &GeneratorSettings, _: &mut Pcg32) -> Pattern {
    let (pages, accesses) = (settings.pages(), settings.accesses.max(1));
    let window = pages / 16;
    let way = u128::from(pages - window + 1);
    Box::new(move |at, random| {
        // Below `way`, because `at` is below the number of accesses.
        let start = (u128::from(at) * way / u128::from(accesses)) as u64;
        somewhere_in(start + random.below(window), random)
    })
}
