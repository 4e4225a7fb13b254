//! Placing and moving ranges of memory on nodes.
//!
//! All behind one port, [`isotherm_model::port::RangeExecutor`]:
//!
//! - [`placement`] tells the kernel where new pages go (`mbind`);
//! - [`migration`] moves the pages of any process, from inside or outside, in short batches
//!   (`move_pages`); [`whole_process`] lists what there is to move;
//! - [`staged`] copies memory of this process into pages that are there already;
//! - [`in_program`] has the runtime in another process do so.
//!
//! Executors reach the kernel through the traits of [`system`], so that a dry run prints the very
//! calls, and tests run on a machine that is not there. [`limit`], [`recording`], [`statistics`]
//! and [`undo`] wrap any executor.

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
