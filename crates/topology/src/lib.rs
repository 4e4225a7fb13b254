//! Finds the memory tiers of a machine: detects them from firmware and kernel, measures them, or reads a tiers file. It also reads caches,
//! swap, memory devices and the limits of this process; for all commands and the daemon.
//!
//! ```text
//! detect       nodes -> grouping -> tiers, within the limits of this process
//!  |- nodes    the memory nodes of sysfs: sizes, processors, HMAT figures, distances
//!  |- grouping nodes of like speed form one tier
//!  `- limits   cpusets and control groups
//! caches       the bytes of cache that a program can expect
//! measure      latency and bandwidth of each pair of processor node and memory node
//! tiers_file   tiers that the user writes down
//! swap         swap areas, their room, and whether they are compressed memory (zram, zswap)
//! sysfs        directories and small files of sysfs and procfs; cpu_list and meminfo parse two formats
//! devices      the memory devices: DIMMs, CXL devices and memory blocks, of the machine or of a file
//! ```
//!
//! The root of the file system is an argument, so that recorded machines test every reader. Contents of sysfs
//! ([`nodes`]) and of tiers files ([`parse`]) may hold any bytes without a panic or an allocation beyond a named
//! bound.
#![forbid(unsafe_code)]

pub mod sysfs;
pub mod cpu_list;
pub mod caches;
mod detect;
mod grouping;
pub mod limits;
pub mod measure;
pub mod meminfo;
pub mod nodes;
mod tiers_file;
mod devices;
mod swap;

pub use detect::{DetectError, Detected, PlacedNode, detect, examine, examine_measured};
pub use devices::{
    DeviceSource, Inventory, MemoryBlocks, MemoryDevice, dmi_device, inventory, inventory_of_file,
};
pub use grouping::View;
pub use swap::{SwapArea, SwapMedium, SwapSpace, Zram, Zswap, swap, swap_room};
pub use tiers_file::{FileError, TiersFile, parse, print, read_file};
