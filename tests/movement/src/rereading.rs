//! [`Rereading`] counts how many misses of the TLB it takes to read memory again, once it was moved (ATMem's table 4).
//!
//! ```text
//! pages   0 1 2 3 4 5 6 7        read    0, s, 2s, 3s, ...   modulo their number; s is a prime far from 1
//! ```
//!
//! A word of each small page is read, in an order that no prefetcher follows: a page that is mapped by a small entry of the page
//! table costs a miss each, unless the TLB still has its entry; the pages of a huge one cost a miss together.

use std::io;

use isotherm_sys::perf::PerfCounter;

use crate::field::Field;
use crate::page::PAGE_BYTES;

/// Pages from one read to the next. Prime, and no divisor of the pages of a field below 3 GiB: each page is read once.
const STEP: usize = 786_433;

/// Counts events of this thread while it reads a field.
pub struct Rereading {
    counter: io::Result<PerfCounter>,
}

impl Rereading {
    /// Counts reads of data that the TLB had no entry for.
    pub fn by_tlb_misses() -> Self {
        Self::by(PerfCounter::TLB_MISSES)
    }

    fn by(event: (u32, u64)) -> Self {
        Self {
            counter: PerfCounter::of_thread(event),
        }
    }

    /// The reason why nothing is counted; `None` where misses are counted.
    pub fn obstacle(&self) -> Option<String> {
        self.counter.as_ref().err().map(ToString::to_string)
    }

    /// The events of one reading of the field; `None` without a counter, or where other events had it.
    pub fn count(&mut self, field: &Field) -> Option<u64> {
        let counter = self.counter.as_mut().ok()?;
        let before = counter.begin().ok()?;
        read_pages(field);
        counter.value().ok()?.checked_sub(before)
    }
}

/// Reads a word of each page once.
fn read_pages(field: &Field) {
    let pages = field.bytes / PAGE_BYTES;
    for turn in 0..pages {
        let page = turn * STEP % pages;
        let word = std::ptr::with_exposed_provenance::<u64>(field.start + page * PAGE_BYTES);
        // SAFETY: in bounds of a field, which is mapped, on a page boundary, and no thread writes to it now.
        let _ = unsafe { word.read_volatile() };
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, Rereading};
    use crate::field::Field;
    use isotherm_sys::staged::PageKind;

    /// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_PAGE_FAULTS`: the kernel counts them without hardware.
    const PAGE_FAULTS: (u32, u64) = (1, 2);

    #[test]
    fn each_page_is_read_once() {
        let field = Field::new(6 << 20, PageKind::Small).expect("memory");
        let mut rereading = Rereading::by(PAGE_FAULTS);
        if let Some(obstacle) = rereading.obstacle() {
            return isotherm_skip::skip!("a counter of page faults: {obstacle}");
        }
        assert_eq!(rereading.count(&field), Some(0), "all of it is resident");
        // SAFETY: the field is this test's, and what is in it is of no more use.
        unsafe { isotherm_sys::memory::advise(field.start, field.bytes, libc::MADV_DONTNEED) }
            .expect("the pages are given back");
        let pages = (field.bytes / PAGE_BYTES) as u64;
        assert_eq!(rereading.count(&field), Some(pages));
        assert_eq!(rereading.count(&field), Some(0), "they are there again");
    }

    #[test]
    fn an_event_that_no_machine_has_is_no_count() {
        let field = Field::new(2 << 20, PageKind::Small).expect("memory");
        let mut rereading = Rereading::by((u32::MAX, 0));
        assert!(rereading.obstacle().is_some());
        assert_eq!(rereading.count(&field), None);
    }
}
