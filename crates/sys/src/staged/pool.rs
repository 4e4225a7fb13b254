//! The `Pool` of a mover ([`super::StagedCopy`]; not the pool that serves the heap) holds slots of 2 MiB for its moves: full ones on a
//! node, into which a unit is copied, and empty ones, which receive the old pages. `Whereabouts` says on which node all pages of a unit
//! are, or that they are on several, by all of them or a sample of them.
//!
//! First touches (a fault and a page of zeroes for each) cost more than the copy, so the pages that a move
//! frees become the next move's target, and only the units that recycling cannot supply are made anew.
//!
//! ```text
//!            open                populate
//!   Unused ---------> Vacant    Unused ---------> Ready
//!   (reserved)        (empty: receives old pages)  (full of old bytes: receives a copy)
//!      ^---------------- release ------------------'
//! ```

use super::unit_pages::{PAGE_BYTES, PAGES, PageKind, Reader, UNIT_BYTES};
use crate::memory;
use crate::pages;
use crate::policy::{self, MempolicyMode, NodeMask};

/// State of a slot of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// Address space.
    Unused = 0,
    /// A mapping without pages.
    Vacant = 1,
    /// All its pages, on one node.
    Ready = 2,
}

/// One unit of the pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) state: State,
    pub(super) kind: PageKind,
    pub(super) node: u32,
}

/// Why a unit could not be made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// Every slot is in use: the pool was made too small.
    Slots,
    /// The node has no room, or the kernel put pages elsewhere.
    Node,
    /// The node has no free huge page, or huge pages are off.
    HugePage,
    /// No memory at all, or no mapping left.
    Memory,
}

/// The pool of one mover.
pub(super) struct Pool {
    start: usize,
    slots: &'static mut [Slot],
}

impl Pool {
    /// Reserves address space for the given number of units. Nothing is populated.
    pub(super) fn reserve(units: usize) -> memory::Result<Self> {
        let bytes = units.saturating_add(1).saturating_mul(UNIT_BYTES);
        let start = memory::reserve(bytes)?.next_multiple_of(UNIT_BYTES);
        let list_bytes = units.max(1).saturating_mul(size_of::<Slot>());
        let list = memory::fresh(list_bytes.next_multiple_of(PAGE_BYTES))?;
        let list = core::ptr::with_exposed_provenance_mut::<Slot>(list);
        // SAFETY: a fresh mapping large enough for the list, never unmapped and known to no other code; all
        // zeroes is a valid slot.
        let slots = unsafe { core::slice::from_raw_parts_mut(list, units) };
        Ok(Self { start, slots })
    }

    pub(super) fn slot(&mut self, index: usize) -> &mut Slot {
        &mut self.slots[index]
    }

    pub(super) fn address(&self, index: usize) -> usize {
        self.start + index * UNIT_BYTES
    }

    /// The first slot for which `like` is true.
    pub(super) fn find(&self, like: impl Fn(&Slot) -> bool) -> Option<usize> {
        self.slots.iter().position(like)
    }

    /// Number of slots for which `like` is true.
    pub(super) fn count(&self, like: impl Fn(&Slot) -> bool) -> usize {
        self.slots.iter().filter(|slot| like(slot)).count()
    }

    /// A slot with a mapping that has no pages.
    pub(super) fn open(&mut self, kind: PageKind) -> Result<usize, Shortage> {
        let unused = self.find(|slot| slot.state == State::Unused);
        let index = unused.ok_or(Shortage::Slots)?;
        open_range(self.address(index)).map_err(|_| Shortage::Memory)?;
        self.slots[index] = Slot {
            state: State::Vacant,
            kind,
            node: 0,
        };
        Ok(index)
    }

    /// Fills an unused slot with pages of this kind on this node.
    pub(super) fn populate(
        &mut self,
        reader: &Reader,
        kind: PageKind,
        node: u32,
    ) -> Result<usize, Shortage> {
        let unused = self.find(|slot| slot.state == State::Unused);
        let index = unused.ok_or(Shortage::Slots)?;
        let unit = self.address(index);
        let made = make(unit, kind, node).map_err(|_| Shortage::Memory);
        match made.and_then(|()| check(reader, unit, kind, node)) {
            Ok(()) => {
                self.slots[index] = Slot {
                    state: State::Ready,
                    kind,
                    node,
                };
                Ok(index)
            }
            Err(shortage) => {
                self.release(index);
                Err(shortage)
            }
        }
    }

    /// Empties a slot, other than `keep`, if all are in use: recycled pages of a node or kind that no move
    /// needs would fill the pool for ever.
    pub(super) fn make_room(&mut self, keep: Option<usize>) {
        if self.find(|slot| slot.state == State::Unused).is_some() {
            return;
        }
        if let Some(index) = (0..self.slots.len()).find(|index| Some(*index) != keep) {
            self.release(index);
        }
    }

    /// Releases the memory of every slot.
    pub(super) fn release_all(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].state != State::Unused {
                self.release(index);
            }
        }
    }

    /// Releases a slot's memory; address space stays.
    pub(super) fn release(&mut self, index: usize) {
        // SAFETY: the range is the pool's own. If the kernel refuses, the slot keeps its mapping,
        // which the next `open` or `populate` replaces.
        let _ = unsafe { memory::reserve_again(self.address(index), UNIT_BYTES) };
        self.slots[index].state = State::Unused;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the range is the pool's own, and with the mover gone no code knows it.
        let _ = unsafe { memory::unmap(self.start, self.slots.len() * UNIT_BYTES) };
    }
}

fn open_range(unit: usize) -> memory::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: callers pass a unit of the pool that holds nothing.
    unsafe { memory::map(unit, UNIT_BYTES, access, flags, -1, 0) }.map(|_| ())
}

/// Maps and fills a unit.
fn make(unit: usize, kind: PageKind, node: u32) -> memory::Result<()> {
    let advice = match kind {
        PageKind::Small => libc::MADV_NOHUGEPAGE,
        PageKind::Huge => libc::MADV_HUGEPAGE,
    };
    open_range(unit)?;
    prefer(unit, node);
    // SAFETY: the range is ours; the advice discards nothing. If it is refused, the check reports it.
    let _ = unsafe { memory::advise(unit, UNIT_BYTES, advice) };
    // SAFETY: the range is ours.
    unsafe { memory::advise(unit, UNIT_BYTES, libc::MADV_POPULATE_WRITE) }
}

/// Requests the node, but never binds: a bound range without room would end the program. A kernel without nodes
/// refuses, and the check finds the pages where they are.
fn prefer(unit: usize, node: u32) {
    if let Some(nodes) = NodeMask::of(&[node]) {
        let _ = policy::set_for_range(unit, UNIT_BYTES, MempolicyMode::Preferred, &nodes);
    }
}

fn check(reader: &Reader, unit: usize, kind: PageKind, node: u32) -> Result<(), Shortage> {
    let view = reader.view(unit).map_err(|_| Shortage::Memory)?;
    if !view.there.is_full() {
        return Err(Shortage::Memory);
    }
    if kind == PageKind::Huge && !view.huge {
        return Err(Shortage::HugePage);
    }
    match Whereabouts::exactly(unit, kind) {
        Whereabouts::On(there) if there != node => Err(Shortage::Node),
        Whereabouts::Several => Err(Shortage::Node),
        _ => Ok(()),
    }
}

/// The nodes of a unit's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// All on this one.
    On(u32),
    /// On more than one.
    Several,
    /// The kernel does not report it.
    Unknown,
}

/// Group size in pages: [`Whereabouts::of`] queries one page of each group.
const GROUP: usize = 16;

impl Whereabouts {
    /// Queries one page in 16 (the kernel takes 0.2 us to find each, and a copy of all of them takes no longer
    /// than a query of all). The position in the group changes from group to group, so that interleaved pages
    /// are not mistaken for pages of one node. A page in a hundred elsewhere may be missed.
    pub(super) fn of(unit: usize, kind: PageKind) -> Self {
        let page = |group: usize| (group * GROUP) + (group * 7 + unit / UNIT_BYTES * 5) % GROUP;
        match kind {
            PageKind::Small => {
                Self::ask(&core::array::from_fn::<_, { PAGES / GROUP }, _>(|group| {
                    unit + page(group) * PAGE_BYTES
                }))
            }
            PageKind::Huge => Self::ask(&[unit]),
        }
    }

    /// Queries every page; a huge page is queried once.
    pub(super) fn exactly(unit: usize, kind: PageKind) -> Self {
        match kind {
            PageKind::Small => Self::ask(&core::array::from_fn::<_, PAGES, _>(|page| {
                unit + page * PAGE_BYTES
            })),
            PageKind::Huge => Self::ask(&[unit]),
        }
    }

    /// Absent pages do not count.
    fn ask(addresses: &[usize]) -> Self {
        let mut status = [-1; PAGES];
        let status = &mut status[..addresses.len()];
        if pages::nodes_of(0, addresses, status).is_err() {
            return Self::Unknown;
        }
        let mut nodes = status.iter().filter(|node| **node >= 0);
        let Some(&first) = nodes.next() else {
            return Self::Unknown;
        };
        if nodes.all(|node| *node == first) {
            Self::On(first as u32)
        } else {
            Self::Several
        }
    }
}
