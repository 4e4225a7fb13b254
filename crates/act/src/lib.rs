//! Carries out placement decisions: the plan of a program (`isotherm run`), moves of address ranges between nodes, emulated tiers and swap
//! (runs and the daemon), and settings of the kernel: its own promotion, memory that is offline, and compressed memory.
//!
//! A plan reaches a program in two ways. Before the program starts, the plan becomes a *configuration
//! file* that the runtime reads once ([`configuration`]; [`callers`] computes the names of its sites). Its sites in a Java heap become the
//! file that a virtual machine with colours reads ([`heap_guide`]), and the colours of its classes one that it reads again while it runs
//! ([`class_guide`]); [`heap_devices`] spreads its hot objects over memory devices. While the
//! program runs, each changed tier becomes a *request* in its session file ([`placement_requests`]). On the emulated
//! pair the runtime then moves the site's data. On NUMA nodes it uses the new tier for new memory only, and
//! [`site_moves`] moves the existing pages by an executor of [`movement`]: from outside the program by `move_pages`,
//! or inside it by a staged copy. A dry run writes no requests and moves nothing ([`dry_run`]).
//!
//! The daemon needs no runtime in the program: it uses [`movement`], lets the kernel promote through [`promotion_knobs`], and takes the
//! memory of a node offline by [`memory_blocks`]. Each executor returns the outcome of each move. Beside them, [`zram`] sets up compressed
//! memory, which every machine can have as a slow tier.
#![forbid(unsafe_code)]

pub mod callers;
pub mod class_guide;
pub mod configuration;
pub mod dry_run;
pub mod heap_devices;
pub mod heap_guide;
mod leading;
pub mod memory_blocks;
pub mod movement;
pub mod placement_requests;
pub mod promotion_knobs;
pub mod record_file;
mod session_requests;
pub mod site_moves;
pub mod splits;
pub mod sysfs;
pub mod zram;

#[cfg(test)]
#[path = "../../session/tests/support/session_bytes.rs"]
#[allow(
    dead_code,
    reason = "the tests of crate session use the other functions"
)]
mod session_bytes;
