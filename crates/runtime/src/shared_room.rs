//! [`SharedRoom`] takes room for one page at a time in the fast tier of an emulated machine with a name, and gives it back. The room is
//! counted in a [`Ledger`] that the processes of all runs on the machine share; each process notes which of its pages have room.
//!
//! ```text
//! page_tiers --take--> ledger (shared by all runs on the machine)      a page that becomes fast
//!            --keep--> charge of the page (this process)
//!            --give back--> charge, then ledger                        a page that becomes slow, or holds nothing
//! ```
//!
//! The share of a process is given back when it exits, and, where it was killed, by the next one that is short of room and can tell
//! that it ended. A forked child begins without a share, because the kernel wipes the charges in it (`MADV_WIPEONFORK`): the fast
//! pages that it inherits are its parent's, and the copies that writes make are not counted.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use isotherm_abi::capacity::{FILE_BYTES, FILE_NAME, LIMITED_TIERS};
use isotherm_abi::session::OffReason;
use isotherm_sys::memory::PAGE_BYTES;

use crate::clock;
use crate::ledger::Ledger;
use crate::ledger::own_slot::OwnShare;
use crate::shared_file;

/// Number of the fast tier in the ledger.
const FAST: u32 = 0;
/// Bytes of a page as the ledger counts them.
const PAGE: u64 = PAGE_BYTES as u64;
/// Time between two searches for processes that ended: a search asks the kernel about each process of the machine.
const SEARCH_EVERY_NS: u64 = 100_000_000;

/// The room of the machine, and the part of it that this process has.
pub(crate) struct SharedRoom {
    /// The share of this process, with a charge of 1 for each page that has room.
    own: OwnShare,
    /// Time of the last search.
    searched_ns: AtomicU64,
}

impl SharedRoom {
    /// The room of the session's machine, for tables of this many pages; `None` where the machine has no name, or no limit.
    ///
    /// # Errors
    /// [`OffReason::NoSession`], [`OffReason::NoAddressSpace`], [`OffReason::BadConfig`] for a file of another version.
    pub(crate) fn of_session(
        directory: Option<&CStr>,
        pages: usize,
    ) -> Result<Option<Self>, OffReason> {
        let Some(base) = shared_file::map(directory, FILE_NAME, FILE_BYTES)? else {
            return Ok(None);
        };
        let limits = [u64::MAX; LIMITED_TIERS];
        // SAFETY: the file is as long as that, only this user writes it, and it is never unmapped.
        let ledger = unsafe { Ledger::at(base, limits) }.ok_or(OffReason::BadConfig)?;
        if !ledger.is_limited(FAST) {
            return Ok(None);
        }
        let own = OwnShare::map(ledger, pages).map_err(|_| OffReason::NoAddressSpace)?;
        Ok(Some(Self {
            own,
            searched_ns: AtomicU64::new(0),
        }))
    }

    /// Takes room for a page. [`Self::keep`] or [`Self::return_unused`] must follow.
    pub(crate) fn take(&self) -> bool {
        let Some(slot) = self.own.slot() else {
            return false;
        };
        let take = || self.own.ledger.take(slot, FAST, PAGE, PAGE) > 0;
        take() || (self.search() && take())
    }

    /// Gives back the shares of processes that ended, unless that was done lately.
    fn search(&self) -> bool {
        let now = clock::now_ns();
        let last = self.searched_ns.load(Ordering::Relaxed);
        if now.saturating_sub(last) < SEARCH_EVERY_NS {
            return false;
        }
        self.searched_ns.store(now, Ordering::Relaxed);
        self.own.reap();
        true
    }

    /// Assigns the room that [`Self::take`] took to this page.
    pub(crate) fn keep(&self, page: usize) {
        // Another thread may have given the page up before its charge was noted: then that room is still taken.
        if self
            .charge(page)
            .is_none_or(|charge| charge.swap(1, Ordering::AcqRel) != 0)
        {
            self.return_unused();
        }
    }

    /// Gives back room that no page uses.
    pub(crate) fn return_unused(&self) {
        if let Some(slot) = self.own.slot() {
            self.own.ledger.give_back(slot, FAST, PAGE);
        }
    }

    /// Gives back the room of a page, if this process took it.
    pub(crate) fn give_back(&self, page: usize) {
        if self
            .charge(page)
            .is_some_and(|charge| charge.swap(0, Ordering::AcqRel) != 0)
        {
            self.return_unused();
        }
    }

    fn charge(&self, page: usize) -> Option<&AtomicU8> {
        self.own.charges.get(page)
    }

    /// Bytes that this process has and bytes that no process has, together.
    pub(crate) fn bytes(&self) -> u64 {
        let share = self
            .own
            .slot()
            .map_or(0, |slot| self.own.ledger.share(slot, FAST));
        share.saturating_add(self.own.ledger.available(FAST))
    }

    /// Gives this process's share back at its exit. No further page gets room.
    pub(crate) fn finish(&self) {
        self.own.leave();
    }
}
