//! Direct callers whose allocations all go to one tier, so that a guided run need not look at the
//! stack: most callers of most programs.
//!
//! One shared table from return address to the instance of that tier. An entry is written once the
//! plan was asked about its caller; two callers with one slot take turns, and who is not there is
//! looked up by its context, which leads to the same tier. Only guided runs write entries.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::instance::{self, Instance};

/// Slots; a program has a few hundred callers that matter.
pub(crate) const SLOTS: usize = 1 << 12;

/// A caller. Its two words are read and written apart: between another caller's address and this
/// one's instance lies one allocation in the wrong tier.
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

/// Return addresses lie behind calls of at least two bytes, so neighbours differ above the lowest
/// bit.
#[inline(always)]
fn slot_of(address: usize) -> &'static CallerTiers {
    &KNOWN[(address >> 1) % SLOTS]
}

/// The instance of everything that this caller allocates, if it is known to be one. On x86-64
/// [`crate::entry`] does the same.
#[inline(always)]
pub(crate) fn instance_of(address: usize) -> Option<&'static Instance> {
    let known = slot_of(address);
    if known.address.load(Ordering::Acquire) != address {
        return None;
    }
    // SAFETY: null or an instance, which lives as long as the process.
    unsafe { known.instance.load(Ordering::Relaxed).as_ref() }
}

/// Notes the tier of everything that this caller allocates, if that is an instance.
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

/// Forgets all callers, because addresses may mean something else now.
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
