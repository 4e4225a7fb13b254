//! A machine for tests: one process with pages on two nodes, whose `move_pages` answers as observed
//! on real kernels.

use std::cell::RefCell;
use std::rc::Rc;

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
use isotherm_model::units::Bytes;
use isotherm_sys::memory::Errno;

use super::system::{PAGE_BYTES, PageRun, PageSystem, ProcessSystem, Refusal};

/// Address of the first page.
const BASE: u64 = 1 << 30;

/// The machine. Tests may set all fields.
#[derive(Debug, Default)]
pub(super) struct Machine {
    /// Node of each page, -1 for one that was never touched.
    nodes: Vec<i32>,
    /// Pages that fit on node 1; more fail a call as a whole.
    pub(super) room: usize,
    /// Pages that a device holds.
    pub(super) busy: Vec<usize>,
    /// Pages that a forked child shares.
    pub(super) shared: Vec<usize>,
    /// All pages belong to huge ones.
    pub(super) huge: bool,
    /// All pages belong to huge ones, but the machine does not report it, as before Linux 6.7.
    pub(super) secretly_huge: bool,
    /// The huge pages are shared, and the kernel splits none.
    pub(super) whole: bool,
    /// Numbers of the huge pages that were split.
    pub(super) split: Vec<usize>,
    /// The process ends after this number of moving calls.
    pub(super) ends_after_calls: Option<usize>,
    /// Time to move a page.
    pub(super) page_ns: u64,
    /// Addresses that moving calls named.
    pub(super) named: Vec<usize>,
    /// Time of each moving call.
    pub(super) call_ns: Vec<u64>,
    now_ns: u64,
}

/// Moves this many pages of the machine's process from the given page on.
pub(super) fn action(pid: u32, page: u64, pages: u64, node: NodeId) -> RangeAction {
    RangeAction {
        process: Process { pid, image: 0 },
        range: AddressRange {
            start: BASE + page * PAGE_BYTES,
            bytes: Bytes(pages * PAGE_BYTES),
        },
        node,
    }
}

impl Machine {
    pub(super) fn with_pages(nodes: &[i32]) -> Self {
        Self {
            nodes: nodes.to_vec(),
            room: usize::MAX,
            page_ns: 1_000,
            ..Self::default()
        }
    }

    pub(super) fn nodes(&self) -> &[i32] {
        &self.nodes
    }

    fn ended(&self) -> bool {
        self.ends_after_calls
            .is_some_and(|calls| self.call_ns.len() >= calls)
    }

    fn index(address: usize) -> usize {
        (address - BASE as usize) / PAGE_BYTES as usize
    }

    fn move_one(&mut self, index: usize, node: i32) -> i32 {
        if self.busy.contains(&index) {
            return -libc::EBUSY;
        }
        if self.shared.contains(&index) {
            return -libc::EACCES;
        }
        if (self.huge || self.secretly_huge) && !self.split.contains(&(index / 512)) {
            let second = self.secretly_huge && index % 512 == 1;
            let head = index / 512 * 512;
            self.nodes[head..head + 512].fill(node);
            return if second { -libc::EBUSY } else { node };
        }
        self.nodes[index] = node;
        node
    }
}

/// A machine shared by several executors.
#[derive(Clone, Debug)]
pub(super) struct Shared(Rc<RefCell<Machine>>);

impl Shared {
    pub(super) fn new(machine: Machine) -> Self {
        Self(Rc::new(RefCell::new(machine)))
    }

    pub(super) fn nodes(&self) -> Vec<i32> {
        self.0.borrow().nodes.clone()
    }
}

impl PageSystem for Shared {
    fn nodes_of(
        &mut self,
        process: u32,
        addresses: &[usize],
        status: &mut [i32],
    ) -> Result<(), Errno> {
        (&mut *self.0.borrow_mut()).nodes_of(process, addresses, status)
    }

    fn move_pages(
        &mut self,
        process: u32,
        addresses: &[usize],
        node: NodeId,
        status: &mut [i32],
    ) -> Result<usize, Refusal> {
        (&mut *self.0.borrow_mut()).move_pages(process, addresses, node, status)
    }

    fn resident(&mut self, process: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        (&mut *self.0.borrow_mut()).resident(process, range)
    }

    fn split(&mut self, process: u32, page: u64) -> Result<(), Refusal> {
        (&mut *self.0.borrow_mut()).split(process, page)
    }
}

impl ProcessSystem for Shared {
    fn has_ended(&mut self, process: u32) -> bool {
        (&mut *self.0.borrow_mut()).has_ended(process)
    }

    fn now_ns(&mut self) -> u64 {
        (&mut *self.0.borrow_mut()).now_ns()
    }
}

impl PageSystem for &mut Machine {
    fn nodes_of(&mut self, _: u32, addresses: &[usize], status: &mut [i32]) -> Result<(), Errno> {
        if self.ended() {
            return Err(Errno::SRCH);
        }
        for (address, status) in addresses.iter().zip(status) {
            let node = self.nodes.get(Machine::index(*address)).copied();
            *status = node.filter(|node| *node >= 0).unwrap_or(-libc::ENOENT);
        }
        Ok(())
    }

    fn move_pages(
        &mut self,
        _: u32,
        addresses: &[usize],
        node: NodeId,
        status: &mut [i32],
    ) -> Result<usize, Refusal> {
        if self.ended() {
            return Err(Errno::SRCH.into());
        }
        self.named.extend_from_slice(addresses);
        let pages = addresses.len() * if self.huge { 512 } else { 1 };
        let took_ns = self.page_ns * pages as u64;
        self.now_ns += took_ns;
        self.call_ns.push(took_ns);
        if node.0 > 1 {
            return Err(Errno::NODEV.into());
        }
        if addresses.len() > self.room {
            return Err(Errno::NOMEM.into());
        }
        for (address, status) in addresses.iter().zip(status) {
            *status = self.move_one(Machine::index(*address), node.0 as i32);
        }
        Ok(0)
    }

    fn resident(&mut self, _: u32, range: AddressRange) -> Option<Vec<PageRun>> {
        let first = Machine::index(range.start as usize) / 512;
        let huge = !self.split.contains(&first);
        self.huge.then(|| vec![PageRun { range, huge }])
    }

    fn split(&mut self, _: u32, page: u64) -> Result<(), Refusal> {
        if !self.whole {
            self.split.push(Machine::index(page as usize) / 512);
        }
        Ok(())
    }
}

impl ProcessSystem for &mut Machine {
    fn has_ended(&mut self, _: u32) -> bool {
        self.ended()
    }

    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }
}
