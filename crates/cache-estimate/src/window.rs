//! [`Window`] keeps the addresses of the last samples in a ring and counts, in a hash table by page, the samples of the page and those that
//! are in the same cache line as the sample before them in the page. From these counts it is estimated how many pages there are of each
//! access rate, how many of their bytes are in use, and so which samples the caches served.
//!
//! ```text
//! lines    | oldest, overwritten next | ... | newest |        a ring of line numbers
//! slots    | line, count, pairs       | ...                   open addressing, twice the samples
//! ```
//!
//! Samples that leave the ring stay in the counts until [`Window::recount`].

/// Bytes of a cache line.
pub(crate) const LINE: u64 = 64;
/// Lines of a page.
pub(crate) const PAGE_LINES: u64 = 64;

/// The samples of one page.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Slot {
    /// The line of the newest sample, which names the page, too.
    line: u64,
    /// Number of samples; 0 where the slot is free.
    pub(crate) count: u16,
    pub(crate) pairs: Pairs,
}

/// Counts of pairs: a sample and the one before it in the same page.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Pairs {
    /// Pairs in one line.
    pub(crate) matches: u16,
    /// Pairs of which neither is in the first or last line of the page.
    pub(crate) inner: u16,
    /// Inner pairs in one line.
    pub(crate) inner_matches: u16,
}

impl Slot {
    const FREE: Self = Self {
        line: 0,
        count: 0,
        pairs: Pairs {
            matches: 0,
            inner: 0,
            inner_matches: 0,
        },
    };

    const fn is_of(&self, page: u64) -> bool {
        self.count == 0 || self.line / PAGE_LINES == page
    }

    /// Adds a sample.
    fn add(&mut self, line: u64) {
        let matches = u16::from(self.line == line);
        let inner = u16::from(is_inner(self.line) && is_inner(line));
        if self.count > 0 {
            self.pairs.matches += matches;
            self.pairs.inner += inner;
            self.pairs.inner_matches += matches * inner;
        }
        self.line = line;
        self.count += 1;
    }
}

/// Whether a line is neither the first nor the last one of its page.
const fn is_inner(line: u64) -> bool {
    !matches!(line % PAGE_LINES, 0 | 63)
}

/// The last `SAMPLES` samples.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Window<const SAMPLES: usize> {
    lines: [u64; SAMPLES],
    slots: [[Slot; 2]; SAMPLES],
    /// Samples ever taken.
    pub(crate) taken: u64,
}

impl<const SAMPLES: usize> Window<SAMPLES> {
    pub(crate) const EMPTY: Self = Self {
        lines: [0; SAMPLES],
        slots: [[Slot::FREE; 2]; SAMPLES],
        taken: 0,
    };

    /// Samples in the ring.
    pub(crate) const fn len(&self) -> usize {
        if self.taken < SAMPLES as u64 {
            self.taken as usize
        } else {
            SAMPLES
        }
    }

    /// Adds the newest sample.
    pub(crate) fn push(&mut self, address: u64) {
        let line = address / LINE;
        self.lines[(self.taken % SAMPLES as u64) as usize] = line;
        self.taken += 1;
        self.count(line);
    }

    /// Counts the samples of the ring anew, without those that have left it.
    pub(crate) fn recount(&mut self) {
        self.slots.as_flattened_mut().fill(Slot::FREE);
        for number in 0..self.len() {
            self.count(self.line(number));
        }
    }

    /// The line of a sample in the ring: 0 for the oldest.
    fn line(&self, number: usize) -> u64 {
        let first = self.taken - self.len() as u64;
        self.lines[((first + number as u64) % SAMPLES as u64) as usize]
    }

    /// The address of the line of the sample that came `age` samples before the newest; `None` where it has left the
    /// ring.
    pub(crate) fn address_before(&self, age: usize) -> Option<u64> {
        let place = self.len().checked_sub(1)?.checked_sub(age)?;
        Some(self.line(place) * LINE)
    }

    fn count(&mut self, line: u64) {
        if let Some(number) = self.find(line / PAGE_LINES) {
            self.slots.as_flattened_mut()[number].add(line);
        }
    }

    /// Number of samples of this address's page.
    pub(crate) fn count_of(&self, address: u64) -> u32 {
        let found = self.find(address / LINE / PAGE_LINES);
        found.map_or(0, |number| {
            u32::from(self.slots.as_flattened()[number].count)
        })
    }

    /// The slot of a page, or the free one that it would take. `None` where all slots have other pages.
    fn find(&self, page: u64) -> Option<usize> {
        let slots = self.slots.as_flattened();
        // The upper half of a product with a large odd number depends on all bits.
        let spread = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let first = spread as usize % slots.len();
        (0..slots.len())
            .map(|probe| (first + probe) % slots.len())
            .find(|&number| slots[number].is_of(page))
    }

    /// The pages with samples.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &Slot> {
        let slots = self.slots.as_flattened().iter();
        slots.filter(|slot| slot.count > 0)
    }
}
