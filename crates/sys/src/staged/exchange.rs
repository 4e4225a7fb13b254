//! Moves a unit of 2 MiB to another node by `UFFDIO_MOVE` (Linux 6.8): takes its pages away, copies them, puts the copy in place.
//!
//! ```text
//!   unit S    [ old pages ]      [ empty, held ]        [ new pages ]
//!                  | take                                    ^ put
//!   slot T    [ empty     ] ---> [ old pages ]                |
//!                                     | copy                  |
//!   slot D    [ Ready     ]      [ new pages ] ---------------'
//! ```
//!
//! A thread that touches S while it is empty waits in a page fault, and then finds the copy. No thread can
//! write to T, so the copy is exact: there is no round to repeat and no comparison. The kernel refuses to take
//! away pages that a device is writing to (pinned, `EBUSY`), that are shared since a fork (`EBUSY`) or that are
//! locked (`EINVAL`). The mapping of S stays: its advice, policy, name and protection are as they were, and no
//! mapping is left behind.

use core::ops::Range;

use rustix::io::Errno;

use super::pool::{Shortage, Slot, State, Whereabouts};
use super::unit_pages::{PAGE_BYTES, PageKind, View};
use super::{StagedCopy, UNIT_BYTES, UNREADABLE, UnitFate, Work};
use crate::clock::now_ns;
use crate::memory;
use crate::userfaultfd::Userfaultfd;

/// Retries of a call when the kernel reports "try again" without any progress.
const TRIES: usize = 64;

/// The kernel refused to take pages away: a device or another process holds them.
struct Held;

impl StagedCopy {
    /// Moves a unit that `view` describes.
    ///
    /// After a fork, pages count as shared until they are written, even when the child has long ended. The
    /// kernel is requested to do what a write would do, which changes no content: the page becomes the
    /// program's alone, or, where the child still has it, is copied for the program.
    ///
    /// # Safety
    /// As [`StagedCopy::move_unit`].
    pub(super) unsafe fn exchange(
        &mut self,
        unit: usize,
        node: u32,
        view: &View,
        source: Whereabouts,
    ) -> UnitFate {
        // SAFETY: the caller's promise, here and below.
        if let Ok(fate) = unsafe { self.exchange_once(unit, node, view, source) } {
            return fate;
        }
        for run in view.there.runs() {
            // SAFETY: the advice changes no content, and the pages are resident.
            let _ =
                unsafe { memory::advise(unit + run.start, run.len(), libc::MADV_POPULATE_WRITE) };
        }
        let Ok(view) = self.reader.view(unit) else {
            return UNREADABLE;
        };
        // SAFETY: as above.
        unsafe { self.exchange_once(unit, node, &view, source) }
            .unwrap_or_else(|Held| refused(Errno::BUSY))
    }

    unsafe fn exchange_once(
        &mut self,
        unit: usize,
        node: u32,
        view: &View,
        source: Whereabouts,
    ) -> Result<UnitFate, Held> {
        let kind = view.page_kind();
        let (target, empty) = match self.two_slots(kind, node) {
            Ok(slots) => slots,
            Err(shortage) => return Ok(shortage.into()),
        };
        let (to, away) = (self.pool.address(target), self.pool.address(empty));
        let range = unit..unit + UNIT_BYTES;
        // SAFETY: until `unregister` below, each thread that touches the unit waits; this thread does not touch
        // it.
        if let Err(error) = unsafe { self.uffd.register(&range) } {
            return Ok(refused(error));
        }
        let begun_ns = now_ns();
        // SAFETY: T is the pool's own and empty; S is the caller's promise.
        let taken = unsafe { self.take_pages(unit, away, view) };
        if let Err(error) = taken {
            self.put_back(unit, away);
            self.let_go(&range);
            return if error == Errno::BUSY {
                Err(Held)
            } else {
                Ok(refused(error))
            };
        }
        let Some(held) = taken.ok().flatten().or_else(|| self.reader.view(away).ok()) else {
            self.put_back(unit, away);
            self.let_go(&range);
            return Ok(UNREADABLE);
        };
        // SAFETY: no other thread touches T and D, and the pages of T are all present.
        unsafe { self.crew.copy(away, to, &held.there) };
        let put = self.put(unit, to, &held);
        if put.is_err() {
            // Pages that were put stay; of the rest the old pages hold the same bytes.
            self.put_back(unit, away);
        }
        self.let_go(&range);
        let stop_ns = now_ns().saturating_sub(begun_ns);
        self.settle(target, empty, &held, put.is_ok(), source);
        Ok(match put {
            Ok(()) => UnitFate::Moved(Work {
                pages: held.there.count() as u32,
                kind,
                stop_ns,
            }),
            Err(error) => refused(error),
        })
    }

    /// A full slot on the node and an empty one, both registered.
    fn two_slots(&mut self, kind: PageKind, node: u32) -> Result<(usize, usize), Shortage> {
        let ready =
            |slot: &Slot| slot.state == State::Ready && slot.kind == kind && slot.node == node;
        let vacant = |slot: &Slot| slot.state == State::Vacant && slot.kind == kind;
        let target = match self.pool.find(ready) {
            Some(index) => index,
            None => self.make_ready(kind, node)?,
        };
        let empty = match self.pool.find(vacant) {
            Some(index) => index,
            None => self.make_vacant(kind, target)?,
        };
        Ok((target, empty))
    }

    fn make_vacant(&mut self, kind: PageKind, keep: usize) -> Result<usize, Shortage> {
        self.pool.make_room(Some(keep));
        let index = self.pool.open(kind)?;
        self.register_slot(index)?;
        Ok(index)
    }

    /// Makes a slot full of pages, and registers it.
    pub(super) fn make_ready(&mut self, kind: PageKind, node: u32) -> Result<usize, Shortage> {
        self.pool.make_room(None);
        let index = self.pool.populate(&self.reader, kind, node)?;
        self.register_slot(index)?;
        Ok(index)
    }

    fn register_slot(&mut self, index: usize) -> Result<(), Shortage> {
        let address = self.pool.address(index);
        // SAFETY: only this thread and its helpers touch the pool, and only pages that are present.
        let registered = unsafe { self.uffd.register(&(address..address + UNIT_BYTES)) };
        registered.map_err(|_| {
            self.pool.release(index);
            Shortage::Memory
        })
    }

    /// Takes the unit's pages to T. Where all of them were present and all were moved, T is what S was observed
    /// to be, and needs no check while S is held.
    ///
    /// # Safety
    /// As [`StagedCopy::exchange`]; S is registered, T the pool's own and empty.
    unsafe fn take_pages(
        &self,
        unit: usize,
        away: usize,
        view: &View,
    ) -> Result<Option<View>, Errno> {
        let mut done = 0;
        if view.there.is_full() {
            // SAFETY: the caller's promise, here and below.
            let step = unsafe { self.uffd.move_pages(away, unit, UNIT_BYTES, false) };
            if step.error.is_none() && step.bytes == UNIT_BYTES {
                return Ok(Some(*view));
            }
            done = step.bytes;
        }
        // A page was discarded since, or the kernel requires another attempt.
        // SAFETY: as above.
        unsafe { move_all(&self.uffd, away + done, unit + done, UNIT_BYTES - done) }.map(|()| None)
    }

    fn put(&self, unit: usize, from: usize, held: &View) -> Result<(), Errno> {
        if held.there.is_full() {
            // SAFETY: S is empty and held; D is the pool's own.
            return unsafe { move_all(&self.uffd, unit, from, UNIT_BYTES) };
        }
        for run in held.there.runs() {
            // SAFETY: as above.
            unsafe { move_all(&self.uffd, unit + run.start, from + run.start, run.len())? };
        }
        Ok(())
    }

    /// Brings all pages that are in T and not in S back to S. S is held, so its pages have no other source: an
    /// attempt that fails for lack of memory is repeated until it succeeds.
    fn put_back(&self, unit: usize, away: usize) {
        loop {
            let (Ok(old), Ok(home)) = (self.reader.view(away), self.reader.view(unit)) else {
                continue;
            };
            let missing = old.there.and(&home.there.inverse());
            if missing.count() == 0 {
                return;
            }
            for run in missing.runs() {
                for page in run.step_by(PAGE_BYTES) {
                    self.put_page_back(unit + page, away + page);
                }
            }
        }
    }

    /// Brings one page back, or leaves it for another try. A mapping that was locked or protected since differs
    /// from the slot's, and the kernel moves no page between the two (`EINVAL`): that page is copied back. A
    /// page whose mapping is gone has no target, and no thread waits for it.
    fn put_page_back(&self, home: usize, away: usize) {
        // SAFETY: the page was taken from there, S is held, and T is the pool's own.
        let moved = unsafe { move_all(&self.uffd, home, away, PAGE_BYTES) };
        if !matches!(moved, Err(Errno::INVAL | Errno::NOENT)) {
            return;
        }
        // SAFETY: as above.
        let copied = unsafe { self.uffd.copy(home, away, PAGE_BYTES) };
        if copied.error == Some(Errno::NOENT) {
            // SAFETY: the page is the pool's, and its source is not memory any more.
            let _ = unsafe { memory::advise(away, PAGE_BYTES, libc::MADV_DONTNEED) };
        }
    }

    /// Lets all threads touch the unit again. The kernel refuses a range as a whole where a part of it has
    /// become memory of another kind.
    fn let_go(&self, unit: &Range<usize>) {
        if self.uffd.unregister(unit).is_err() {
            for page in unit.clone().step_by(PAGE_BYTES) {
                let _ = self.uffd.unregister(&(page..page + PAGE_BYTES));
            }
        }
    }

    /// Records the new state of the two slots: T has the old pages, D is empty.
    fn settle(&mut self, target: usize, empty: usize, held: &View, put: bool, source: Whereabouts) {
        let recyclable = put && held.there.is_full();
        if recyclable {
            self.pool.slot(target).state = State::Vacant;
        } else {
            self.pool.release(target);
        }
        match source {
            Whereabouts::On(node) if recyclable && self.keeps_another() => {
                let slot = self.pool.slot(empty);
                slot.state = State::Ready;
                slot.node = node;
            }
            _ => self.pool.release(empty),
        }
    }
}

/// Moves the pages of a range, holes skipped, and retries while the kernel requires it.
///
/// # Safety
/// As [`Userfaultfd::move_present`].
unsafe fn move_all(uffd: &Userfaultfd, to: usize, from: usize, bytes: usize) -> Result<(), Errno> {
    let (mut done, mut idle) = (0, 0);
    while done < bytes {
        // SAFETY: the caller's promise.
        let step = unsafe { uffd.move_present(to + done, from + done, bytes - done) };
        done += step.bytes;
        match step.error {
            None => {}
            Some(_) if step.bytes > 0 => {}
            Some(Errno::AGAIN) if idle < TRIES => idle += 1,
            Some(error) => return Err(error),
        }
        if step.error.is_none() && step.bytes == 0 {
            return Err(Errno::IO);
        }
    }
    Ok(())
}

/// The meaning of a refusal of the kernel.
fn refused(error: Errno) -> UnitFate {
    match error {
        Errno::BUSY => {
            UnitFate::Busy("pages are pinned for a device, or shared with another process")
        }
        Errno::AGAIN => UnitFate::Busy("the kernel is changing the memory map; try again"),
        Errno::NOMEM => UnitFate::Busy("the kernel has no memory for page tables"),
        Errno::INVAL | Errno::NOENT => UnitFate::Denied(
            "not one private anonymous mapping that can be written and is not locked (mlock); \
             kernel migration can move it",
        ),
        Errno::PERM | Errno::ACCESS => UnitFate::Denied("the kernel does not allow it"),
        _ => UnitFate::Busy("the kernel refused for a reason of its own; try again"),
    }
}
