//! Scan and hot set: sends every other access to a random line of the first sixteenth of the pages, and lets the accesses between them scan
//! the rest line by line, repeatedly. The scanned pages are as hot as any for a moment, and then cold for long.

use super::pcg::Pcg32;
use super::{GeneratorSettings, LINE, PAGE, Pattern, Place, somewhere_in};

pub(super) struct ScanAndHotSet {
    pages: u64,
}

impl ScanAndHotSet {
    pub(super) const fn new(settings: &GeneratorSettings) -> Self {
        Self {
            pages: settings.pages(),
        }
    }
}

impl Pattern for ScanAndHotSet {
    fn place(&mut self, at: u64, random: &mut Pcg32) -> Place {
        let hot = self.pages / 16;
        if at.is_multiple_of(2) {
            let page = random.below(hot);
            return somewhere_in(page, random);
        }
        let line = at / 2 % ((self.pages - hot) * (PAGE / LINE));
        Place {
            offset: hot * PAGE + line * LINE,
            write: false,
        }
    }
}
