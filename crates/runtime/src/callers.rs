//! Remembers, in a table by return address, the direct callers whose allocations all go to one tier. For these, most callers of most
//! programs, a guided run skips the lookup by the stack.
//!
//! One shared table maps a return address to the instance of its tier. An entry is written after the plan was queried for its caller. Two
//! callers of one slot replace each other; a caller without an entry is looked up by its context, which leads to the same tier.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::instance::{self, Instance};

/// Slots; a program has a few hundred callers that matter.
pub(crate) const SLOTS: usize = 1 << 12;

/// A slot: a caller and its instance. The two words are read and written separately: a mix of another caller's address and this one's
/// instance puts one allocation into the wrong tier, no more.
#[repr(C)]
pub(crate) struct CallerTiers {
    pub(crate) address: AtomicUsize,
    pub(crate) instance: AtomicPtr<Instance>,
}

pub(crate) static KNOWN: [CallerTiers; SLOTS] = [const {
    CallerTiers {
        address: AtomicUsize::new(0),
        instance: AtomicPtr::new(null_mut()),
    }
}; SLOTS];

/// Return addresses follow calls of at least two bytes, so neighbours differ above the lowest bit.
#[inline(always)]
fn slot_of(address: usize) -> &'static CallerTiers {
    &KNOWN[(address >> 1) % SLOTS]
}

/// The instance of everything that this caller allocates, if one is known. On x86-64 [`crate::entry`] does the
/// same.
#[inline(always)]
pub(crate) fn instance_of(address: usize) -> Option<&'static Instance> {
    let known = slot_of(address);
    if known.address.load(Ordering::Acquire) != address {
        return None;
    }
    // SAFETY: null or an instance, which lives as long as the process.
    unsafe { known.instance.load(Ordering::Relaxed).as_ref() }
}

/// Stores the tier of everything that this caller allocates, if that tier is an instance.
pub(crate) fn learn(address: usize, tier: u32) {
    let Some(instance) = instance::straight(tier) else {
        return;
    };
    let known = slot_of(address);
    known
        .instance
        .store(core::ptr::from_ref(instance).cast_mut(), Ordering::Relaxed);
    known.address.store(address, Ordering::Release);
}

/// Forgets all callers, because addresses may belong to other code now.
pub(crate) fn forget_all() {
    for known in &KNOWN {
        known.address.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, forget_all, instance_of, learn};
    use crate::instance::INSTANCES;

    #[test]
    fn a_caller_is_known_until_another_takes_its_slot_or_all_are_forgotten() {
        let known = |address, tier: usize| {
            instance_of(address).is_some_and(|found| core::ptr::eq(found, &INSTANCES[tier]))
        };
        let (first, second) = (0x7f12_3456_789b, 0x7f12_3456_789b + 2 * SLOTS);
        assert!(instance_of(first).is_none());
        learn(first, 0);
        assert!(known(first, 0));
        assert!(instance_of(first + 2).is_none() && instance_of(second).is_none());
        learn(second, 0);
        assert!(known(second, 0) && instance_of(first).is_none());
        learn(first, u32::MAX);
        assert!(instance_of(first).is_none());
        forget_all();
        assert!(instance_of(second).is_none());
    }
}
