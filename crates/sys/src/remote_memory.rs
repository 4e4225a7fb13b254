//! [`advise`] moves pages of another process to swap or reads them ahead from it, and splits its huge pages (`process_madvise(2)`);
//! [`touch`] brings pages back and maps them, by a read of one byte of each (`process_vm_readv(2)`). Page-out and the daemon's moves use
//! them; the process takes no part.
//!
//! Neither changes a content, so these wrappers are safe for any process.
//!
//! Results that the manual pages do not describe: `process_madvise` with `MADV_PAGEOUT` ignores accessed bits, so that pages in
//! use leave, too; it leaves locked and hugetlb mappings with `EINVAL`, and pages that several processes map, that are pinned
//! or for which swap has no room without an error. `MADV_WILLNEED` brings pages to the swap cache and maps none.
//! `MADV_COLD` of a part of a huge page splits it, where no other process maps it and nothing else uses it at that moment.
//! `MADV_POPULATE_READ` is refused for another process; a read of one byte of each page maps them.

use crate::process::ProcessHandle;
use crate::system_call::{Result, call};

/// The kernel's limit on ranges and pages of one call (`UIO_MAXIOV`).
pub const RANGES_AT_MOST: usize = 1024;

/// The advice that the kernel gets on ranges of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAdvice {
    /// `MADV_PAGEOUT` (Linux 5.10): to swap now.
    PageOut,
    /// `MADV_WILLNEED`: read from swap ahead of use.
    WillNeed,
    /// `MADV_COLD` (Linux 5.10): reclaimed before others.
    Cold,
}

impl PageAdvice {
    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PageOut => "MADV_PAGEOUT",
            Self::WillNeed => "MADV_WILLNEED",
            Self::Cold => "MADV_COLD",
        }
    }
}

/// Gives the kernel advice on ranges of a process, each `(start, bytes)` in whole pages; at most [`RANGES_AT_MOST`]. Returns the bytes
/// advised: if they are not all, the range at which they end was refused.
///
/// # Errors
/// The errors of the first range: `EINVAL` for locked memory, `ENOMEM` for a range that is not mapped. `ESRCH`: the process has ended.
/// `EPERM`: no right to trace it, or without `CAP_SYS_NICE`. `ENOSYS`: Linux before 5.10.
pub fn advise(
    process: &ProcessHandle,
    ranges: &[(usize, usize)],
    advice: PageAdvice,
) -> Result<usize> {
    let vectors = vectors(ranges.iter().copied());
    let advice = match advice {
        PageAdvice::PageOut => libc::MADV_PAGEOUT,
        PageAdvice::WillNeed => libc::MADV_WILLNEED,
        PageAdvice::Cold => libc::MADV_COLD,
    };
    let arguments = [
        process.descriptor() as usize,
        vectors.as_ptr().expose_provenance(),
        vectors.len(),
        advice as usize,
    ];
    // SAFETY: the kernel reads the list, which lives until the call returns; each kind of advice leaves contents as they are, in
    // any process.
    unsafe { call(libc::SYS_process_madvise, arguments) }
}

/// Reads one byte at each of these addresses of a process, so that its page is in memory and mapped; at most [`RANGES_AT_MOST`].
/// Returns the number that were read, up to the first that could not be.
///
/// # Errors
/// The errors of the first address: `EFAULT` where it is not mapped. `ESRCH`: the process has ended. `EPERM`: no right to trace it.
pub fn touch(process: u32, addresses: &[usize]) -> Result<usize> {
    let mut bytes = [0_u8; RANGES_AT_MOST];
    let count = addresses.len().min(bytes.len());
    let remote = vectors(addresses[..count].iter().map(|address| (*address, 1)));
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: count,
    };
    let arguments = [
        process as usize,
        (&raw const local).expose_provenance(),
        1,
        remote.as_ptr().expose_provenance(),
        count,
    ];
    // SAFETY: the kernel writes at most `count` bytes to `bytes`, which has room for them, and reads both lists, which live until
    // the call returns.
    unsafe { call(libc::SYS_process_vm_readv, arguments) }
}

fn vectors(ranges: impl Iterator<Item = (usize, usize)>) -> Vec<libc::iovec> {
    let vector = |(start, bytes)| libc::iovec {
        iov_base: core::ptr::without_provenance_mut(start),
        iov_len: bytes,
    };
    ranges.take(RANGES_AT_MOST).map(vector).collect()
}

#[cfg(test)]
mod tests {
    use super::{PageAdvice, advise, touch};
    use crate::process::ProcessHandle;
    use crate::system_call::Errno;

    const PAGE: usize = 4096;

    #[test]
    fn advice_leaves_contents_as_they_are_and_a_touch_counts_the_pages() {
        let data = vec![7_u8; 8 * PAGE];
        let start = (data.as_ptr() as usize).next_multiple_of(PAGE);
        let own = match ProcessHandle::open(std::process::id()) {
            Ok(own) => own,
            Err(error) => return isotherm_skip::skip!("pidfd_open: {error}"),
        };
        for advice in [PageAdvice::PageOut, PageAdvice::WillNeed] {
            match advise(&own, &[(start, 4 * PAGE), (start + 5 * PAGE, PAGE)], advice) {
                Ok(bytes) => assert_eq!(bytes, 5 * PAGE, "{advice:?}"),
                Err(error) => return isotherm_skip::skip!("process_madvise: {error}"),
            }
        }
        let pages = [start, start + PAGE, start + 5 * PAGE];
        assert_eq!(touch(std::process::id(), &pages), Ok(3));
        assert!(data.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn what_is_not_mapped_is_refused() {
        assert_eq!(touch(std::process::id(), &[PAGE]), Err(Errno::FAULT));
        assert_eq!(touch(i32::MAX as u32, &[PAGE]), Err(Errno::SRCH));
    }
}
