//! The tiers of a Java heap with colours: the virtual machine of `java/build-jvm` shows its table when it starts, and each
//! sample in the heap reads the byte of its region. `java/hotspot/colored-heap.patch` writes the table (`g1HeapColor.hpp`); both sides
//! assert the size of its header.
//!
//! ```text
//! +------------------+ 0
//! | JavaHeapHeader   |  64 bytes: where the heap is, and sums
//! +------------------+ 64
//! | a byte a region  |  0 for one without objects; else 1 + colour in the low half, 1 + place in the high half
//! +------------------+
//! ```
//!
//! A place is a colour's own memory. Regions of colour 0 that have no room in place 0 are in the coldest one.
//!
//! Place 0 is fast, all others are slow. The virtual machine bounds what is in place 0 (`-XX:IsothermHotHeapSize`), so the heap takes no
//! room of the pool's fast tier.

use core::ffi::c_void;
use core::mem::offset_of;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

use super::page_tiers::Side;

/// First bytes of a table, written last.
const MAGIC: u64 = u64::from_ne_bytes(*b"isoheap\0");
/// Version of the layout.
const VERSION: u32 = 1;

/// What a table begins with.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct JavaHeapHeader {
    magic: u64,
    version: u32,
    pid: u32,
    /// Address of the first region.
    start: u64,
    region_bytes: u64,
    /// Regions that the heap can have.
    regions: u64,
    colours: u32,
    /// Regions that were given the coldest place instead of place 0, since the start.
    borrowed: u32,
    /// Regions that got another place than they had before, since the start.
    moved: u64,
    reserved: u64,
}

const _: () = {
    assert!(size_of::<JavaHeapHeader>() == 64);
    assert!(offset_of!(JavaHeapHeader, start) == 16);
    assert!(offset_of!(JavaHeapHeader, borrowed) == 44);
};

/// The heap of this process's virtual machine.
static HEAP: OnceLock<JavaHeap> = OnceLock::new();

/// A heap, by its table.
#[derive(Clone, Copy)]
struct JavaHeap {
    start: usize,
    region_bytes: usize,
    regions: &'static [AtomicU8],
}

impl JavaHeap {
    /// The heap of a table; `None` for one of another version.
    ///
    /// # Safety
    /// A readable header, which the bytes of its regions follow; both stay while the process lives.
    unsafe fn of(table: *const JavaHeapHeader) -> Option<Self> {
        // SAFETY: the caller's promise. A copy, because the virtual machine changes the sums.
        let header = unsafe { table.read() };
        if header.magic != MAGIC || header.version != VERSION || header.region_bytes == 0 {
            return None;
        }
        let first = table.wrapping_add(1).cast::<AtomicU8>();
        Some(Self {
            start: header.start as usize,
            region_bytes: header.region_bytes as usize,
            // SAFETY: the caller's promise.
            regions: unsafe { core::slice::from_raw_parts(first, header.regions as usize) },
        })
    }

    fn side_of(self, address: usize) -> Option<Side> {
        let offset = address.checked_sub(self.start)?;
        let region = self.regions.get(offset / self.region_bytes)?;
        side_of_region(region)
    }
}

fn side_of_region(region: &AtomicU8) -> Option<Side> {
    let place = (region.load(Ordering::Relaxed) >> 4).checked_sub(1)?;
    Some(if place == 0 { Side::Fast } else { Side::Slow })
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
    for region in heap.regions {
        match side_of_region(region) {
            Some(Side::Fast) => fast += heap.region_bytes as u64,
            Some(Side::Slow) => slow += heap.region_bytes as u64,
            None => {}
        }
    }
    (fast, slow)
}

/// `isotherm_heap_colors`: a virtual machine shows the table of its heap. One of another version is not used.
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
    use super::{JavaHeap, JavaHeapHeader, MAGIC, Side, VERSION};

    /// A header and the bytes of four regions behind it.
    #[repr(C)]
    struct Shown {
        header: JavaHeapHeader,
        regions: [u8; 4],
    }

    #[test]
    fn a_region_s_place_is_the_tier_of_its_addresses() {
        let shown: &'static Shown = Box::leak(Box::new(Shown {
            header: JavaHeapHeader {
                magic: MAGIC,
                version: VERSION,
                start: 1 << 30,
                region_bytes: 1 << 20,
                regions: 4,
                ..JavaHeapHeader::default()
            },
            // Hot, cold, without objects, hot in the cold place.
            regions: [0x11, 0x22, 0, 0x21],
        }));
        // SAFETY: the regions' bytes follow the header, and both are leaked.
        let heap =
            unsafe { JavaHeap::of(core::ptr::from_ref(shown).cast()) }.expect("of this version");
        let side = |region: usize| heap.side_of((1 << 30) + (region << 20) + 4096);
        let expected = [Some(Side::Fast), Some(Side::Slow), None, Some(Side::Slow)];
        assert_eq!([0, 1, 2, 3].map(side), expected);
        assert_eq!(side(4), None);
        assert_eq!(heap.side_of((1 << 30) - 1), None);
    }
}
