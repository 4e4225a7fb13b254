//! Uniform: accesses all lines with equal probability, as GUPS does. Any pattern that a policy learns from such a trace is chance.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, Place, somewhere_in};

pub(super) struct Uniform {
    pages: u64,
}

impl Uniform {
    pub(super) const fn new(settings: &GeneratorSettings) -> Self {
        Self {
            pages: settings.pages(),
        }
    }
}

impl Pattern for Uniform {
    fn place(&mut self, _: u64, random: &mut Pcg32) -> Place {
        let page = random.below(self.pages);
        somewhere_in(page, random)
    }
}
