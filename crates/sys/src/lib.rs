//! Safe wrappers around the system calls that `std` and `rustix` leave out or leave unsafe.
//!
//! Beside `abi` and `runtime` this is the only crate that may hold unsafe code. A wrapper is as
//! thin as safety allows: it adds types, not policy.
#![allow(unsafe_code)]

pub mod affinity;
pub mod files;
pub mod heap;
pub mod memory;
pub mod node_memory;
pub mod pagemap;
pub mod pages;
pub mod perf;
pub mod policy;
pub mod private;
pub mod process;
pub mod spawn;
pub mod staged;
pub mod system_call;
pub mod thread;
pub mod userfaultfd;
