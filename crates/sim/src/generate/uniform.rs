//! Uniform: accesses all lines with equal probability, as GUPS does. Any pattern that a policy learns from such a trace is chance.

use super::pcg::Pcg32;
use super::{GeneratorSettings, Pattern, somewhere_in};

pub(super) fn uniform(settings: &GeneratorSettings, _: &mut Pcg32) -> Pattern {
    let pages = settings.pages();
    Box::new(move |_, random| {
        let page = random.below(pages);
        somewhere_in(page, random)
    })
}
