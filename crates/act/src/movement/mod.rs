//! Places and moves ranges of memory on nodes, for online runs and for the daemon.
//!
//! All behind one port, [`isotherm_model::port::RangeExecutor`]:
//!
//! - [`placement`] sets the nodes of new pages (`mbind`);
//! - [`migration`] moves the pages of any process, from inside or outside, in short batches
//!   (`move_pages`); [`whole_process`] lists the ranges of a process;
//! - [`staged`] copies memory of this process into pages that are already allocated;
//! - [`in_program`] requests such copies from the runtime of another process.
//!
//! Executors reach the kernel through the traits of [`system`], so that a dry run prints the exact
//! calls, and tests run on a simulated machine. [`limit`], [`recording`], [`statistics`] and
//! [`undo`] wrap any executor.

mod batch;
pub mod in_program;
pub mod limit;
pub mod migration;
pub mod placement;
pub mod recording;
pub mod staged;
pub mod statistics;
pub mod system;
#[cfg(test)]
mod test_machine;
pub mod undo;
pub mod whole_process;
