//! [`page_out()`] measures what swap costs a page ([`PageOutCosts`]): the time to take it out, the time of the access that brings it back,
//! and the compressed memory that it takes while it is out. `isotherm tiers --measure` prints the costs; runs and the daemon with the tiers
//! `compressed` keep to the stall budget by them.
//!
//! Half of each page is random and half of it zeroes, so that a good algorithm halves it. Pages come back in random order, so that
//! the kernel reads no neighbours ahead of their use.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::node_memory::{NodeMemory, PAGE_BYTES};

use crate::{SwapSpace, limits, meminfo, swap};

/// The costs of a page of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageOutCosts {
    /// Pages that left memory and came back.
    pub pages: u64,
    /// Time to take one out, in the thread that asks for it.
    pub out: Nanos,
    /// Time that an access to one takes.
    pub back: Nanos,
    /// Bytes of these pages that the kernel stored compressed, and bytes of memory that they took there. Other programs' pages
    /// that came or went meanwhile count too; zero without zram and zswap.
    pub compressed: (Bytes, Bytes),
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum PageOutError {
    /// There is no swap.
    #[error("the machine has no swap")]
    NoSwap,
    /// Swap or memory is too full.
    #[error("{0} of swap and {1} of memory are free, too little for a measurement with {MEMORY}")]
    Full(Bytes, Bytes),
    /// The kernel moved no page.
    #[error(
        "the kernel moved none of the pages to swap; the limit of the control group for swap may be zero"
    )]
    Stayed,
    /// A system call failed.
    #[error("memory for the measurement: {0}")]
    System(#[from] std::io::Error),
}

/// Memory that is measured.
const MEMORY: Bytes = Bytes(32 << 20);
/// At most one part in this number of what is free is used.
const PART_OF_FREE: u64 = 4;
/// Pages of one request: 2 MiB.
const PAGES_A_REQUEST: usize = (2 << 20) / PAGE_BYTES;
const PAGE_WORDS: usize = PAGE_BYTES / size_of::<u64>();

/// Measures the swap of this machine, of which `root` (`/`) is the file system, in about a second.
///
/// # Errors
/// [`PageOutError`].
pub fn page_out(root: &Path) -> Result<PageOutCosts, PageOutError> {
    let before = swap(root);
    check_room(root, &before)?;
    let mut memory = NodeMemory::map(usize::try_from(MEMORY.0).unwrap_or(usize::MAX))?;
    let mut random = fastrand::Rng::with_seed(1);
    for page in memory.words().chunks_mut(PAGE_WORDS) {
        page[..PAGE_WORDS / 2].fill_with(|| random.u64(1..));
    }
    let pages = memory.words().len() / PAGE_WORDS;
    let start = Instant::now();
    for first in (0..pages).step_by(PAGES_A_REQUEST) {
        memory.page_out(first..pages.min(first + PAGES_A_REQUEST))?;
    }
    let time_out = start.elapsed();
    let compressed = growth(before.compressed(), swap(root).compressed());
    let residency = memory.residency();
    let mut out: Vec<usize> = (0..pages).filter(|page| !residency[*page]).collect();
    let count = out.len() as u64;
    if count == 0 {
        return Err(PageOutError::Stayed);
    }
    random.shuffle(&mut out);
    let words = memory.words();
    let start = Instant::now();
    for page in out {
        black_box(words[page * PAGE_WORDS]);
    }
    let time_back = start.elapsed();
    let each = |time: std::time::Duration| {
        Nanos(u64::try_from(time.as_nanos() / u128::from(count)).unwrap_or(u64::MAX))
    };
    Ok(PageOutCosts {
        pages: count,
        out: each(time_out),
        back: each(time_back),
        compressed,
    })
}

fn check_room(root: &Path, swap: &SwapSpace) -> Result<(), PageOutError> {
    if swap.areas.is_empty() {
        return Err(PageOutError::NoSwap);
    }
    let available = meminfo::available_bytes(&root.join("proc/meminfo")).unwrap_or(0);
    let limit = limits::memory(root).map_or(u64::MAX, |limit| limit.0);
    let (swap, memory) = (swap.free(), Bytes(available.min(limit)));
    match swap.min(memory).0 / PART_OF_FREE < MEMORY.0 {
        true => Err(PageOutError::Full(swap, memory)),
        false => Ok(()),
    }
}

fn growth(before: (Bytes, Bytes), after: (Bytes, Bytes)) -> (Bytes, Bytes) {
    let more = |before: Bytes, after: Bytes| Bytes(after.0.saturating_sub(before.0));
    (more(before.0, after.0), more(before.1, after.1))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::units::Bytes;

    use super::{PageOutError, growth, page_out};
    use crate::swap;

    /// Writes `proc/swaps` with one area of this many KiB, and `proc/meminfo`.
    fn machine(swap_kib: u64) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let swaps =
            format!("Filename Type Size Used Priority\n/dev/sdz1 partition {swap_kib} 0 -2\n");
        std::fs::write(root.path().join("proc/swaps"), swaps).unwrap();
        std::fs::write(root.path().join("proc/meminfo"), "MemFree: 9999999 kB\n").unwrap();
        root
    }

    #[test]
    fn little_swap_is_left_alone() {
        let nowhere = page_out(Path::new("/nowhere"));
        assert!(matches!(nowhere, Err(PageOutError::NoSwap)), "{nowhere:?}");
        let little = page_out(machine(64 << 10).path());
        assert!(matches!(little, Err(PageOutError::Full(..))), "{little:?}");
    }

    #[test]
    fn pages_come_back_from_swap_or_the_reason_is_said() {
        if swap(Path::new("/")).areas.is_empty() {
            // The recorded machine has swap, and this one moves no page there.
            let stayed = page_out(machine(1 << 20).path());
            assert!(matches!(stayed, Err(PageOutError::Stayed)), "{stayed:?}");
            return;
        }
        match page_out(Path::new("/")) {
            Ok(costs) => assert!(
                costs.pages > 0 && costs.out.0 > 0 && costs.back.0 > 0,
                "{costs:?}"
            ),
            Err(error) => assert!(matches!(
                error,
                PageOutError::Full(..) | PageOutError::Stayed
            )),
        }
    }

    #[test]
    fn what_was_compressed_before_is_not_counted() {
        let pair = |stored, memory| (Bytes(stored), Bytes(memory));
        assert_eq!(growth(pair(10, 5), pair(30, 16)), pair(20, 11));
        assert_eq!(growth(pair(10, 5), pair(8, 6)), pair(0, 1));
    }
}
