//! Turns what the kernel and the runtime know of a running program into batches.
#![forbid(unsafe_code)]

pub mod decode;
