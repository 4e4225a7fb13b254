//! [`side_of`] finds the tier of an address in a Java heap with colours, for the samples of the emulation by time: the virtual machine of
//! `java/build-jvm` passes its table ([`isotherm_abi::java_heap`]) when it starts, and a byte of it for each region tells the colour whose
//! memory the region is in, its place. The file also adds up the bytes of the heap in each tier.
//!
//! Place 0 is fast, all others are slow. The virtual machine bounds what is in place 0 (`-XX:IsothermHotHeapSize`), so the heap takes no
//! room of the pool's fast tier. Where the run has place 0 on several devices, the fast tier is the first of them.

use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::OnceLock;

use isotherm_abi::java_heap::{JavaHeapHeader, MAGIC, VERSION};

use crate::published_tiers::Side;

/// The heap of this process's virtual machine.
static HEAP: OnceLock<JavaHeap> = OnceLock::new();

/// A heap, by its table.
#[derive(Clone, Copy)]
struct JavaHeap {
    start: usize,
    region_bytes: usize,
    regions: &'static [AtomicU8],
    hot_devices: &'static AtomicU32,
}

impl JavaHeap {
    /// The heap of a table; `None` for one of another version.
    ///
    /// # Safety
    /// The table is an aligned, readable header, and the bytes of its regions follow it; both stay while the process lives. Bytes of
    /// regions and the number of devices change by whole writes only.
    unsafe fn of(table: *const JavaHeapHeader) -> Option<Self> {
        // SAFETY: the caller's promise. A copy, because sums and devices change; those of the copy are not used.
        let header = unsafe { table.read() };
        if header.magic != MAGIC || header.version != VERSION || header.region_bytes == 0 {
            return None;
        }
        let first = table.wrapping_add(1).cast::<AtomicU8>();
        let devices = table.wrapping_byte_add(offset_of!(JavaHeapHeader, hot_devices));
        Some(Self {
            start: header.start as usize,
            region_bytes: header.region_bytes as usize,
            // SAFETY: the caller's promise.
            regions: unsafe { core::slice::from_raw_parts(first, header.regions as usize) },
            // SAFETY: the caller's promise; the offset is that of a number of this size and its alignment.
            hot_devices: unsafe { &*devices.cast::<AtomicU32>() },
        })
    }

    fn side_of(self, address: usize) -> Option<Side> {
        let offset = address.checked_sub(self.start)?;
        self.side_of_region(offset / self.region_bytes)
    }

    fn side_of_region(self, index: usize) -> Option<Side> {
        let region = self.regions.get(index)?;
        let place = (region.load(Ordering::Relaxed) >> 4).checked_sub(1)?;
        let devices = self.hot_devices.load(Ordering::Relaxed).max(1);
        let is_first = place == 0 && is_on_first_device(index, devices);
        Some(if is_first { Side::Fast } else { Side::Slow })
    }
}

/// Whether a hot region is on the first of this number of devices, as one of n regions is. The multiples of the golden ratio lie
/// evenly between whole numbers, also those of each second or third region (Knuth, The Art of Computer Programming, volume 3, section
/// 6.4), so that regions which a collector takes by a pattern are spread as well. With more devices, regions only leave the first one.
const fn is_on_first_device(region: usize, devices: u32) -> bool {
    const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;
    let position = (region as u64).wrapping_mul(GOLDEN_RATIO);
    position <= u64::MAX / devices as u64
}

/// The tier of an address in the heap; `None` outside, and in regions without objects. For signal handlers too.
pub(super) fn side_of(address: usize) -> Option<Side> {
    HEAP.get()?.side_of(address)
}

/// Bytes of the regions in the fast and in the slow tier.
pub(super) fn bytes() -> (u64, u64) {
    let Some(heap) = HEAP.get() else {
        return (0, 0);
    };
    let (mut fast, mut slow) = (0, 0);
    for index in 0..heap.regions.len() {
        match heap.side_of_region(index) {
            Some(Side::Fast) => fast += heap.region_bytes as u64,
            Some(Side::Slow) => slow += heap.region_bytes as u64,
            None => {}
        }
    }
    (fast, slow)
}

/// `isotherm_heap_colors`: a virtual machine passes the table of its heap. A table of another version is not used.
///
/// # Safety
/// As [`JavaHeap::of`].
#[cfg_attr(not(test), unsafe(export_name = "isotherm_heap_colors"))]
unsafe extern "C" fn show(table: *const c_void) {
    // SAFETY: the caller's promise.
    if let Some(heap) = unsafe { JavaHeap::of(table.cast()) } {
        // The first one stays: a process has one virtual machine.
        let _ = HEAP.set(heap);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering;

    use super::{JavaHeap, JavaHeapHeader, MAGIC, Side, VERSION};

    /// A header and the bytes of its regions behind it.
    #[repr(C)]
    struct Shown<const REGIONS: usize> {
        header: JavaHeapHeader,
        regions: [u8; REGIONS],
    }

    /// A heap of 1 MiB regions in these states, from 1 GiB on.
    fn heap<const REGIONS: usize>(regions: [u8; REGIONS]) -> JavaHeap {
        let shown: &'static mut Shown<REGIONS> = Box::leak(Box::new(Shown {
            header: JavaHeapHeader {
                magic: MAGIC,
                version: VERSION,
                start: 1 << 30,
                region_bytes: 1 << 20,
                regions: REGIONS as u64,
                ..JavaHeapHeader::default()
            },
            regions,
        }));
        // SAFETY: the regions' bytes follow the header, and both are leaked.
        unsafe { JavaHeap::of(core::ptr::from_mut(shown).cast_const().cast()) }
            .expect("of this version")
    }

    fn side(heap: JavaHeap, region: usize) -> Option<Side> {
        heap.side_of((1 << 30) + (region << 20) + 4096)
    }

    #[test]
    fn a_region_s_place_is_the_tier_of_its_addresses() {
        // Hot, cold, without objects, hot in the cold place.
        let heap = heap([0x11, 0x22, 0, 0x21]);
        let expected = [Some(Side::Fast), Some(Side::Slow), None, Some(Side::Slow)];
        assert_eq!([0, 1, 2, 3].map(|region| side(heap, region)), expected);
        assert_eq!(side(heap, 4), None);
        assert_eq!(heap.side_of((1 << 30) - 1), None);
    }

    #[test]
    fn of_the_hot_place_on_n_devices_one_of_n_regions_is_fast_whichever_are_hot() {
        for stride in 1..=8 {
            let mut states = [0x22; 4096];
            let hot = states.iter_mut().step_by(stride);
            let count = hot.map(|state| *state = 0x11).count();
            let heap = heap(states);
            let mut before = count;
            for devices in 0..=8 {
                heap.hot_devices.store(devices, Ordering::Relaxed);
                let fast = (0..4096).filter(|region| side(heap, *region) == Some(Side::Fast));
                let fast = fast.count();
                let expected = count / devices.max(1) as usize;
                let distance = fast.abs_diff(expected);
                assert!(
                    distance <= 8,
                    "{fast} of {count} on {devices}, each {stride}"
                );
                assert!(fast <= before, "regions leave the first device");
                before = fast;
            }
        }
    }
}
