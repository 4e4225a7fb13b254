//! [`walk`] finds the pages of a process by category (resident, swapped, huge, of a file), with the `PAGEMAP_SCAN` ioctl of
//! `/proc/PID/pagemap` (Linux 6.7): one call does a page table walk that skips empty entries. [`read_entries`] reads the file instead,
//! eight bytes for every page, resident or not: for older kernels, and for bits of an entry that a scan does not report.
//!
//! Documentation: `Documentation/admin-guide/mm/pagemap.rst` in the kernel.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

/// `struct page_region` of `linux/fs.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// First address past it.
    pub end: u64,
    /// `PAGE_IS_*` bits that were requested and are set.
    pub categories: u64,
}

/// `struct pm_scan_arg` of `linux/fs.h`.
#[repr(C)]
struct ScanArgument {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

const _: () = assert!(size_of::<ScanArgument>() == 96);
const _: () = assert!(size_of::<Region>() == 24);

/// `PAGE_IS_FILE`: file-backed or shared memory.
pub const FILE: u64 = 1 << 2;

/// `PAGE_IS_PRESENT`.
pub const PRESENT: u64 = 1 << 3;

/// `PAGE_IS_SWAPPED`.
pub const SWAPPED: u64 = 1 << 4;

/// `PAGE_IS_PFNZERO`: the shared page of zeros, which belongs to no process.
pub const ZERO_PAGE: u64 = 1 << 5;

/// `PAGE_IS_HUGE`: mapped as a huge page.
pub const HUGE: u64 = 1 << 6;

/// `_IOWR('f', 16, struct pm_scan_arg)`, with the layout of `asm-generic/ioctl.h`.
const PAGEMAP_SCAN: libc::c_ulong = 3 << 30
    | (size_of::<ScanArgument>() as libc::c_ulong) << 16
    | (b'f' as libc::c_ulong) << 8
    | 16;

/// The pages that a scan finds and the facts that it reports of them, as sets of the categories above.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Categories whose meaning is inverted.
    pub inverted: u64,
    /// A page must be in all of these.
    pub all: u64,
    /// A page must also be in at least one of these, unless the set is empty.
    pub any: u64,
    /// The categories that a region reports of its pages. Neighbours that differ in them are separate regions.
    pub told: u64,
}

impl Wanted {
    /// Pages that are present, and not the shared page of zeros.
    pub const RESIDENT: Self = Self {
        inverted: ZERO_PAGE,
        all: PRESENT | ZERO_PAGE,
        any: 0,
        told: PRESENT,
    };

    /// Resident pages that are mapped as huge pages.
    pub const RESIDENT_HUGE: Self = Self {
        all: Self::RESIDENT.all | HUGE,
        ..Self::RESIDENT
    };
}

/// Passes every run of matching pages in the range to `each`, in system calls that find as many runs as `regions` has room
/// for. Returns the address at which the walk ended: the end of the range, unless the kernel stopped before.
///
/// # Errors
/// As [`scan`].
pub fn walk(
    pagemap: impl AsFd,
    range: Range<u64>,
    wanted: Wanted,
    regions: &mut [Region],
    mut each: impl FnMut(&Region),
) -> io::Result<u64> {
    let mut at = range.start;
    while at < range.end {
        let (count, walked) = scan(&pagemap, at..range.end, wanted, regions)?;
        regions[..count].iter().for_each(&mut each);
        // Linux 6.18 reports the end of the 512th run as the end of the walk where it found more.
        let last = regions[..count].last().map_or(0, |region| region.end);
        let reached = walked.max(last);
        if reached <= at {
            break;
        }
        at = reached;
    }
    Ok(at)
}

/// Finds runs of matching pages in a range of the process behind an open pagemap, as many as `regions` has room for. Returns the number
/// found and the address at which the walk stopped.
///
/// # Errors
/// `ENOTTY` or `EINVAL`: the kernel is older than 6.7. `ESRCH`-like failures: the process has ended.
pub fn scan(
    pagemap: impl AsFd,
    range: Range<u64>,
    wanted: Wanted,
    regions: &mut [Region],
) -> io::Result<(usize, u64)> {
    let mut argument = ScanArgument {
        size: size_of::<ScanArgument>() as u64,
        flags: 0,
        start: range.start,
        end: range.end,
        walk_end: 0,
        vec: regions.as_mut_ptr().expose_provenance() as u64,
        vec_len: regions.len() as u64,
        max_pages: 0,
        category_inverted: wanted.inverted,
        category_mask: wanted.all,
        category_anyof_mask: wanted.any,
        return_mask: wanted.told,
    };
    // SAFETY: needed because neither libc nor rustix wraps this ioctl. The argument block is live,
    // exclusive and of the size it names; `vec` and `vec_len` describe `regions`, which is
    // borrowed exclusively for the call; the kernel writes nothing else and keeps no pointer.
    let found = unsafe {
        libc::ioctl(
            pagemap.as_fd().as_raw_fd(),
            PAGEMAP_SCAN as _,
            &raw mut argument,
        )
    };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(((found as usize).min(regions.len()), argument.walk_end))
}

/// Passes the address and the entry of each page of a range, with pages of `page` bytes, to `each`. False if not all pages have an entry:
/// the process has ended.
///
/// # Errors
/// The range is beyond the address space, or the process has ended.
pub fn read_entries(
    pagemap: &File,
    range: Range<u64>,
    page: u64,
    mut each: impl FnMut(u64, u64),
) -> io::Result<bool> {
    let mut bytes = vec![0; 64 << 10];
    let (mut at, end) = (range.start / page, range.end.div_ceil(page));
    while at < end {
        let length = (8 * (end - at)).min(bytes.len() as u64) as usize;
        let read = pagemap.read_at(&mut bytes[..length], at * 8)?;
        if read < 8 {
            return Ok(false);
        }
        for entry in bytes[..read].chunks_exact(8) {
            each(at * page, entry.try_into().map_or(0, u64::from_ne_bytes));
            at += 1;
        }
    }
    Ok(true)
}

/// An entry as the categories of a scan: bit 63 is set for a present page, 62 for a page in swap, and 61 for one of a file or of shared
/// memory. It does not show huge pages.
#[must_use]
pub const fn categories(entry: u64) -> u64 {
    ((entry >> 63) * PRESENT) | ((entry >> 62 & 1) * SWAPPED) | ((entry >> 61 & 1) * FILE)
}

#[cfg(test)]
mod tests {
    use super::{Region, Wanted, scan};
    use std::fs::File;

    /// Prints and passes on a kernel older than 6.7: there the ioctl does not exist.
    #[test]
    fn pages_that_were_written_are_present_and_an_unmapped_range_is_not() {
        let pagemap = File::open("/proc/self/pagemap").expect("pagemap opens");
        let page = rustix::param::page_size();
        let data = vec![1u8; 64 * page];
        let start = (data.as_ptr() as u64).next_multiple_of(page as u64);
        let end = start + 62 * page as u64;
        let mut regions = [Region::default(); 8];
        let resident =
            |range, regions: &mut [Region]| scan(&pagemap, range, Wanted::RESIDENT, regions);
        let (found, walked) = match resident(start..end, &mut regions) {
            Err(error) => return isotherm_skip::skip!("PAGEMAP_SCAN: {error}"),
            Ok(result) => result,
        };
        let bytes: u64 = regions[..found].iter().map(|r| r.end - r.start).sum();
        assert_eq!((bytes, walked), (end - start, end));
        let (found, _) = resident(4096..8192, &mut regions).expect("scans");
        assert_eq!(found, 0);
    }
}
