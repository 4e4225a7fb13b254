//! Phases: alternates between two kinds of phases, as the steps of a simulation do, twice each and for about the same time. Each kind has
//! its own hot sixteenth of the pages, scattered, with nine of ten accesses. The others go to random pages.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, Place, shuffled, somewhere_in};

const PHASES: u64 = 4;

pub(super) struct Phases {
    pages: Vec<u64>,
    /// The access at which each phase except the first begins. A phase begins up to an eighth of
    /// its length late, so that phases and epochs are not synchronised.
    turns: Vec<u64>,
}

impl Phases {
    pub(super) fn new(settings: &GeneratorSettings, random: &mut Pcg32) -> Self {
        let length = settings.accesses / PHASES;
        Self {
            pages: shuffled(settings.pages(), random),
            turns: (1..PHASES)
                .map(|phase| phase * length + random.below(length / 8))
                .collect(),
        }
    }
}

impl Pattern for Phases {
    fn place(&mut self, at: u64, random: &mut Pcg32) -> Place {
        let phase = self.turns.partition_point(|&turn| turn <= at);
        let (kind, hot) = (phase % 2, self.pages.len() / 16);
        let of = if random.below(10) > 0 {
            &self.pages[kind * hot..][..hot]
        } else {
            &self.pages
        };
        let page = of[random.below(of.len() as u64) as usize];
        somewhere_in(page, random)
    }
}
