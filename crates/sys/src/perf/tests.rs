//! Samples of the running kernel, in its own layout.

use super::record::{PerfSample, Record, Records};
use super::{PerfEventAttributes, Sampler};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::os::unix::fs::FileExt;

const PAGES: usize = 16;
const FRAME: u64 = (1 << 55) - 1;

/// Pages of a file that were read and not yet written: a write to one faults, and its place until then is
/// known.
struct ReadPages {
    base: *mut u8,
    page: usize,
}

impl ReadPages {
    fn new() -> Self {
        let page = rustix::param::page_size();
        let file = memfd_create("pages", MemfdFlags::CLOEXEC).expect("a file");
        ftruncate(&file, (PAGES * page) as u64).expect("grows");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice disturbs no other memory.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                PAGES * page,
                protection,
                flags,
                &file,
                0,
            )
        };
        let pages = Self {
            base: base.expect("maps").cast(),
            page,
        };
        for number in 0..PAGES {
            // SAFETY: within the mapping, which lives as long as `pages`.
            let byte = unsafe { pages.base.add(number * page).read_volatile() };
            assert_eq!(byte, 0);
        }
        pages
    }

    fn address(&self, number: usize) -> u64 {
        self.base as u64 + (number * self.page) as u64
    }

    /// The address of each page; zeros where the kernel hides it.
    fn physical(&self) -> Vec<u64> {
        let pagemap = std::fs::File::open("/proc/self/pagemap").expect("a pagemap");
        let of = |number| {
            let mut entry = [0; 8];
            let at = self.address(number) / self.page as u64 * 8;
            pagemap.read_exact_at(&mut entry, at).expect("an entry");
            (u64::from_ne_bytes(entry) & FRAME) * self.page as u64
        };
        (0..PAGES).map(of).collect()
    }

    fn write(&self) {
        for number in 0..PAGES {
            // SAFETY: within the mapping, which may be written and lives as long as `self`.
            unsafe { self.base.add(number * self.page).write_volatile(1) };
        }
    }
}

impl Drop for ReadPages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length, and nothing refers to it any more.
        let _ = unsafe { munmap(self.base.cast(), PAGES * self.page) };
    }
}

/// The kernel finds the physical address of a fault's page as it does that of a PMU's sample.
#[test]
fn physical_addresses_are_those_of_the_page_map() {
    let event = PerfEventAttributes {
        physical: Some(0),
        ..PerfEventAttributes::page_faults(1)
    };
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let last = online.trim().rsplit(['-', ',']).next().unwrap_or_default();
    let cpus: Vec<u32> = (0..=last.parse().unwrap_or(0)).collect();
    let mut sampler = match Sampler::open(&event, 0, &cpus, 1 << 16) {
        Ok(sampler) => sampler,
        Err(error) => return isotherm_skip::skip!("physical addresses are refused: {error}"),
    };
    let pages = ReadPages::new();
    let expected = pages.physical();
    sampler.enable().expect("enables");
    pages.write();
    sampler.disable().expect("disables");
    let (mut bytes, mut traces) = (Vec::new(), Vec::new());
    assert_eq!(sampler.read(&mut bytes, &mut traces), 0);
    let records = Records::new(&bytes, sampler.layout());
    let samples: Vec<PerfSample> = records
        .filter_map(|record| match record {
            Record::Sample(sample) => Some(sample),
            _ => None,
        })
        .collect();
    for (number, expected) in expected.into_iter().enumerate() {
        let address = pages.address(number);
        let sample = samples.iter().find(|sample| sample.address == address);
        let physical = sample.expect("every first write faults").physical;
        if expected == 0 {
            isotherm_skip::skip!(
                "the kernel hides frames, so that there is nothing to compare with"
            );
            assert!(physical.is_some());
        } else {
            assert_eq!(physical, Some(expected), "page {number}");
        }
    }
}
