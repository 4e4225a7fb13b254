//! Moves a unit by `mremap`: copy it while the program writes, copy the written pages again, then take it away
//! for a moment, copy the rest, and map the copy in its place.
//!
//! ```text
//!   write-protect S, copy S to D
//!   again: what was written?  protect it, copy it          (up to ROUNDS times, while there is much)
//!   stop:  S's page tables to T, S waits | copy what is left | D's page tables to S, wake
//! ```
//!
//! With *write traces* (`UFFD_FEATURE_WP_ASYNC`, Linux 6.7) no thread waits before the stop. Since Linux 6.14
//! `mremap` wipes the traces unless its message (`UFFD_EVENT_REMAP`) is waited for, and the thread that calls
//! it sleeps until another one has read that; so a helper calls and this thread reads. Without traces (*hold*,
//! Linux 5.7) writers wait from the start, readers only in the stop. Without write protection (*remap*) the
//! stop comes first and contains all of the copy.
//!
//! This method cannot detect pages that a device writes to; [`super::exchange`] can. Memory with direct I/O in
//! flight must not be moved this way. The unit's mapping is replaced, so its advice is the pool's afterwards;
//! and a mapping may be left behind for each unit, which is counted against `max_map_count`.

use core::ops::Range;

use super::copy_workers::take_away;
use super::exchange::refused;
use super::pool::{PageKind, Shortage, Slot, State, Whereabouts};
use super::unit_pages::{UnitPages, View};
use super::{StagedCopy, UNIT_BYTES, UNREADABLE, UnitFate, Work, now_ns};
use crate::memory;
use crate::userfaultfd::{Message, Modes};

/// Most rounds before the stop: more rounds do not help against a program that writes faster than we copy.
const ROUNDS: u32 = 4;
/// Pages that are left to the stop: 16 of 4 KiB take some 10 us.
const FEW: usize = 16;
/// Attempts to map the copy in place.
const TRIES: usize = 64;

/// The four addresses of a move.
struct RoundBuffers {
    unit: Range<usize>,
    away: Range<usize>,
    to: usize,
}

impl StagedCopy {
    /// Moves a unit that `view` describes, with write traces or by holding writers.
    ///
    /// # Safety
    /// As [`StagedCopy::move_unit`], and no device writes to the unit.
    pub(super) unsafe fn remap(
        &mut self,
        unit: usize,
        node: u32,
        view: &View,
        source: Whereabouts,
    ) -> UnitFate {
        if !self.limits.have_room() {
            return UnitFate::NotAttempted(
                "the process has nearly vm.max_map_count mappings; raise it, or use a kernel with \
                 UFFDIO_MOVE (Linux 6.8)",
            );
        }
        let kind = view.page_kind();
        let (target, empty) = match self.slots_to_remap(kind, node) {
            Ok(slots) => slots,
            Err(shortage) => return shortage.into(),
        };
        let away = self.pool.address(empty);
        let places = RoundBuffers {
            unit: unit..unit + UNIT_BYTES,
            away: away..away + UNIT_BYTES,
            to: self.pool.address(target),
        };
        let (copied, rounds) = match self.copy_in_rounds(&places) {
            Ok(done) => done,
            Err(fate) => {
                let _ = self.uffd.unregister(&places.unit);
                return fate;
            }
        };
        let begun_ns = now_ns();
        let stopped = self.stop(&places, &copied);
        let stop_ns = now_ns().saturating_sub(begun_ns);
        self.clean(&places, stopped.is_ok());
        match stopped {
            Ok(held) => {
                self.settle_remapped(target, empty, kind, &held, source);
                UnitFate::Moved(Work {
                    pages: held.there.count() as u32,
                    kind,
                    rounds,
                    stop_ns,
                })
            }
            Err(fate) => {
                self.pool.release(empty);
                fate
            }
        }
    }

    /// A full slot on the node, and an unused one.
    fn slots_to_remap(&mut self, kind: PageKind, node: u32) -> Result<(usize, usize), Shortage> {
        let ready =
            |slot: &Slot| slot.state == State::Ready && slot.kind == kind && slot.node == node;
        let target = match self.pool.find(ready) {
            Some(index) => index,
            None => self.make_ready(kind, node)?,
        };
        self.pool.make_room(Some(target));
        let unused = self.pool.find(|slot| slot.state == State::Unused);
        Ok((target, unused.ok_or(Shortage::Slots)?))
    }

    /// Copies the unit while the program runs. Returns the pages copied at least once, and the number of rounds
    /// after the first.
    fn copy_in_rounds(&self, places: &RoundBuffers) -> Result<(UnitPages, u32), UnitFate> {
        let unit = &places.unit;
        if !self.method.protects() {
            return Ok((UnitPages::default(), 0));
        }
        let traces = self.method.traces();
        let modes = if traces {
            Modes::WRITE_PROTECT
        } else {
            Modes::BOTH
        };
        // SAFETY: with traces no thread waits; without them each thread that writes to the unit waits until it
        // is mapped anew and woken, and this thread does not write to it.
        unsafe { self.uffd.register_modes(unit, modes) }.map_err(refused)?;
        self.uffd.write_protect(unit).map_err(refused)?;
        let mut copied = UnitPages::default();
        let mut round = 0;
        loop {
            let view = self.reader.view(unit.start).map_err(|_| UNREADABLE)?;
            let wanted = if round == 0 { view.there } else { view.written };
            if round > 0 && (wanted.count() <= FEW || round > ROUNDS) {
                return Ok((copied, round - 1));
            }
            if round > 0 {
                for run in wanted.runs() {
                    let run = unit.start + run.start..unit.start + run.end;
                    self.uffd.write_protect(&run).map_err(refused)?;
                }
            }
            // SAFETY: the unit is the caller's promise; the pages of D are the pool's own. A page that is
            // written meanwhile is found written, and copied again.
            unsafe { self.crew.copy(unit.start, places.to, &wanted) };
            copied = copied.or(&wanted);
            round += 1;
            if !traces {
                return Ok((copied, 0));
            }
        }
    }

    /// Takes the unit away, copies the remaining pages, and maps the copy in its place.
    fn stop(&self, places: &RoundBuffers, copied: &UnitPages) -> Result<View, UnitFate> {
        let (unit, away) = (places.unit.start, places.away.start);
        let modes = if self.method.protects() {
            Modes::BOTH
        } else {
            Modes::MISSING
        };
        // SAFETY: from now on each thread that touches an absent page waits for the wake below.
        unsafe { self.uffd.register_modes(&places.unit, modes) }.map_err(refused)?;
        self.take(unit, away)?;
        let held = loop {
            if let Ok(view) = self.reader.view(away) {
                break view;
            }
        };
        let written = if self.method.traces() {
            held.written
        } else {
            UnitPages::default()
        };
        let left = held.there.and(&written.or(&copied.inverse()));
        // SAFETY: T and D are the pool's own, and no other thread touches them.
        unsafe { self.crew.copy(away, places.to, &left) };
        for hole in held.there.inverse().runs() {
            // SAFETY: D is the pool's own; a page that the program does not have must read as zero.
            let _ =
                unsafe { memory::advise(places.to + hole.start, hole.len(), libc::MADV_DONTNEED) };
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        for _ in 0..TRIES {
            // SAFETY: S is empty and held, D is the pool's own and holds the content of S.
            if unsafe { memory::remap(places.to, UNIT_BYTES, UNIT_BYTES, flags, unit) }.is_ok() {
                let _ = self.uffd.wake(&places.unit);
                return Ok(held);
            }
        }
        self.wait_for_helper();
        let _ = self.uffd.unregister(&places.away);
        // SAFETY: T holds the pages taken from S.
        let _ = unsafe { memory::remap(away, UNIT_BYTES, UNIT_BYTES, flags, unit) };
        let _ = self.uffd.wake(&places.unit);
        Err(UnitFate::Busy(
            "the kernel has no memory for a mapping; try again",
        ))
    }

    /// Moves S's page tables to T.
    fn take(&self, unit: usize, away: usize) -> Result<(), UnitFate> {
        let refused = |memory::Errno(number)| match number {
            libc::ENOMEM | libc::EAGAIN => {
                UnitFate::Busy("the kernel has no memory for a mapping; try again")
            }
            _ => {
                UnitFate::Denied("not one private anonymous mapping; kernel migration can move it")
            }
        };
        if !self.method.traces() {
            // SAFETY: S is the caller's promise and registered, T is the pool's own.
            return unsafe { take_away(unit, away) }.map_err(refused);
        }
        // SAFETY: as above.
        unsafe { self.crew.begin_take_away(unit, away) };
        let mut messages = [Message::default(); 16];
        loop {
            if let Some(Err(error)) = self.crew.taken_away() {
                return Err(refused(error));
            }
            let count = self.uffd.read(&mut messages).unwrap_or(0);
            if messages[..count].iter().any(Message::is_remap) {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }

    /// Waits until the helper has returned from its `mremap`.
    fn wait_for_helper(&self) {
        while self.method.traces() && self.crew.taken_away().is_none() {
            std::thread::yield_now();
        }
    }

    /// Ends the registrations, outside the stop.
    fn clean(&mut self, places: &RoundBuffers, mapped: bool) {
        self.wait_for_helper();
        if !mapped {
            let _ = self.uffd.unregister(&places.unit);
            return;
        }
        self.limits.spend();
        if !self.method.protects() {
            return;
        }
        // Before Linux 6.14 the pages keep their protection on the way to T; a registration and its end wipe
        // it.
        // SAFETY: only this thread touches T.
        let _ = unsafe { self.uffd.register_modes(&places.away, Modes::WRITE_PROTECT) };
        let _ = self.uffd.unregister(&places.away);
        let mut messages = [Message::default(); 16];
        while self.uffd.read(&mut messages).is_ok_and(|count| count > 0) {}
    }

    /// Records the new state of the two slots: D's place is empty, T has the old pages.
    fn settle_remapped(
        &mut self,
        target: usize,
        empty: usize,
        kind: PageKind,
        held: &View,
        source: Whereabouts,
    ) {
        self.pool.release(target);
        // A first write to a protected huge page splits its mapping: such a unit is not huge any more, which
        // would harm the next user of its pages.
        let whole = held.there.is_full() && (kind == PageKind::Small || held.huge != Some(false));
        match source {
            Whereabouts::On(node) if whole && self.keeps_another() => {
                let slot = Slot {
                    state: State::Ready,
                    kind,
                    node,
                };
                self.pool.set(empty, slot);
            }
            _ => self.pool.release(empty),
        }
    }
}
