//! Accessed bits by regions: DAMON through its sysfs files.
//!
//! DAMON looks at a page of every region every few milliseconds, and parts and joins regions until
//! what lies in one is accessed alike, so its cost follows the number of regions and not of pages.
//!
//! ```text
//! processes   one kdamond a process: its regions are addresses of the process
//! physical    one kdamond for all memory: its regions are frames, told to the units that lie in them
//! admin       the files, whose the kdamonds are, and what one is told and tells
//! reader      a thread that does both, because the kdamonds take their time
//! pace        when they are read, and how fast they look
//! ```
//!
//! The machine has one set of kdamonds. Where somebody else has set some up, they are left alone
//! and neither source is available. Ours are noted in a file, so that a daemon that was killed
//! finds them again instead of taking them for somebody else's.
//!
//! Kernel document: `Documentation/admin-guide/mm/damon/usage.rst`.

mod admin;
mod pace;
mod physical;
mod processes;
mod reader;

pub use physical::PhysicalDamon;
pub use processes::Damon;

#[cfg(test)]
pub(super) mod fake_kdamond;
