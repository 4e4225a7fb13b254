//! Watches processes from outside, without their help, for the daemon.
//!
//! ```text
//! candidates   every second: the running processes, and those worth watching (TMP's filter)
//! memory       their memory: mappings, resident pages, and the nodes of these
//! bit_source   accessed bits by damon (regions) or page_idle (pages), as configured
//! scan_context the input of one scan by those two
//! bits         accessed bits of the other processes: clear_refs and smaps (whole mappings)
//! frames       page frame numbers, for the sources that work on frames
//! samples      timer or PMU samples with data addresses, of all processes or of each
//! sample_nodes the memory node of samples with a physical address
//! scan_interval  the budget of a source, and its slowdown beyond that
//! source_throttle  the counter that switches a kind of source off, by the rule of 20 %
//! watcher      joins all sources into an Observation an epoch
//! ```
//!
//! A process may end at any time, which is not an error: its data so far is dropped. Files of other
//! users are never opened: only `/proc` of a process is read, and its code is read from its memory,
//! not from the path that it names.

pub mod bit_source;
pub mod bits;
pub mod candidates;
pub mod damon;
mod frames;
pub mod memory;
pub mod page_idle;
mod sample_nodes;
pub mod samples;
pub mod scan_context;
pub mod scan_interval;
pub mod source_throttle;
pub mod watcher;
