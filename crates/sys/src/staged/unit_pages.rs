//! `Reader` reads the page table of one 2 MiB unit for a mover (`PAGEMAP_SCAN`): which pages have content (`UnitPages`), in memory or in
//! swap, whether they are a huge page, and whether any is of a file or shared memory.

use core::ops::Range;

use rustix::fs::{Mode, OFlags};

use crate::descriptor::Descriptor;
use crate::pagemap::{self, FILE, HUGE, PRESENT, Region, SWAPPED, Wanted, ZERO_PAGE};

/// Bytes moved at once: 2 MiB, the most that is copied within the time a program may be held
/// (0.1 to 0.4 ms; units of 32 MiB stalled writers for 8 to 45 ms).
pub const UNIT_BYTES: usize = 2 << 20;

/// Bytes of a small page.
pub(super) const PAGE_BYTES: usize = 4096;
/// Pages of a unit.
pub(super) const PAGES: usize = UNIT_BYTES / PAGE_BYTES;
/// Words of a bitmap of a unit's pages.
pub(super) const WORDS: usize = PAGES / 64;
/// Regions read in one scan.
const REGIONS: usize = 64;

/// Size of the pages in a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PageKind {
    /// 512 pages of 4 KiB.
    Small = 0,
    /// One huge page of 2 MiB.
    Huge = 1,
}

/// A set of the pages of one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitPages(pub(super) [u64; WORDS]);

impl UnitPages {
    /// Number of pages in the set.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is the whole unit.
    pub(super) fn is_full(&self) -> bool {
        self.0.iter().all(|word| *word == u64::MAX)
    }

    fn insert(&mut self, pages: Range<usize>) {
        for page in pages {
            self.0[page / 64] |= 1 << (page % 64);
        }
    }

    /// The intersection of two sets.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The complement of the set.
    pub(super) fn inverse(&self) -> Self {
        Self(self.0.map(|word| !word))
    }

    /// Runs of neighbouring pages, as byte ranges from the start of the unit. A run may end at a multiple of 64
    /// pages and continue in the next one.
    pub(super) fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            let base = word * 64;
            runs_of(*bits)
                .map(move |run| (base + run.start) * PAGE_BYTES..(base + run.end) * PAGE_BYTES)
        })
    }
}

/// Runs of ones in a word.
pub(super) fn runs_of(mut bits: u64) -> impl Iterator<Item = Range<usize>> {
    core::iter::from_fn(move || {
        if bits == 0 {
            return None;
        }
        let start = bits.trailing_zeros() as usize;
        let length = (!(bits >> start)).trailing_zeros().min(64 - start as u32) as usize;
        bits &= !((u64::MAX >> (64 - length)) << start);
        Some(start..start + length)
    })
}

/// The state of a unit in the page table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    /// Pages with content: in memory or in swap, and not the shared page of zeros.
    pub(super) there: UnitPages,
    /// Any belongs to a file or is shared memory.
    pub(super) file: bool,
    /// Whether all are mapped as one huge page.
    pub(super) huge: bool,
}

impl View {
    pub(super) const fn page_kind(&self) -> PageKind {
        match self.huge {
            true => PageKind::Huge,
            false => PageKind::Small,
        }
    }
}

/// Reads the page table of this process.
pub(super) struct Reader(Descriptor);

impl Reader {
    /// Opens the calling thread's view.
    pub(super) fn open() -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(c"/proc/self/pagemap", flags, Mode::empty())?;
        Ok(Self(file.into()))
    }

    /// Whether the kernel has `PAGEMAP_SCAN` (Linux 6.7), without which there is no view.
    pub(super) fn scans(&self) -> bool {
        let mut none = [Region::default(); 1];
        pagemap::scan(&self.0, 4096..8192, Wanted::RESIDENT, &mut none).is_ok()
    }

    /// Reads the state of a unit.
    pub(super) fn view(&self, unit: usize) -> std::io::Result<View> {
        let wanted = Wanted {
            inverted: ZERO_PAGE,
            all: ZERO_PAGE,
            any: PRESENT | SWAPPED,
            told: FILE | HUGE,
        };
        let mut view = View::default();
        let whole = unit as u64..(unit + UNIT_BYTES) as u64;
        let mut huge_pages = 0;
        let mut regions = [Region::default(); REGIONS];
        pagemap::walk(&self.0, whole, wanted, &mut regions, |region| {
            let page = |address: u64| (address as usize - unit) / PAGE_BYTES;
            let pages = page(region.start)..page(region.end);
            view.file |= region.categories & FILE != 0;
            if region.categories & HUGE != 0 {
                huge_pages += pages.len();
            }
            view.there.insert(pages);
        })?;
        view.huge = huge_pages == PAGES;
        Ok(view)
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, PAGES, Reader, UnitPages, runs_of};
    use crate::memory;
    use crate::staged::{StagedError, UNIT_BYTES};

    #[test]
    fn runs_of_ones_are_found_at_both_ends_of_a_word() {
        let runs: Vec<_> = runs_of(0b1110_0001 | 1 << 63).collect();
        assert_eq!(runs, [0..1, 5..8, 63..64]);
        let whole: Vec<_> = runs_of(u64::MAX).collect();
        assert_eq!((whole.len(), whole.first()), (1, Some(&(0..64))));
        assert_eq!(runs_of(0).count(), 0);
    }

    #[test]
    fn a_set_counts_its_pages_and_its_inverse_the_others() {
        let mut pages = UnitPages::default();
        pages.insert(63..66);
        assert_eq!(pages.count(), 3);
        assert_eq!(pages.inverse().count(), PAGES - 3);
        assert_eq!(
            pages.runs().map(|run| run.len()).sum::<usize>(),
            3 * PAGE_BYTES
        );
        assert_eq!(pages.and(&pages.inverse()), UnitPages::default());
    }

    #[test]
    fn the_pages_that_were_written_are_there() {
        let base = memory::fresh(2 * UNIT_BYTES).unwrap();
        let unit = base.next_multiple_of(UNIT_BYTES);
        // SAFETY: the mapping was made here and is not used any more after this test; the pages are in it.
        unsafe {
            let _ = memory::advise(unit, UNIT_BYTES, libc::MADV_NOHUGEPAGE);
            for page in [0, 1, 7, 300, PAGES - 1] {
                ((unit + page * PAGE_BYTES) as *mut u64).write(1);
            }
        }
        let reader = Reader::open().expect("pagemap");
        if !reader.scans() {
            return isotherm_skip::skip!("{}", StagedError::OldKernel);
        }
        let view = reader.view(unit).expect("scans");
        assert!(!view.file && !view.huge);
        let runs: Vec<_> = view
            .there
            .runs()
            .map(|run| run.start / PAGE_BYTES)
            .collect();
        assert_eq!((view.there.count(), runs), (5, vec![0, 7, 300, PAGES - 1]));
        // SAFETY: as above.
        unsafe { memory::unmap(base, 2 * UNIT_BYTES).unwrap() };
    }
}
