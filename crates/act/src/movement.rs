//! The executors that move ranges of the memory of programs, for runs and for the daemon: between nodes (the kernel's `move_pages`, or
//! copies by the runtime inside the program), between the tiers of an emulated machine (requests to its runtime), to swap
//! (`process_madvise`) and back (a read of one byte of each page).
//!
//! All executors implement one port, [`isotherm_model::port::RangeExecutor`]:
//!
//! - [`migration`] moves the pages of any process, from inside or outside, in short batches;
//! - [`in_program`] requests staged copies from the runtime of another process;
//! - [`page_out`] pages memory of any process out to swap, which may be compressed memory, and brings it back;
//! - [`page_requests`] requests moves between emulated tiers from the runtime of another process.
//!
//! Executors reach the kernel through the trait of [`system`], so that a dry run prints the exact calls, and tests run on a simulated
//! machine. [`limit`], [`remembered`] and [`undo`] wrap any executor, [`obeyed_requests`] one of page requests; [`parallel`] moves by
//! several at a time.

mod batch;
mod huge_page_parts;
pub mod in_program;
pub mod limit;
pub mod migration;
pub mod obeyed_requests;
pub mod page_out;
pub mod page_requests;
pub mod parallel;
pub mod pieces;
pub mod remembered;
pub mod system;
#[cfg(test)]
mod test_machine;
pub mod undo;
