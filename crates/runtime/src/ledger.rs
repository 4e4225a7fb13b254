//! [`Ledger`] shares limited tiers among all processes of a run, or of an emulated machine with a name: a mapped file
//! ([`isotherm_abi::capacity`]) counts the bytes that each process placed; a process takes no more than the limit leaves, and the share of
//! a process that ended is given back.
//!
//! Every function is lock-free: a process that is stopped or killed in the middle keeps no other from placing.

pub(crate) mod own_slot;

use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::VERSION;
use isotherm_abi::capacity::{
    CLOSING, CapacityHeader, CapacitySlot, LIMITED_TIERS, MAGIC, SLOTS, SLOTS_OFFSET,
};

/// A process, as far as others can find out whether it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessName {
    pub(crate) pid: u32,
    /// Inode of its pid namespace; 0 where it is not known.
    pub(crate) namespace: u32,
}

impl ProcessName {
    /// As in [`CapacitySlot::process`].
    const fn word(self) -> u64 {
        (self.pid as u64) << 32 | self.namespace as u64
    }

    const fn of(word: u64) -> Self {
        Self {
            pid: (word >> 32) as u32,
            namespace: word as u32,
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Ledger {
    header: &'static CapacityHeader,
    slots: &'static [CapacitySlot],
    limits: [u64; LIMITED_TIERS],
}

impl Ledger {
    /// The ledger at `base`; `None` where the file is not one of this version.
    ///
    /// # Safety
    /// A capacity file is mapped there for reading and writing, page-aligned and whole, and stays mapped.
    pub(crate) unsafe fn at(base: usize, limits: [u64; LIMITED_TIERS]) -> Option<Self> {
        // SAFETY: the caller's promise; all that changes is atomic.
        let (header, slots) = unsafe {
            let slots = core::ptr::with_exposed_provenance(base + SLOTS_OFFSET);
            (
                &*core::ptr::with_exposed_provenance::<CapacityHeader>(base),
                core::slice::from_raw_parts(slots, SLOTS),
            )
        };
        (header.magic == MAGIC && header.version == VERSION).then_some(Self {
            header,
            slots,
            limits,
        })
    }

    /// Whether the capacity of the tier is limited.
    pub(crate) fn is_limited(&self, tier: u32) -> bool {
        self.limit(tier) != u64::MAX
    }

    fn limit(&self, tier: u32) -> u64 {
        let of_machine = self.header.fast_limit.load(Ordering::Relaxed);
        if tier == 0 && of_machine > 0 {
            return of_machine;
        }
        self.limits.get(tier as usize).copied().unwrap_or(u64::MAX)
    }

    /// Bytes of a tier that no process has placed.
    pub(crate) fn available(&self, tier: u32) -> u64 {
        let placed = self.header.placed.get(tier as usize);
        let placed = placed.map_or(0, |placed| placed.load(Ordering::Relaxed));
        self.limit(tier).saturating_sub(placed)
    }

    /// Finds a slot for a process, and gives back the shares of earlier processes of this name, which must have ended since
    /// this one lives. `None` where all slots are taken.
    pub(crate) fn join(&self, process: ProcessName) -> Option<usize> {
        for slot in self.slots {
            if slot.process.load(Ordering::Acquire) == process.word() {
                self.empty(slot, process.word());
            }
        }
        let joined = |slot: &CapacitySlot| {
            let word = &slot.process;
            word.compare_exchange(0, process.word(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        };
        self.slots.iter().position(joined)
    }

    /// Gives back the share in a slot and frees it.
    pub(crate) fn leave(&self, slot: usize) {
        let slot = &self.slots[slot];
        self.empty(slot, slot.process.load(Ordering::Acquire));
    }

    /// Gives back the share of a process and frees its slot, unless another process does so.
    fn empty(&self, slot: &CapacitySlot, process: u64) {
        let word = &slot.process;
        if word
            .compare_exchange(process, CLOSING, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        for (sum, share) in self.header.placed.iter().zip(&slot.placed) {
            lower(sum, share.swap(0, Ordering::AcqRel));
        }
        word.store(0, Ordering::Release);
    }

    /// Gives back the shares of processes in `own`'s namespace that have ended.
    pub(crate) fn reap(&self, own: ProcessName, has_ended: impl Fn(u32) -> bool) {
        for slot in self.slots {
            let word = slot.process.load(Ordering::Acquire);
            if word != 0
                && word != CLOSING
                && let process = ProcessName::of(word)
                && process.namespace == own.namespace
                && process.pid != own.pid
                && has_ended(process.pid)
            {
                self.empty(slot, word);
            }
        }
    }

    /// Takes room for at most `wanted` bytes of a tier, in whole units. Returns the bytes that were taken.
    pub(crate) fn take(&self, slot: usize, tier: u32, wanted: u64, unit: u64) -> u64 {
        let limit = self.limit(tier);
        let (Some(sum), Some(share)) = (
            self.header.placed.get(tier as usize),
            self.slots[slot].placed.get(tier as usize),
        ) else {
            return wanted;
        };
        let fitting = |placed: u64| {
            let room = limit.saturating_sub(placed).min(wanted);
            room - room % unit
        };
        let add = |placed| Some(placed + fitting(placed)).filter(|_| fitting(placed) > 0);
        let taken = sum
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, add)
            .map_or(0, fitting);
        share.fetch_add(taken, Ordering::AcqRel);
        taken
    }

    /// Gives bytes of a tier back.
    pub(crate) fn give_back(&self, slot: usize, tier: u32, bytes: u64) {
        let (Some(sum), Some(share)) = (
            self.header.placed.get(tier as usize),
            self.slots[slot].placed.get(tier as usize),
        ) else {
            return;
        };
        lower(sum, lower(share, bytes));
    }

    /// Bytes of a tier that a process has placed.
    pub(crate) fn share(&self, slot: usize, tier: u32) -> u64 {
        let share = self.slots[slot].placed.get(tier as usize);
        share.map_or(0, |share| share.load(Ordering::Relaxed))
    }
}

/// Lowers a sum by `bytes`, never below zero. Returns by how much.
fn lower(sum: &AtomicU64, bytes: u64) -> u64 {
    let less = |sum: u64| Some(sum.saturating_sub(bytes));
    sum.fetch_update(Ordering::AcqRel, Ordering::Acquire, less)
        .map_or(0, |before| before.min(bytes))
}

#[cfg(test)]
mod tests {
    use isotherm_abi::capacity::{FILE_BYTES, LIMITED_TIERS, SLOTS, first_bytes};

    use super::{Ledger, Ordering, ProcessName};

    const UNIT: u64 = 2 << 20;

    fn ledger(units: u64) -> Ledger {
        let file: &'static mut [u64] = Box::leak(vec![0; FILE_BYTES / 8].into_boxed_slice());
        let base = file.as_mut_ptr().expose_provenance();
        let mut limits = [u64::MAX; LIMITED_TIERS];
        limits[0] = units * UNIT;
        // SAFETY: the leaked memory is as long as a file, zeroed, and used by nothing else.
        unsafe {
            let first = first_bytes();
            let start = core::ptr::with_exposed_provenance_mut::<u8>(base);
            start.copy_from_nonoverlapping(first.as_ptr(), first.len());
            Ledger::at(base, limits).expect("a file of this version")
        }
    }

    fn process(pid: u32) -> ProcessName {
        ProcessName { pid, namespace: 77 }
    }

    #[test]
    fn two_processes_share_one_limit_and_what_one_gives_back_the_other_gets() {
        let ledger = ledger(5);
        let [one, two] = [3, 4].map(|pid| ledger.join(process(pid)).expect("a slot"));
        assert_ne!(one, two);
        assert_eq!(ledger.take(one, 0, 3 * UNIT, UNIT), 3 * UNIT);
        assert_eq!(ledger.take(two, 0, 3 * UNIT, UNIT), 2 * UNIT);
        assert_eq!(ledger.take(one, 0, UNIT, UNIT), 0);
        ledger.give_back(one, 0, UNIT);
        assert_eq!(ledger.take(two, 0, 9 * UNIT, UNIT), UNIT);
        assert_eq!(ledger.share(one, 0), 2 * UNIT);
        assert_eq!(ledger.share(two, 0), 3 * UNIT);
        assert_eq!(ledger.take(two, 1, 9 * UNIT, UNIT), 9 * UNIT, "no limit");
    }

    #[test]
    fn the_limit_of_a_machine_comes_before_that_of_the_configuration_and_may_change() {
        let ledger = ledger(9);
        ledger.header.fast_limit.store(2 * UNIT, Ordering::Relaxed);
        let slot = ledger.join(process(3)).expect("a slot");
        assert_eq!(ledger.take(slot, 0, 9 * UNIT, UNIT), 2 * UNIT);
        assert_eq!(ledger.available(0), 0);
        ledger.header.fast_limit.store(5 * UNIT, Ordering::Relaxed);
        assert_eq!(ledger.available(0), 3 * UNIT);
        assert_eq!(ledger.take(slot, 0, 9 * UNIT, UNIT), 3 * UNIT);
    }

    #[test]
    fn a_part_of_a_unit_is_not_taken() {
        let ledger = ledger(1);
        let slot = ledger.join(process(3)).expect("a slot");
        assert_eq!(ledger.take(slot, 0, 4096, 4096), 4096);
        assert_eq!(ledger.take(slot, 0, UNIT, UNIT), 0);
        assert_eq!(ledger.take(slot, 0, UNIT, 4096), UNIT - 4096);
    }

    #[test]
    fn the_share_of_a_process_that_ended_is_given_back_once() {
        let ledger = ledger(4);
        let [one, two] = [3, 4].map(|pid| ledger.join(process(pid)).expect("a slot"));
        assert_eq!(ledger.take(one, 0, 3 * UNIT, UNIT), 3 * UNIT);
        assert_eq!(ledger.take(two, 0, UNIT, UNIT), UNIT);
        let elsewhere = ProcessName {
            pid: 5,
            namespace: 78,
        };
        ledger.reap(elsewhere, |_| true);
        ledger.reap(process(4), |_| false);
        assert_eq!(ledger.take(two, 0, UNIT, UNIT), 0);
        ledger.reap(process(4), |pid| pid == 3);
        ledger.reap(process(4), |pid| pid == 3);
        assert_eq!(ledger.take(two, 0, 9 * UNIT, UNIT), 3 * UNIT);
        assert_eq!(ledger.join(process(6)), Some(one), "its slot is free");
    }

    #[test]
    fn an_image_that_follows_by_exec_gives_back_what_the_former_had() {
        let ledger = ledger(4);
        let former = ledger.join(process(3)).expect("a slot");
        assert_eq!(ledger.take(former, 0, 4 * UNIT, UNIT), 4 * UNIT);
        let slot = ledger.join(process(3)).expect("a slot");
        assert_eq!(ledger.take(slot, 0, 9 * UNIT, UNIT), 4 * UNIT);
    }

    #[test]
    fn without_a_slot_nothing_can_be_placed() {
        let ledger = ledger(4);
        for pid in 1..=SLOTS as u32 {
            assert!(ledger.join(process(pid)).is_some());
        }
        assert_eq!(ledger.join(process(SLOTS as u32 + 1)), None);
    }

    #[test]
    fn threads_that_take_at_once_never_get_more_than_the_limit() {
        let ledger = ledger(100);
        let taken: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (1..=4)
                .map(|pid| {
                    scope.spawn(move || {
                        let slot = ledger.join(process(pid)).expect("a slot");
                        (0..50)
                            .map(|_| ledger.take(slot, 0, UNIT, UNIT))
                            .sum::<u64>()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("ends"))
                .sum()
        });
        assert_eq!(taken, 100 * UNIT);
    }
}
