//! Remembers that the program filters its system calls or is about to, as the hook of `prctl` finds ([`crate::process_hooks`]). A filter
//! may end the process at a call that it does not expect, so the runtime then leaves out those that it can do without.

use core::sync::atomic::{AtomicBool, Ordering};

static FILTERED: AtomicBool = AtomicBool::new(false);

/// Called before the program filters its system calls.
pub(crate) fn begin() {
    FILTERED.store(true, Ordering::Release);
}

/// Whether [`begin`] was called.
pub(crate) fn is_filtered() -> bool {
    FILTERED.load(Ordering::Acquire)
}
