//! Describes the table ([`JavaHeapHeader`]) of a Java heap that keeps hot and cold objects in regions apart, by colour: the virtual machine
//! of `java/build-jvm` publishes the colour of each region and the colour whose memory it is in (its place), and a run sets the number of
//! memory devices for hot objects. From places and devices the runtime of an emulated machine knows which regions are in fast memory.
//! The C++ side is `g1HeapColor.hpp` in `java/hotspot/colored-heap.patch`; both sides assert the size of the header.
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

use core::mem::offset_of;

use zerocopy::{FromBytes, Immutable, IntoBytes};

/// First bytes of a table, written last.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"isoheap\0");
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Name of the file in the session directory, where a run changes the devices of hot objects.
pub const FILE_NAME: &str = "heap-table";

/// The header of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct JavaHeapHeader {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`VERSION`].
    pub version: u32,
    /// The process of the virtual machine.
    pub pid: u32,
    /// Address of the first region.
    pub start: u64,
    /// Bytes of a region.
    pub region_bytes: u64,
    /// Regions that the heap can have.
    pub regions: u64,
    /// Colours of the heap.
    pub colours: u32,
    /// Regions that were given the coldest place instead of place 0, since the start.
    pub borrowed: u32,
    /// Regions that got another place than they had before, since the start.
    pub moved: u64,
    /// Number n of memory devices over which place 0 is spread: one in n regions, chosen by its index, is on the first device, and all
    /// others are where the coldest place is. 0 and 1 mean the first device alone. `isotherm run --java --remap` writes it during the run.
    pub hot_devices: u32,
    /// Zero.
    pub reserved: u32,
}

const _: () = {
    assert!(size_of::<JavaHeapHeader>() == 64);
    assert!(offset_of!(JavaHeapHeader, start) == 16);
    assert!(offset_of!(JavaHeapHeader, borrowed) == 44);
    assert!(offset_of!(JavaHeapHeader, hot_devices) == 56);
};
