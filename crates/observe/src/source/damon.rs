//! [`Damon`] (by process) and [`PhysicalDamon`] (by page frame), two sources of accessed bits for the daemon, read through sysfs files how
//! often DAMON, the kernel's access monitor, found each region of memory accessed.
//!
//! A thread of DAMON, a *kdamond*, checks one page of every region every few milliseconds, and splits and merges regions until all pages of
//! one are accessed alike, so its cost depends on the number of regions and not of pages.
//!
//! ```text
//! processes   one kdamond a process: its regions are addresses of the process
//! physical    one kdamond for all memory: its regions are frames, attributed to the units in them
//! admin       the files: owners, settings and reports of the kdamonds
//! reader      a thread that writes and reads them, because the kdamonds are slow to respond
//! pace        when they are read, and how often they check regions
//! ```
//!
//! The machine has one set of kdamonds. If another program has set some up, they are left alone and neither source is available. Ours are
//! recorded in a file, so that the daemon recognizes its own after it was killed.
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
pub(crate) mod fake_kdamond;
