//! Contains the parts that the proof shares with its tests: executors for placement and for staged copies of this process's own memory, a
//! list of all memory of another process, the nodes of the machine, the lock of forks, and the totals of an executor.

pub mod fork_lock;
pub mod nodes;
pub mod placement;
pub mod staged;
pub mod statistics;
pub mod whole_process;
