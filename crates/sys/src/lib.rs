//! Wraps the system calls that `std` and `rustix` leave out or leave unsafe, in safe functions where that is possible; reads the kernel's
//! files that belong to them; and holds the larger parts that need unsafe code: perf rings, threads unknown to the C library, the staged
//! move.
//!
//! Besides `runtime` this is the only crate that holds unsafe code. A wrapper is as thin as safety
//! allows: it adds types, not policy.
//!
//! Modules are listed bottom-up: each uses only those above it.
#![allow(unsafe_code)]

pub mod system_call;
pub mod memory;
pub mod clock;
pub mod descriptor;
pub mod affinity;
pub mod signal;
pub mod files;
pub mod write_within;
pub mod file_root;
pub mod control_group;
pub mod private;
pub mod memory_map;
pub mod process;
pub mod remote_memory;
pub mod thread;
pub mod robust_list;
pub mod spawn;
pub mod heap;
pub mod swap;
pub mod perf;
pub mod pagemap;
pub mod userfaultfd;
pub mod policy;
pub mod node_memory;
pub mod pages;
pub mod staged;
