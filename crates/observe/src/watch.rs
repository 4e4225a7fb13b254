//! Watches processes from outside, for the daemon: a `watcher::Watcher` returns an observation in each epoch. Of processes on emulated
//! machines it reads the session files, in which the runtime says which pages are fast.
//!
//! ```text
//! candidates   every second: the running processes, and those worth watching (TMP's filter)
//! watermarks   the free memory that the kernel's own promotion needs
//! memory       their memory: mappings, resident pages, and the nodes of resident pages
//! emulated     the memory of processes on emulated machines, by their session files
//! rate_change  when the timer of samples takes another rate
//! sample_nodes the memory node of samples with a physical address
//! watcher      joins all sources into an Observation an epoch
//! ```
//!
//! A process may end at any time, which is not an error: its data so far is dropped. Files of other
//! users are never opened: only `/proc` of a process is read, and its code is read from its memory,
//! not from the path that it names.

pub mod candidates;
mod watermarks;
pub mod memory;
mod emulated;
mod rate_change;
mod sample_nodes;
pub mod watcher;
