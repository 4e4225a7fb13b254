//! [`State`] is the byte by which the hooks know what to do with an allocation: undecided, until [`crate::start`] sets it once; then pass
//! it through (pass-through mode, or no valid configuration), place it by the plan (guided runs), or find its site (profile, online runs).

use core::sync::atomic::{AtomicU8, Ordering};

/// Pass everything to instance 0; the entry shims jump there themselves.
pub(crate) const DIRECT: u8 = 0;
/// The configuration was not read yet.
pub(crate) const UNDECIDED: u8 = 1;
/// The plan's table places each allocation.
pub(crate) const GUIDED: u8 = 2;
/// Sites are distinguished and grow into their own arenas.
pub(crate) const PROFILE: u8 = 3;

/// The place of the state, one byte, which the entry shims compare with [`DIRECT`].
#[repr(transparent)]
pub(crate) struct State(AtomicU8);

impl State {
    /// Before anything was decided.
    pub(crate) const fn undecided() -> Self {
        Self(AtomicU8::new(UNDECIDED))
    }

    /// The state now.
    #[inline]
    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the state.
    pub(crate) fn set(&self, state: u8) {
        self.0.store(state, Ordering::Release);
    }
}
