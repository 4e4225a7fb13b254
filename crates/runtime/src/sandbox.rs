//! Whether the program filters its system calls. A filter may end the process at a call that it does not expect, so
//! the runtime then leaves out the calls that only make it faster or its figures better.

use core::sync::atomic::{AtomicBool, Ordering};

static FILTERED: AtomicBool = AtomicBool::new(false);

/// The program is about to filter its system calls.
pub(crate) fn begin() {
    FILTERED.store(true, Ordering::Release);
}

/// True from then on.
pub(crate) fn is_filtered() -> bool {
    FILTERED.load(Ordering::Acquire)
}
