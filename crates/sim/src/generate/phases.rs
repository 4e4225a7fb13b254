//! Phases: alternates between two kinds of phases, as the steps of a simulation do, twice each and for about the same time. Each kind has
//! its own hot sixteenth of the pages, scattered, with nine of ten accesses. The others go to random pages.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, shuffled, somewhere_in};

const PHASES: u64 = 4;

pub(super) fn phases(settings: &GeneratorSettings, random: &mut Pcg32) -> Pattern {
    let pages = shuffled(settings.pages(), random);
    let length = settings.accesses / PHASES;
    // The access at which each phase except the first begins. A phase begins up to an eighth of its length late, so that phases and epochs
    // are not synchronised.
    let turns: Vec<u64> = (1..PHASES)
        .map(|phase| phase * length + random.below(length / 8))
        .collect();
    Box::new(move |at, random| {
        let phase = turns.partition_point(|&turn| turn <= at);
        let (kind, hot) = (phase % 2, pages.len() / 16);
        let of = if random.below(10) > 0 {
            &pages[kind * hot..][..hot]
        } else {
            &pages
        };
        let page = of[random.below(of.len() as u64) as usize];
        somewhere_in(page, random)
    })
}
