//! Memory that a test places, and queries of its place from the kernel.
//!
//! The queries are system calls and text reads made here, not wrappers of the workspace: a test that used the
//! same wrapper would trust its false report of success.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::io::{Error, Result};

use isotherm_sys::memory::{Errno, fresh};
pub(crate) use isotherm_sys::policy::MempolicyMode;
use isotherm_sys::policy::{NodeMask, set_and_move, set_for_range};

/// Only pages of this process alone (`linux/mempolicy.h`).
const MPOL_MF_MOVE: i32 = 1 << 1;
/// Bytes of a page and of a huge page on x86-64.
pub(crate) const PAGE: usize = 4096;
pub(crate) const HUGE: usize = 2 << 20;

/// Private anonymous memory of this process, aligned to huge pages. It lives as long as the process, which is
/// one test.
pub(crate) struct Memory {
    start: usize,
    pages: usize,
}

impl Memory {
    /// Reserves the given number of bytes; none is backed by a page yet.
    pub(crate) fn of(bytes: usize) -> Self {
        let reserved = fresh(bytes + HUGE).expect("address space");
        Self {
            start: reserved.next_multiple_of(HUGE),
            pages: bytes / PAGE,
        }
    }

    /// Requests huge pages, or none, so that the machine's default has no effect.
    pub(crate) fn with_huge_pages(self, huge: bool) -> Self {
        let advice = if huge {
            libc::MADV_HUGEPAGE
        } else {
            libc::MADV_NOHUGEPAGE
        };
        // SAFETY: the range is this value's own; the advice changes no content.
        let answer = unsafe { libc::madvise(self.start as *mut _, self.pages * PAGE, advice) };
        assert_eq!(answer, 0, "madvise: {}", Error::last_os_error());
        self
    }

    /// Sets the policy of the memory by the workspace's own wrapper.
    pub(crate) fn place(
        &self,
        mode: MempolicyMode,
        nodes: &[u32],
    ) -> isotherm_sys::memory::Result<()> {
        let nodes = NodeMask::of(nodes).ok_or(Errno::INVAL)?;
        set_for_range(self.start, self.pages * PAGE, mode, &nodes)
    }

    /// As [`Self::place`], and moves the resident pages.
    pub(crate) fn place_and_move(
        &self,
        mode: MempolicyMode,
        nodes: &[u32],
    ) -> isotherm_sys::memory::Result<()> {
        let nodes = NodeMask::of(nodes).ok_or(Errno::INVAL)?;
        set_and_move(self.start, self.pages * PAGE, mode, &nodes)
    }

    pub(crate) fn words(&self) -> &[u64] {
        // SAFETY: the range is mapped for reading and this value's own, and fresh memory is zero.
        unsafe { std::slice::from_raw_parts(self.start as *const u64, self.pages * PAGE / 8) }
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, it is mapped for writing as well, and borrowed by no other code.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u64, self.pages * PAGE / 8) }
    }

    /// Writes every word, each with a unique value.
    pub(crate) fn write(&mut self) {
        for (index, word) in self.words_mut().iter_mut().enumerate() {
            *word = mark(index);
        }
    }

    /// Number of words that differ from those of [`Memory::write`].
    pub(crate) fn wrong_words(&self) -> usize {
        let words = self.words().iter().enumerate();
        words.filter(|(index, word)| **word != mark(*index)).count()
    }

    /// Pages by node, by `move_pages(2)` as a query; absent pages are left out.
    pub(crate) fn pages_by_node(&self) -> BTreeMap<u32, usize> {
        let status = self.move_pages(None).expect("a question moves nothing");
        let mut counts = BTreeMap::new();
        for node in status
            .into_iter()
            .filter_map(|status| u32::try_from(status).ok())
        {
            *counts.entry(node).or_default() += 1;
        }
        counts
    }

    /// Moves all pages to a node by `move_pages(2)`: the status of each.
    pub(crate) fn move_to(&self, node: u32) -> Result<Vec<i32>> {
        let nodes = vec![i32::try_from(node).expect("a node's number"); self.pages];
        self.move_pages(Some(&nodes))
    }

    fn move_pages(&self, nodes: Option<&[i32]>) -> Result<Vec<i32>> {
        let addresses: Vec<usize> = (0..self.pages)
            .map(|page| self.start + page * PAGE)
            .collect();
        let mut status = vec![i32::MIN; self.pages];
        let nodes = nodes.map_or(std::ptr::null(), <[i32]>::as_ptr);
        let own = if nodes.is_null() { 0 } else { MPOL_MF_MOVE };
        // SAFETY: all three arrays have an element for each page; the pages are this value's own.
        let answer = unsafe {
            libc::syscall(
                libc::SYS_move_pages,
                0,
                self.pages,
                addresses.as_ptr(),
                nodes,
                status.as_mut_ptr(),
                own,
            )
        };
        match answer {
            0.. => Ok(status),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Pages by node, by `/proc/self/numa_maps` (`N0=512 N1=3`).
    pub(crate) fn numa_maps(&self) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        for line in self.lines_of("/proc/self/numa_maps", |line| line.split(' ').next()) {
            for word in line.split(' ') {
                let entry = word
                    .strip_prefix('N')
                    .and_then(|entry| entry.split_once('='));
                if let Some((Ok(node), Ok(pages))) =
                    entry.map(|(node, pages)| (node.parse(), pages.parse::<usize>()))
                {
                    *counts.entry(node).or_default() += pages;
                }
            }
        }
        counts
    }

    /// Bytes in huge pages, by `/proc/self/smaps`.
    pub(crate) fn huge_bytes(&self) -> usize {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        let mut inside = false;
        let mut kib = 0;
        for line in smaps.lines() {
            if let Some(start) = line
                .split('-')
                .next()
                .and_then(|start| usize::from_str_radix(start, 16).ok())
            {
                inside = self.holds(start);
            } else if let Some(rest) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
                let number = rest.trim().trim_end_matches(" kB");
                kib += number.parse::<usize>().expect("a number of kB");
            }
        }
        kib << 10
    }

    fn lines_of(&self, path: &str, start: impl Fn(&str) -> Option<&str>) -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let is_own = |line: &&str| {
            let address = start(line).and_then(|start| usize::from_str_radix(start, 16).ok());
            address.is_some_and(|address| self.holds(address))
        };
        text.lines().filter(is_own).map(str::to_owned).collect()
    }

    fn holds(&self, address: usize) -> bool {
        (self.start..self.start + self.pages * PAGE).contains(&address)
    }

    /// Asserts that every page is on this node, by both of the kernel's reports.
    pub(crate) fn assert_all_on(&self, node: u32) {
        let expected = BTreeMap::from([(node, self.pages)]);
        assert_eq!(self.pages_by_node(), expected, "by move_pages");
        assert_eq!(self.numa_maps(), expected, "by numa_maps");
    }

    /// Number of pages.
    pub(crate) const fn pages(&self) -> usize {
        self.pages
    }
}

/// An odd multiplier makes every word's mark unique.
fn mark(index: usize) -> u64 {
    (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Free memory of a node, in bytes.
pub(crate) fn free_bytes(node: u32) -> usize {
    node_bytes(node, "MemFree:")
}

/// A line of a node's `meminfo`, in bytes.
pub(crate) fn node_bytes(node: u32, name: &str) -> usize {
    let path = format!("/sys/devices/system/node/node{node}/meminfo");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = text.lines().find(|line| line.contains(name));
    let kib = line.and_then(|line| line.split_whitespace().rev().nth(1)?.parse::<usize>().ok());
    kib.unwrap_or_else(|| panic!("{path} has no {name}")) << 10
}

/// Version of the running kernel: 6.12 is `(6, 12)`.
pub(crate) fn version() -> (u32, u32) {
    let release =
        std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("the kernel's release");
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Lets the kernel join the free memory of each node to huge pages. A node that is preferred and has none free gives its huge page
/// from another node, though it has room in small ones: then data is not where the tests want it, by the chance of what ran before.
pub(crate) fn join_free_memory() {
    for (file, word) in [("drop_caches", "3"), ("compact_memory", "1")] {
        std::fs::write(format!("/proc/sys/vm/{file}"), word).expect("root may ask for it");
    }
}
