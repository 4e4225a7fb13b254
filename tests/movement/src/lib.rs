//! The executors that only the proof uses: placement, staged copy of this process's own memory, all memory of
//! another process, the lock of forks, and the totals of an executor.

pub mod fork_lock;
pub mod nodes;
pub mod placement;
pub mod staged;
pub mod statistics;
pub mod whole_process;
