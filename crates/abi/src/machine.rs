//! The machine file: the bandwidth of slow memory that the programs of an emulated machine share.
//!
//! The command line puts it in the directory of the session files: a new one, or another name of the file of a machine
//! that other runs use. Each process maps it shared. Slow memory serves one access after the other: a thread adds the time that
//! its bytes take to [`MachineHeader::busy_until_ns`], and waits until then. No thread holds a lock.

use core::sync::atomic::AtomicU64;

use crate::VERSION;

/// Name of the file in the session directory.
pub const FILE_NAME: &str = "machine";

/// First eight bytes of a machine file.
pub const MAGIC: [u8; 8] = *b"ISOMACH\0";

/// Size of the file: a page.
pub const FILE_BYTES: usize = 4096;

/// Size of the fields that the command line writes, the first ones.
pub const FIRST_BYTES: usize = 24;

/// The content of a machine file.
#[derive(Debug)]
#[repr(C)]
pub struct MachineHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes that slow memory serves in a second; not 0.
    pub bytes_per_second: AtomicU64,
    /// Time of `CLOCK_MONOTONIC` in nanoseconds until which slow memory serves what it was asked for.
    pub busy_until_ns: AtomicU64,
}

/// The first bytes of a file with this limit; the others are zero.
#[must_use]
pub const fn first_bytes(bytes_per_second: u64) -> [u8; FIRST_BYTES] {
    let mut bytes = [0; FIRST_BYTES];
    let (magic, rest) = bytes.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    let (version, rest) = rest.split_at_mut(size_of::<u32>());
    version.copy_from_slice(&VERSION.to_ne_bytes());
    let (_, limit) = rest.split_at_mut(size_of::<u32>());
    limit.copy_from_slice(&bytes_per_second.to_ne_bytes());
    bytes
}

/// The limit in the first bytes of a file; `None` where they are not those of a machine file of this version.
#[must_use]
pub fn limit_in(bytes: &[u8; FIRST_BYTES]) -> Option<u64> {
    let limit = u64::from_ne_bytes(*bytes.last_chunk()?);
    (*bytes == first_bytes(limit) && limit > 0).then_some(limit)
}

const _: () = assert!(core::mem::offset_of!(MachineHeader, bytes_per_second) == FIRST_BYTES - 8);
const _: () = assert!(size_of::<MachineHeader>() <= FILE_BYTES);

#[cfg(test)]
mod tests {
    use super::{first_bytes, limit_in};

    #[test]
    fn the_limit_is_read_from_a_file_of_this_version_only() {
        let bytes = first_bytes(5 << 30);
        assert_eq!(limit_in(&bytes), Some(5 << 30));
        assert_eq!(limit_in(&first_bytes(0)), None);
        for at in 0..16 {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(limit_in(&other), None, "byte {at}");
        }
    }
}
