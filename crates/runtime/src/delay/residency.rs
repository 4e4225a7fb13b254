//! [`Residency`] looks up for the emulation by time which pages of the pool and of static data are resident, a chunk at a time, so that
//! data that is never sampled takes its room in the tiers too, and data that is gone gives its room back. A page from a file (`.data`)
//! takes room by that only where it was placed by itself: the kernel calls it resident where any process has read it.
//!
//! A sample looks at one chunk: at a sample a millisecond that is 2 GiB a second for each thread, for some 5 us a sample.

use core::sync::atomic::{AtomicUsize, Ordering};

use isotherm_sys::memory;

use super::page_tiers::{CHUNK_PAGES, PageTiers};

/// Chunks without data that one step passes over.
const EMPTY_AT_MOST: usize = 64;

/// The place of the next look.
#[derive(Default)]
pub(crate) struct Residency {
    next: AtomicUsize,
}

impl Residency {
    /// Looks at the next chunk with data. Threads that do so at the same time look at different ones.
    pub(crate) fn step(&self, tiers: &PageTiers) {
        let used = tiers.chunks_with_data();
        for _ in 0..EMPTY_AT_MOST.min(used) {
            let chunk = tiers.nth_chunk(self.next.fetch_add(1, Ordering::Relaxed) % used);
            if tiers.has_data(chunk) {
                return look(tiers, chunk);
            }
        }
    }
}

/// Gives each resident page of a chunk a tier, and takes the tier of each page that is not resident.
fn look(tiers: &PageTiers, chunk: usize) {
    /// A byte that the kernel never answers: it stays where the range is not mapped as a whole.
    const UNKNOWN: u8 = 2;
    let mut resident = [UNKNOWN; CHUNK_PAGES];
    let (start, pages) = tiers.place(chunk);
    memory::residency(start, &mut resident[..pages]);
    // Asked once: this is work of a signal handler.
    let is_of_file = tiers.is_of_file(chunk);
    for (page, resident) in (chunk * CHUNK_PAGES..).zip(resident) {
        if resident == UNKNOWN {
            return;
        }
        let is_resident = resident & 1 != 0;
        if is_resident && (!is_of_file || tiers.is_placed(page)) {
            tiers.tier_of(page);
            tiers.publish(page);
        } else if !is_resident && tiers.is_known(page) {
            tiers.release(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_PAGES, PageTiers, Residency};
    use crate::published_tiers::Side;
    use isotherm_sys::memory;

    const CHUNK: usize = isotherm_abi::CHUNK_BYTES as usize;

    #[test]
    fn resident_pages_get_a_tier_and_lose_it_with_their_content() {
        let start = memory::fresh(3 * CHUNK)
            .expect("maps")
            .next_multiple_of(CHUNK);
        let tiers = PageTiers::map(start..start + 2 * CHUNK, 3 * 4096).expect("maps");
        tiers.want(start + CHUNK, CHUNK, Side::Fast);
        let touched = [1, 7, 8, 200];
        for page in touched {
            // SAFETY: inside the fresh mapping, which no other code knows.
            unsafe { ((start + CHUNK + page * 4096) as *mut u8).write(1) };
        }
        let residency = Residency::default();
        (0..2).for_each(|_| residency.step(&tiers));
        assert_eq!(tiers.bytes(), (3 * 4096, 4096));
        assert_eq!(tiers.tier_of(CHUNK_PAGES + 200), Side::Slow);
        // SAFETY: the mapping is the test's own, and the content of the page is not needed.
        unsafe {
            memory::advise(start + CHUNK + 7 * 4096, 4096, libc::MADV_DONTNEED).expect("drops")
        };
        (0..2).for_each(|_| residency.step(&tiers));
        assert_eq!(tiers.bytes(), (2 * 4096, 4096));
        assert!(!tiers.is_known(CHUNK_PAGES + 7));
    }
}
