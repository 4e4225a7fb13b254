//! A [`Field`] is fully resident memory, which is to be moved.

use anyhow::Result;
use isotherm_sys::memory;
use isotherm_sys::pagemap::{HUGE, PRESENT, Region, Wanted, walk};
use isotherm_sys::staged::{PageKind, UNIT_BYTES};

/// The size of pages that `--huge` asks for.
pub fn page_kind(huge: bool) -> PageKind {
    if huge {
        PageKind::Huge
    } else {
        PageKind::Small
    }
}

/// The advice that makes a range one of such pages, where the kernel follows it.
pub fn advice(kind: PageKind) -> i32 {
    match kind {
        PageKind::Small => libc::MADV_NOHUGEPAGE,
        PageKind::Huge => libc::MADV_HUGEPAGE,
    }
}

/// Fully resident memory on unit boundaries, which is never unmapped.
#[derive(Debug)]
pub struct Field {
    pub start: usize,
    pub bytes: usize,
}

impl Field {
    pub fn new(bytes: usize, kind: PageKind) -> Result<Self> {
        let error = |error| anyhow::anyhow!("mapping {bytes} bytes: {error:?}");
        let space = memory::fresh(bytes + UNIT_BYTES).map_err(error)?;
        let start = space.next_multiple_of(UNIT_BYTES);
        // SAFETY: the range was mapped above, and is written once as bytes.
        unsafe {
            let _ = memory::advise(start, bytes, advice(kind));
            std::ptr::write_bytes(start as *mut u8, 0x5a, bytes);
        }
        Ok(Self { start, bytes })
    }

    /// Bytes mapped as huge pages.
    pub fn huge_bytes(&self) -> Result<u64> {
        let pagemap = std::fs::File::open("/proc/self/pagemap")?;
        let wanted = Wanted {
            inverted: 0,
            all: PRESENT | HUGE,
            any: 0,
            told: HUGE,
        };
        let whole = self.start as u64..(self.start + self.bytes) as u64;
        let mut bytes = 0;
        let mut regions = [Region::default(); 64];
        walk(&pagemap, whole, wanted, &mut regions, |region| {
            bytes += region.end - region.start;
        })?;
        Ok(bytes)
    }

    pub fn is_intact(&self) -> bool {
        let words = std::ptr::with_exposed_provenance::<u64>(self.start);
        // SAFETY: the field is mapped and no thread writes to it now.
        let words = unsafe { std::slice::from_raw_parts(words, self.bytes / 8) };
        words.iter().all(|word| *word == 0x5a5a_5a5a_5a5a_5a5a)
    }
}
