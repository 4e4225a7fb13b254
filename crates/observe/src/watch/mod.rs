//! Watching processes from outside, without their help: what the daemon sees.
//!
//! ```text
//! candidates   every second: which processes there are, and which are worth it (TMP's filter)
//! memory       what they hold: mappings, resident pages, the nodes these lie on
//! bit_source   accessed bits by damon (regions) or page_idle (pages), whichever was asked for
//! look         what those need to know to look
//! bits         the rest of them: clear_refs and smaps (whole mappings)
//! frames       where pages lie, for the sources that see frames
//! samples      timer or PMU samples with data addresses, of all processes or of each
//! sample_nodes on which memory node those lie that tell a physical address
//! cost         what a source may use, and how it is slowed where it uses more
//! rest         the counter that lets a kind of source rest, by the rule of 20 %
//! watcher      joins all of it into an Observation an epoch
//! ```
//!
//! A process that ends in the middle of anything is not an error: what was learnt of it so far is
//! dropped. Files of other users are never opened: of a process only what the kernel writes under
//! `/proc` is read, and its code is read from its memory, not from the path that it names.

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
