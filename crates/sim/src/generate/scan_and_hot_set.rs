//! Scan and hot set: sends every other access to a random line of the first sixteenth of the pages, and lets the accesses between them scan
//! the rest line by line, repeatedly. The scanned pages are as hot as any for a moment, and then cold for long.

use super::pcg::Pcg32;
use super::{GeneratorSettings, LINE, PAGE, Pattern, Place, somewhere_in};

pub(super) fn scan_and_hot_set(settings: &GeneratorSettings, _: &mut Pcg32) -> Pattern {
    let pages = settings.pages();
    let hot = pages / 16;
    Box::new(move |at, random| {
        if at.is_multiple_of(2) {
            let page = random.below(hot);
            return somewhere_in(page, random);
        }
        let line = at / 2 % ((pages - hot) * (PAGE / LINE));
        Place {
            offset: hot * PAGE + line * LINE,
            write: false,
        }
    })
}
