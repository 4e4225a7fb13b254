//! Names the clocks that the runtime reads, in nanoseconds: monotonic time, and processor time of the process and of a thread.

pub(crate) use isotherm_sys::clock::{now_ns, process_ns, thread_ns};
