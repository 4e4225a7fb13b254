//! Turns what the kernel and the runtime know of a running program into batches.
#![forbid(unsafe_code)]

pub mod accessed;
pub mod clock;
pub mod code;
pub mod decode;
pub mod doctor;
pub mod gate;
pub mod list;
pub mod live;
pub mod meminfo;
pub mod perf_source;
pub mod pmu;
pub mod probe;
pub mod processes;
pub mod resident;
pub mod session;
pub mod sessions;
pub mod sites;
pub mod symbols;
pub mod tiers;
pub mod tracked;
