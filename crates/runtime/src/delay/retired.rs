//! Keeps the states of ended threads ([`DelayedThread`], of the emulation that delays threads by a timer) for the threads that come after
//! them, because a state has to learn what the caches serve.
//!
//! Some hundred samples pass before it knows that, so a thread that lives for less would never be delayed. Its successor goes on where it
//! ended, with the delays that it left; a state that does not know enough yet learns from the thread that makes the new one
//! ([`DelayedThread::learn_from`]).

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::thread::DelayedThread;

/// Most states that are kept, some 70 KiB each: more than the threads of one pool on most machines.
const KEPT: usize = 64;

static STATES: [AtomicPtr<DelayedThread>; KEPT] = [const { AtomicPtr::new(ptr::null_mut()) }; KEPT];

/// Keeps the state of a thread that ends; frees it where enough are kept.
pub(super) fn keep(state: &'static mut DelayedThread) {
    state.stop();
    let state = ptr::from_mut(state);
    let is_kept = STATES.iter().any(|place| {
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        place
            .compare_exchange(ptr::null_mut(), state, order.0, order.1)
            .is_ok()
    });
    if !is_kept {
        // SAFETY: no place refers to it, and the caller gave the only reference.
        DelayedThread::release(unsafe { &mut *state });
    }
}

/// The state of a thread that has ended.
pub(super) fn take() -> Option<&'static mut DelayedThread> {
    let taken = STATES
        .iter()
        .map(|place| place.swap(ptr::null_mut(), Ordering::AcqRel))
        .find(|state| !state.is_null())?;
    // SAFETY: `keep` put in the only reference to a state, and this swap took it out.
    Some(unsafe { &mut *taken })
}

#[cfg(test)]
mod tests {
    use super::{DelayedThread, KEPT, keep, take};

    #[test]
    fn a_state_goes_to_one_successor_with_all_that_it_knows() {
        let made: Vec<_> = (0..=KEPT)
            .map(|_| DelayedThread::make(4 << 20).expect("memory"))
            .collect();
        let mut addresses: Vec<usize> = made.iter().map(|it| ptr_of(it)).collect();
        made.into_iter().for_each(keep);
        let mut taken: Vec<usize> = Vec::new();
        while let Some(state) = take() {
            taken.push(ptr_of(state));
            DelayedThread::release(state);
        }
        taken.sort_unstable();
        // The last one was freed.
        addresses.pop();
        addresses.sort_unstable();
        assert_eq!(taken, addresses);
    }

    fn ptr_of(state: &DelayedThread) -> usize {
        core::ptr::from_ref(state).addr()
    }
}
