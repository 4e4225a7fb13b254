//! [`FastRoom`] bounds the fast tier of the emulation by time: it counts the pages of this process in it, and on an emulated machine with a
//! name takes room only from what other processes leave.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::emulation::PAGE_BYTES;
use crate::shared_room::SharedRoom;

/// The fast pages of this process and their limit.
pub(crate) struct FastRoom {
    pages: AtomicU64,
    /// Pages that there is room for.
    limit: u64,
    /// The part of it that other processes of the machine leave, where it has a name.
    shared: Option<SharedRoom>,
}

impl FastRoom {
    /// Room for this many bytes, and no more than the machine has.
    pub(crate) const fn new(bytes: u64, shared: Option<SharedRoom>) -> Self {
        Self {
            pages: AtomicU64::new(0),
            limit: bytes / PAGE_BYTES as u64,
            shared,
        }
    }

    /// Takes room for one page, if there is any. [`Self::keep`] or [`Self::return_unused`] must follow.
    pub(crate) fn take(&self) -> bool {
        let taken = |pages| (pages < self.limit).then_some(pages + 1);
        let is_taken = self
            .pages
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken)
            .is_ok();
        if is_taken && self.shared.as_ref().is_some_and(|shared| !shared.take()) {
            self.pages.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        is_taken
    }

    /// Assigns the room that [`Self::take`] took to this page.
    pub(crate) fn keep(&self, page: usize) {
        if let Some(shared) = &self.shared {
            shared.keep(page);
        }
    }

    /// Gives back room that no page uses.
    pub(crate) fn return_unused(&self) {
        self.pages.fetch_sub(1, Ordering::Relaxed);
        if let Some(shared) = &self.shared {
            shared.return_unused();
        }
    }

    /// Gives back the room of a page that is fast no more.
    pub(crate) fn leave(&self, page: usize) {
        self.pages.fetch_sub(1, Ordering::Relaxed);
        if let Some(shared) = &self.shared {
            shared.give_back(page);
        }
    }

    /// Fast pages of this process.
    pub(crate) fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Pages that this process can have: its own, and those that no process has.
    pub(crate) fn pages_at_most(&self) -> u64 {
        let shared = self.shared.as_ref().map(SharedRoom::bytes);
        shared.map_or(self.limit, |bytes| {
            self.limit.min(bytes / PAGE_BYTES as u64)
        })
    }

    /// Gives all room that other processes can use back, at the end of this one.
    pub(crate) fn finish(&self) {
        if let Some(shared) = &self.shared {
            shared.finish();
        }
    }
}
