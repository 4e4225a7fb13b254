//! [`PageSystem`] is the kernel interface for moves between nodes: it queries the nodes of pages and moves pages (`move_pages`), lists
//! resident pages and huge pages (`PAGEMAP_SCAN`), and splits a huge page; [`ProcessSystem`] is its part that page-out has too. [`Kernel`]
//! is the real kernel; [`DrySystem`] passes each call that would change something to a function instead of making it.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;

use isotherm_model::movement::{AddressRange, NodeId};
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;
use isotherm_sys::pagemap::{self, HUGE, Region, Wanted};
use isotherm_sys::process::ProcessHandle;
use isotherm_sys::remote_memory::{self, PageAdvice};
use isotherm_sys::{clock, pages, thread};

/// Regions read in one scan of a page table.
const REGIONS: usize = 512;

/// Bytes of a small page on every machine where `move_pages` by list is used.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Bytes of a huge page.
pub const HUGE_BYTES: u64 = 2 << 20;

/// The reason why a call had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kernel refused it.
    Kernel(Errno),
    /// The call was not made in a dry run.
    DryRun,
}

impl From<Errno> for Refusal {
    fn from(error: Errno) -> Self {
        Self::Kernel(error)
    }
}

/// A run of resident pages of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRun {
    /// The addresses of the run.
    pub range: AddressRange,
    /// True for huge pages, false for small ones.
    pub huge: bool,
}

/// The queries that all moves need.
pub trait ProcessSystem {
    /// Whether the process has ended since the first query.
    fn has_ended(&mut self, process: u32) -> bool;

    /// A monotonic clock in nanoseconds.
    fn now_ns(&mut self) -> u64;
}

/// The system calls that migration needs. Process 0 is the caller.
pub trait PageSystem: ProcessSystem {
    /// Queries the nodes of pages ([`pages::nodes_of`]). Changes nothing.
    ///
    /// # Errors
    /// As [`pages::nodes_of`].
    fn nodes_of(
        &mut self,
        process: u32,
        addresses: &[usize],
        status: &mut [i32],
    ) -> Result<(), Errno>;

    /// Moves pages, all to one node ([`pages::move_to`]).
    ///
    /// # Errors
    /// As [`pages::move_to`].
    fn move_pages(
        &mut self,
        process: u32,
        addresses: &[usize],
        node: NodeId,
        status: &mut [i32],
    ) -> Result<usize, Refusal>;

    /// The resident pages of a range, in order; `None` if the machine cannot list them, and each
    /// page must be queried.
    fn resident(&mut self, process: u32, range: AddressRange) -> Option<Vec<PageRun>>;

    /// Splits the huge page around a small one, as [`PageAdvice::Cold`] does; the kernel may leave it whole without an error.
    ///
    /// # Errors
    /// As [`remote_memory::advise`].
    fn split(&mut self, process: u32, page: u64) -> Result<(), Refusal>;
}

/// The real kernel.
#[derive(Debug, Default)]
pub struct Kernel {
    processes: HashMap<u32, Option<ProcessHandle>>,
    pagemaps: HashMap<u32, Option<File>>,
}

impl Kernel {
    /// A process as it was at the first query; `None` if it had ended by then, and before Linux 5.3.
    pub(super) fn handle(&mut self, process: u32) -> Option<&ProcessHandle> {
        let open = || ProcessHandle::open(process).ok();
        let entry = self.processes.entry(process).or_insert_with(open);
        entry.as_ref()
    }

    /// The page table of a process as it was at the first query; `None` if it cannot be read. The handle comes first: its process cannot
    /// have been replaced by another one of the same number when its end is asked for later.
    pub(super) fn pagemap(&mut self, process: u32) -> Option<&File> {
        self.handle(process)?;
        let open = || File::open(format!("/proc/{process}/pagemap")).ok();
        let entry = self.pagemaps.entry(process).or_insert_with(open);
        entry.as_ref()
    }
}

impl ProcessSystem for Kernel {
    fn has_ended(&mut self, process: u32) -> bool {
        if process == 0 {
            return false;
        }
        match self.handle(process) {
            Some(handle) => handle.has_ended(),
            // Linux before 5.3 has no pidfd; the process number is checked.
            None => !thread::is_there(process as i32, process as i32),
        }
    }

    fn now_ns(&mut self) -> u64 {
        clock::now_ns()
    }
}

impl PageSystem for Kernel {
    fn nodes_of(
        &mut self,
        process: u32,
        addresses: &[usize],
        status: &mut [i32],
    ) -> Result<(), Errno> {
        pages::nodes_of(process, addresses, status)
    }

    fn move_pages(
        &mut self,
        process: u32,
        addresses: &[usize],
        node: NodeId,
        status: &mut [i32],
    ) -> Result<usize, Refusal> {
        let node = i32::try_from(node.0).map_err(|_| Errno::NODEV)?;
        Ok(pages::move_to(
            process,
            addresses,
            &vec![node; addresses.len()],
            status,
        )?)
    }

    fn resident(&mut self, process: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        let name = match process {
            0 => "/proc/self/pagemap".to_owned(),
            process => format!("/proc/{process}/pagemap"),
        };
        let wanted = Wanted {
            told: HUGE,
            ..Wanted::RESIDENT
        };
        let run = |range, categories| PageRun {
            range,
            huge: categories & HUGE != 0,
        };
        scan(&File::open(name).ok()?, range, wanted, run)
    }

    fn split(&mut self, process: u32, page: u64) -> Result<(), Refusal> {
        let process = if process == 0 {
            std::process::id()
        } else {
            process
        };
        let handle = self.handle(process).ok_or(Errno::SRCH)?;
        let small = (page as usize, PAGE_BYTES as usize);
        remote_memory::advise(handle, &[small], PageAdvice::Cold)?;
        Ok(())
    }
}

/// The runs of a range's pages that match `wanted`, each made of its addresses and its categories, by `PAGEMAP_SCAN`; `None` before Linux
/// 6.7.
pub(super) fn scan<R>(
    pagemap: &File,
    range: AddressRange,
    wanted: Wanted,
    run: impl Fn(AddressRange, u64) -> R,
) -> Option<Vec<R>> {
    let mut found = Vec::new();
    let mut regions = [Region::default(); REGIONS];
    let add = |region: &Region| {
        let range = AddressRange::between(region.start, region.end);
        found.push(run(range, region.categories));
    };
    let reached = pagemap::walk(pagemap, range.span(), wanted, &mut regions, add).ok()?;
    (reached >= range.end()).then_some(found)
}

/// Queries the machine without changing it: each call that would change it is passed to `say` instead.
pub struct DrySystem<S, F> {
    pub(super) inner: S,
    pub(super) say: F,
}

impl<S, F: FnMut(fmt::Arguments<'_>)> DrySystem<S, F> {
    /// `say` receives every call that would have been made, in order.
    pub const fn new(inner: S, say: F) -> Self {
        Self { inner, say }
    }
}

impl<S: ProcessSystem, F: FnMut(fmt::Arguments<'_>)> ProcessSystem for DrySystem<S, F> {
    fn has_ended(&mut self, process: u32) -> bool {
        self.inner.has_ended(process)
    }

    fn now_ns(&mut self) -> u64 {
        self.inner.now_ns()
    }
}

impl<S: PageSystem, F: FnMut(fmt::Arguments<'_>)> PageSystem for DrySystem<S, F> {
    fn nodes_of(
        &mut self,
        process: u32,
        addresses: &[usize],
        status: &mut [i32],
    ) -> Result<(), Errno> {
        self.inner.nodes_of(process, addresses, status)
    }

    fn move_pages(
        &mut self,
        process: u32,
        addresses: &[usize],
        node: NodeId,
        _: &mut [i32],
    ) -> Result<usize, Refusal> {
        let first = addresses.first().copied().unwrap_or(0) as u64;
        let last = addresses.last().copied().unwrap_or(0) as u64;
        let (pages, end) = (addresses.len(), last.max(first) + PAGE_BYTES);
        (self.say)(format_args!(
            "move_pages({process}, {pages} pages in {first:#x}-{end:#x}, node {node}, MPOL_MF_MOVE)"
        ));
        Err(Refusal::DryRun)
    }

    fn resident(&mut self, process: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        self.inner.resident(process, range)
    }

    fn split(&mut self, process: u32, page: u64) -> Result<(), Refusal> {
        let (bytes, advice) = (Bytes(PAGE_BYTES), PageAdvice::Cold.name());
        (self.say)(format_args!(
            "process_madvise({process}, {bytes} at {page:#x}, {advice})"
        ));
        Err(Refusal::DryRun)
    }
}

#[cfg(test)]
mod tests {
    use super::DrySystem;
    use crate::movement::migration::Migration;
    use crate::movement::test_machine::{Machine, action};
    use isotherm_model::movement::NodeId;
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;

    #[test]
    fn a_dry_run_says_each_call_and_moves_nothing() {
        let mut machine = Machine::with_pages(&[0, 1, 0]);
        let mut calls = Vec::new();
        let dry = DrySystem::new(&mut machine, |call: std::fmt::Arguments<'_>| {
            calls.push(call.to_string())
        });
        let outcome = Migration::new(dry).carry_out(action(7, 0, 3, NodeId(1)));
        assert_eq!(
            outcome.parts[0].fate,
            Fate::NotAttempted(Reason::DryRun),
            "{outcome:?}"
        );
        assert_eq!(
            calls,
            ["move_pages(7, 2 pages in 0x40000000-0x40003000, node 1, MPOL_MF_MOVE)"]
        );
        assert_eq!(machine.nodes(), [0, 1, 0]);
    }

    #[test]
    fn a_dry_run_says_which_huge_page_it_would_split() {
        let mut machine = Machine::with_pages(&[0; 512]);
        machine.huge = true;
        let mut calls = Vec::new();
        let say = |call: std::fmt::Arguments<'_>| calls.push(call.to_string());
        let dry = DrySystem::new(&mut machine, say);
        let outcome = Migration::new(dry)
            .splitting()
            .carry_out(action(7, 8, 4, NodeId(1)));
        assert_eq!(outcome.parts[0].fate, Fate::NotAttempted(Reason::DryRun));
        assert_eq!(
            calls,
            ["process_madvise(7, 4 KiB at 0x40008000, MADV_COLD)"]
        );
        assert_eq!(machine.split, []);
    }
}
