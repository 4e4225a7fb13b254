//! What the hooks do, from the first allocation on.

use core::sync::atomic::Ordering;

use crate::fast_path::HOT;

/// Pass everything to instance 0; the entry shims jump there themselves.
pub(crate) const DIRECT: u8 = 0;
/// The configuration was not looked at yet.
pub(crate) const UNDECIDED: u8 = 1;
/// The plan's table places each allocation.
pub(crate) const GUIDED: u8 = 2;
/// Sites are told apart and grow into arenas of their own.
pub(crate) const PROFILE: u8 = 3;

/// The state now.
#[inline]
pub(crate) fn get() -> u8 {
    HOT.state.load(Ordering::Relaxed)
}

/// Changes the state.
pub(crate) fn set(state: u8) {
    HOT.state.store(state, Ordering::Release);
}
