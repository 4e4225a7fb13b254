//! Describes the machine file ([`MachineHeader`]), by which the programs of an emulated machine share limited bandwidths of fast and slow
//! memory: it has the limit of each memory, and the time until which each is busy. A thread prolongs that by what its accesses take.
//!
//! The command line puts it in the directory of the session files: a new one, or another name of the file of a machine
//! that other runs use. Each process maps it shared. The memory of a tier serves one access after the other: a thread adds the time
//! that its bytes take to [`MachineHeader::busy_until_ns`], and waits until then. No thread holds a lock.

use core::mem::offset_of;
use core::sync::atomic::AtomicU64;

/// Name of the file in the session directory.
pub const FILE_NAME: &str = "machine";

/// First eight bytes of a machine file.
pub const MAGIC: [u8; 8] = *b"ISOMACH\0";

/// Size of the file: a page.
pub const FILE_BYTES: usize = 4096;

/// Size of the fields that the command line writes, the first ones.
pub const FIRST_BYTES: usize = 32;

/// Number of tiers: fast memory is the first, slow memory the second.
pub const MACHINE_TIERS: usize = 2;

/// The content of a machine file.
#[derive(Debug)]
#[repr(C)]
pub struct MachineHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`crate::VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes that the memory of each tier serves in a second; 0 where nothing limits it.
    pub bytes_per_second: [AtomicU64; MACHINE_TIERS],
    /// Time of `CLOCK_MONOTONIC` in nanoseconds until which the memory of each tier serves what it was asked for.
    pub busy_until_ns: [AtomicU64; MACHINE_TIERS],
}

/// The first bytes of a file with these limits, 0 for none; the others are zero.
#[must_use]
pub const fn first_bytes(limits: [u64; MACHINE_TIERS]) -> [u8; FIRST_BYTES] {
    let mut bytes = crate::start_of_file::<FIRST_BYTES>(MAGIC);
    let (_, limits_field) = bytes.split_at_mut(offset_of!(MachineHeader, bytes_per_second));
    let (fast, slow) = limits_field.split_at_mut(size_of::<u64>());
    fast.copy_from_slice(&limits[0].to_ne_bytes());
    slow.copy_from_slice(&limits[1].to_ne_bytes());
    bytes
}

/// The limits in the first bytes of a file; `None` where it is no machine file of this version, or limits nothing.
#[must_use]
pub fn limits_in(bytes: &[u8; FIRST_BYTES]) -> Option<[u64; MACHINE_TIERS]> {
    let (rest, slow) = bytes.split_last_chunk()?;
    let limits = [
        u64::from_ne_bytes(*rest.last_chunk()?),
        u64::from_ne_bytes(*slow),
    ];
    (*bytes == first_bytes(limits) && limits != [0; MACHINE_TIERS]).then_some(limits)
}

const _: () = assert!(offset_of!(MachineHeader, bytes_per_second) == FIRST_BYTES - 16);
const _: () = assert!(offset_of!(MachineHeader, busy_until_ns) == FIRST_BYTES);
const _: () = assert!(size_of::<MachineHeader>() <= FILE_BYTES);

#[cfg(test)]
mod tests {
    use super::{first_bytes, limits_in};

    #[test]
    fn the_limits_are_read_from_a_file_of_this_version_only() {
        let bytes = first_bytes([10 << 30, 5 << 30]);
        assert_eq!(limits_in(&bytes), Some([10 << 30, 5 << 30]));
        for limits in [[0, 5 << 30], [10 << 30, 0]] {
            assert_eq!(limits_in(&first_bytes(limits)), Some(limits));
        }
        assert_eq!(limits_in(&first_bytes([0, 0])), None);
        for at in 0..16 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(limits_in(&other), None, "byte {at}");
        }
    }
}
