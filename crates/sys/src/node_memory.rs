//! [`NodeMemory`] maps private memory, preferably on a given node, as a slice of words for measurements of bandwidth, latency and swap: it
//! can have huge pages, be paged out, and reports the node and the residency of its pages.

use std::io;

pub use crate::memory::PAGE_BYTES;
use crate::memory::{self, Errno};
use crate::policy::{self, MempolicyMode, NodeMask};

/// A huge page on x86-64 and on arm64 with 4 KiB pages; mappings begin at a multiple of it.
pub const HUGE_PAGE: usize = 2 << 20;

/// Private, zeroed memory, unmapped when dropped. No page is taken before it is touched.
#[derive(Debug)]
pub struct NodeMemory {
    /// Start of the mapping, and its length with the part that was mapped for the alignment.
    mapped: (usize, usize),
    /// Start of the words, a multiple of [`HUGE_PAGE`].
    address: usize,
    words: usize,
}

impl NodeMemory {
    /// Maps at least `bytes`, rounded up to huge pages.
    ///
    /// # Errors
    /// The kernel's refusal: `ENOMEM` where the address space is limited.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let too_much = || Errno::NOMEM;
        let bytes = bytes
            .max(1)
            .checked_next_multiple_of(HUGE_PAGE)
            .ok_or_else(too_much)?;
        let whole = bytes.checked_add(HUGE_PAGE).ok_or_else(too_much)?;
        let start = memory::fresh(whole)?;
        Ok(Self {
            mapped: (start, whole),
            address: start.next_multiple_of(HUGE_PAGE),
            words: bytes / size_of::<u64>(),
        })
    }

    /// Requests that pages touched from now on come from `node`, and from other nodes where it is full
    /// (`MPOL_PREFERRED`). Not `MPOL_BIND`: with that, a full node makes the kernel kill a process.
    /// [`Self::node_of`] reports where pages really are.
    ///
    /// # Errors
    /// `ENOSYS` from a kernel without NUMA, `EPERM` where a container forbids the call, `EINVAL`
    /// where the node does not exist or has no memory.
    pub fn prefer(&self, node: u32) -> io::Result<()> {
        let nodes = NodeMask::of(&[node]).ok_or(Errno::INVAL)?;
        let bytes = self.words * size_of::<u64>();
        policy::set_for_range(self.address, bytes, MempolicyMode::Preferred, &nodes)?;
        Ok(())
    }

    /// Requests huge pages.
    ///
    /// # Errors
    /// `EINVAL` from a kernel that has none.
    pub fn advise_huge_pages(&self) -> io::Result<()> {
        let bytes = self.words * size_of::<u64>();
        // SAFETY: the range is this value's own, and this advice changes no contents.
        unsafe { memory::advise(self.address, bytes, libc::MADV_HUGEPAGE)? };
        Ok(())
    }

    /// Asks the kernel to move these pages of [`PAGE_BYTES`] to swap now (`MADV_PAGEOUT`, Linux 5.4). Their contents stay; the
    /// kernel leaves in memory what it cannot move, which [`Self::residency`] shows.
    ///
    /// # Errors
    /// `EINVAL` from an older kernel, `EFAULT` for pages beyond the last.
    pub fn page_out(&self, pages: core::ops::Range<usize>) -> io::Result<()> {
        let end = pages.end.checked_mul(PAGE_BYTES);
        if end.is_none_or(|end| end > self.words * size_of::<u64>()) || pages.start > pages.end {
            return Err(Errno::FAULT.into());
        }
        let start = self.address + pages.start * PAGE_BYTES;
        // SAFETY: the range is this value's own, and this advice changes no contents.
        unsafe { memory::advise(start, pages.len() * PAGE_BYTES, libc::MADV_PAGEOUT)? };
        Ok(())
    }

    /// For each page of [`PAGE_BYTES`], whether it is in memory.
    #[must_use]
    pub fn residency(&self) -> Vec<bool> {
        let mut pages = vec![0; self.words * size_of::<u64>() / PAGE_BYTES];
        memory::residency(self.address, &mut pages);
        pages.into_iter().map(|page| page & 1 != 0).collect()
    }

    /// The memory.
    #[must_use]
    pub fn words(&mut self) -> &mut [u64] {
        let start = core::ptr::with_exposed_provenance_mut(self.address);
        // SAFETY: the range is mapped, zeroed, aligned and this value's own until it is dropped,
        // and the borrow of the value is that of the words.
        unsafe { core::slice::from_raw_parts_mut(start, self.words) }
    }

    /// The node of word `index`. A page that was never touched is allocated now.
    ///
    /// # Errors
    /// `ENOSYS` from a kernel without NUMA, `EPERM` where a container forbids the call, `EFAULT`
    /// for a word beyond the last.
    pub fn node_of(&self, index: usize) -> io::Result<u32> {
        if index >= self.words {
            return Err(Errno::FAULT.into());
        }
        Ok(policy::node_of(self.address + index * size_of::<u64>())?)
    }
}

impl Drop for NodeMemory {
    fn drop(&mut self) {
        let (start, bytes) = self.mapped;
        // SAFETY: the mapping was made by this value, and no slice of it outlives the value.
        let unmapped = unsafe { memory::unmap(start, bytes) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, NodeMemory};

    /// On a kernel without NUMA or in a container that forbids the calls, there is no answer.
    fn is_absent(error: &std::io::Error) -> bool {
        matches!(
            error.raw_os_error(),
            Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)
        )
    }

    #[test]
    fn the_memory_is_aligned_zeroed_writable_and_on_the_node_that_was_asked_for() {
        let mut memory = NodeMemory::map(3 << 20).unwrap();
        assert_eq!(memory.address % HUGE_PAGE, 0);
        if let Err(error) = memory.prefer(0) {
            assert!(is_absent(&error), "{error}");
        }
        if let Err(error) = memory.advise_huge_pages() {
            assert!(is_absent(&error), "{error}");
        }
        assert_eq!(memory.words().len(), (4 << 20) / 8);
        assert!(memory.words().iter().all(|word| *word == 0));
        memory.words().fill(7);
        assert_eq!(memory.words().last(), Some(&7));
        match memory.node_of(0) {
            Ok(node) => assert!(node < 1024, "{node}"),
            Err(error) => assert!(is_absent(&error), "{error}"),
        }
    }

    #[test]
    fn pages_that_leave_memory_keep_their_contents() {
        let mut memory = NodeMemory::map(HUGE_PAGE).unwrap();
        memory.words().fill(7);
        assert!(memory.residency().iter().all(|page| *page));
        // Without swap the pages stay.
        memory.page_out(0..256).unwrap();
        assert!(memory.residency()[256..].iter().all(|page| *page));
        assert!(memory.words().iter().all(|word| *word == 7));
        assert!(memory.page_out(0..513).is_err());
        assert!(memory.page_out(0..usize::MAX).is_err());
    }

    #[test]
    fn a_node_that_cannot_be_and_a_word_beyond_the_last_are_errors() {
        let memory = NodeMemory::map(1).unwrap();
        assert!(memory.prefer(u32::MAX).is_err());
        assert!(memory.node_of(usize::MAX).is_err());
        assert!(NodeMemory::map(usize::MAX).is_err());
    }
}
