//! The kernel interface of the executors: the real kernel, and a dry run that prints its calls.

use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isotherm_model::movement::{AddressRange, NodeId};
use isotherm_sys::memory::Errno;
use isotherm_sys::pagemap::{self, HUGE, PRESENT, Region, Wanted, ZERO_PAGE};
use isotherm_sys::policy::{self, MempolicyMode, NodeMask};
use isotherm_sys::process::ProcessHandle;
use isotherm_sys::{pages, thread};

/// Regions read in one scan of a page table.
const REGIONS: usize = 512;

/// Bytes of a small page on every machine where `move_pages` by list is used.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Bytes of a huge page.
pub(super) const HUGE_BYTES: u64 = 2 << 20;

/// A call that changes the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemCall {
    /// `mbind(2)`.
    Mbind(AddressRange, MempolicyMode, Vec<NodeId>),
    /// `set_mempolicy(2)`.
    SetMempolicy(MempolicyMode, Vec<NodeId>),
    /// A write to `/sys/kernel/mm/mempolicy/weighted_interleave/node<N>`.
    Weight(NodeId, u8),
    /// `move_pages(2)`.
    MovePages {
        /// 0 for the caller.
        process: u32,
        /// Number of pages.
        pages: usize,
        /// From the first to the last page.
        within: AddressRange,
        /// The target node.
        node: NodeId,
    },
    /// A staged copy of a range of this process.
    StagedCopy(AddressRange, NodeId),
}

/// Hexadecimal, as in `/proc/pid/maps`.
struct Shown<'a>(&'a AddressRange);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}, {}", self.0.start, self.0.bytes.0)
    }
}

fn list(nodes: &[NodeId]) -> String {
    let numbers: Vec<_> = nodes.iter().map(ToString::to_string).collect();
    format!("nodes {}", numbers.join(","))
}

/// The kernel's name of a mode.
const fn mode_word(mode: MempolicyMode) -> &'static str {
    match mode {
        MempolicyMode::Default => "MPOL_DEFAULT",
        MempolicyMode::Preferred => "MPOL_PREFERRED",
        MempolicyMode::Bind => "MPOL_BIND",
        MempolicyMode::Interleave => "MPOL_INTERLEAVE",
        MempolicyMode::PreferredMany => "MPOL_PREFERRED_MANY",
        MempolicyMode::WeightedInterleave => "MPOL_WEIGHTED_INTERLEAVE",
    }
}

impl fmt::Display for SystemCall {
    /// `mbind(0x7f5500000000, 2097152, MPOL_BIND, nodes 1, 0)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mbind(range, mode, nodes) => {
                let (range, mode, nodes) = (Shown(range), mode_word(*mode), list(nodes));
                write!(f, "mbind({range}, {mode}, {nodes}, 0)")
            }
            Self::SetMempolicy(mode, nodes) => {
                write!(f, "set_mempolicy({}, {})", mode_word(*mode), list(nodes))
            }
            Self::Weight(node, weight) => write!(
                f,
                "write(/sys/kernel/mm/mempolicy/weighted_interleave/node{node}, {weight})"
            ),
            Self::MovePages {
                process,
                pages,
                within,
                node,
            } => write!(
                f,
                "move_pages({process}, {pages} pages in {:#x}-{:#x}, node {node}, MPOL_MF_MOVE)",
                within.start,
                within.end()
            ),
            Self::StagedCopy(range, node) => {
                write!(f, "staged copy({}, node {node})", Shown(range))
            }
        }
    }
}

/// Why a call had no effect.
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

/// The system calls that placement needs.
pub trait PolicySystem {
    /// `mbind` without moving.
    ///
    /// # Errors
    /// As [`policy::set_for_range`].
    fn set_policy(
        &mut self,
        range: AddressRange,
        mode: MempolicyMode,
        nodes: &[NodeId],
    ) -> Result<(), Refusal>;

    /// `set_mempolicy` of this thread.
    ///
    /// # Errors
    /// As [`policy::set_for_thread`].
    fn set_thread_policy(&mut self, mode: MempolicyMode, nodes: &[NodeId]) -> Result<(), Refusal>;

    /// Sets the system-wide weight of a node, if it differs.
    ///
    /// # Errors
    /// `ENOENT`: the kernel has no weights (before 6.9) or no such node. `EACCES`: not allowed.
    fn set_weight(&mut self, node: NodeId, weight: u8) -> Result<(), Refusal>;
}

/// The system calls that migration needs. Process 0 is the caller.
pub trait PageSystem {
    /// As [`pages::nodes_of`]. Changes nothing.
    ///
    /// # Errors
    /// As [`pages::nodes_of`].
    fn nodes_of(
        &mut self,
        process: u32,
        addresses: &[usize],
        status: &mut [i32],
    ) -> Result<(), Errno>;

    /// As [`pages::move_to`], all to one node.
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

    /// Whether the process has ended since the first query.
    fn has_ended(&mut self, process: u32) -> bool;

    /// A monotonic clock in nanoseconds.
    fn now_ns(&mut self) -> u64;
}

/// The real kernel.
#[derive(Debug)]
pub struct Kernel {
    root: PathBuf,
    began: Instant,
    processes: HashMap<u32, Option<ProcessHandle>>,
}

impl Kernel {
    /// `root` is the directory of `proc` and `sys`: `/`, except in tests.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            began: Instant::now(),
            processes: HashMap::new(),
        }
    }

    /// `root` and a path below it.
    fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }
}

fn mask(nodes: &[NodeId]) -> Result<NodeMask, Errno> {
    let numbers: Vec<u32> = nodes.iter().map(|node| node.0).collect();
    NodeMask::of(&numbers).ok_or(Errno(libc::EINVAL))
}

fn errno(error: &io::Error) -> Refusal {
    Refusal::Kernel(Errno(error.raw_os_error().unwrap_or(libc::EIO)))
}

impl PolicySystem for Kernel {
    fn set_policy(
        &mut self,
        range: AddressRange,
        mode: MempolicyMode,
        nodes: &[NodeId],
    ) -> Result<(), Refusal> {
        let (start, bytes) = (range.start as usize, range.bytes.0 as usize);
        policy::set_for_range(start, bytes, mode, &mask(nodes)?)?;
        Ok(())
    }

    fn set_thread_policy(&mut self, mode: MempolicyMode, nodes: &[NodeId]) -> Result<(), Refusal> {
        policy::set_for_thread(mode, &mask(nodes)?)?;
        Ok(())
    }

    fn set_weight(&mut self, node: NodeId, weight: u8) -> Result<(), Refusal> {
        let path = self.path(&format!(
            "sys/kernel/mm/mempolicy/weighted_interleave/node{node}"
        ));
        let now = fs::read_to_string(&path).map_err(|error| errno(&error))?;
        if now.trim().parse() == Ok(weight) {
            return Ok(());
        }
        fs::write(&path, weight.to_string()).map_err(|error| errno(&error))
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
        let node = i32::try_from(node.0).map_err(|_| Errno(libc::ENODEV))?;
        Ok(pages::move_to(
            process,
            addresses,
            &vec![node; addresses.len()],
            status,
        )?)
    }

    fn resident(&mut self, process: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        let name = match process {
            0 => "proc/self/pagemap".to_owned(),
            process => format!("proc/{process}/pagemap"),
        };
        scan(&File::open(self.path(&name)).ok()?, range)
    }

    fn has_ended(&mut self, process: u32) -> bool {
        if process == 0 {
            return false;
        }
        let open = || ProcessHandle::open(process).ok();
        match self.processes.entry(process).or_insert_with(open) {
            Some(handle) => handle.has_ended(),
            // Linux before 5.3 has no pidfd; the process number is checked.
            None => !thread::is_there(process as i32, process as i32),
        }
    }

    fn now_ns(&mut self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// All resident regions by `PAGEMAP_SCAN`; `None` before Linux 6.7.
fn scan(file: &File, range: AddressRange) -> Option<Vec<PageRun>> {
    let wanted = Wanted {
        inverted: ZERO_PAGE,
        all: PRESENT | ZERO_PAGE,
        any: 0,
        told: HUGE,
    };
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end() {
        let mut regions = [Region::default(); REGIONS];
        let (count, walked) =
            pagemap::regions_of(file, at, range.end(), wanted, &mut regions).ok()?;
        found.extend(regions[..count].iter().map(|region| PageRun {
            range: AddressRange {
                start: region.start,
                bytes: isotherm_model::units::Bytes(region.end - region.start),
            },
            huge: region.categories & HUGE != 0,
        }));
        if walked <= at {
            return None;
        }
        at = walked;
    }
    Some(found)
}

/// Queries the machine without changing it: each call that would is passed to `say` instead.
pub struct DrySystem<S, F> {
    inner: S,
    say: F,
}

impl<S, F: FnMut(&SystemCall)> DrySystem<S, F> {
    /// `say` receives every call that would have been made, in order.
    pub const fn new(inner: S, say: F) -> Self {
        Self { inner, say }
    }

    fn skip<T>(&mut self, call: &SystemCall) -> Result<T, Refusal> {
        (self.say)(call);
        Err(Refusal::DryRun)
    }
}

impl<S, F: FnMut(&SystemCall)> PolicySystem for DrySystem<S, F> {
    fn set_policy(
        &mut self,
        range: AddressRange,
        mode: MempolicyMode,
        nodes: &[NodeId],
    ) -> Result<(), Refusal> {
        self.skip(&SystemCall::Mbind(range, mode, nodes.to_vec()))
    }

    fn set_thread_policy(&mut self, mode: MempolicyMode, nodes: &[NodeId]) -> Result<(), Refusal> {
        self.skip(&SystemCall::SetMempolicy(mode, nodes.to_vec()))
    }

    fn set_weight(&mut self, node: NodeId, weight: u8) -> Result<(), Refusal> {
        // The policy itself comes after its weights and must be printed too.
        (self.say)(&SystemCall::Weight(node, weight));
        Ok(())
    }
}

impl<S: PageSystem, F: FnMut(&SystemCall)> PageSystem for DrySystem<S, F> {
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
        let within = AddressRange {
            start: first,
            bytes: isotherm_model::units::Bytes(last.saturating_sub(first) + PAGE_BYTES),
        };
        self.skip(&SystemCall::MovePages {
            process,
            pages: addresses.len(),
            within,
            node,
        })
    }

    fn resident(&mut self, process: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        self.inner.resident(process, range)
    }

    fn has_ended(&mut self, process: u32) -> bool {
        self.inner.has_ended(process)
    }

    fn now_ns(&mut self) -> u64 {
        self.inner.now_ns()
    }
}
