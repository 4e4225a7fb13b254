//! Hostile input for everything that Isotherm reads.
//!
//! A target is a plain function that takes bytes, hands them to one reader, and checks what must
//! hold of whatever the reader makes of them. The same functions are driven two ways: by
//! [`campaign`], which the tests run in seconds, and by libFuzzer (`fuzz/run`), which is guided by
//! coverage and runs as long as it is let.
//!
//! One target, the canary, has a planted fault. A harness that does not find it is broken, whatever
//! it says of the others.

pub mod campaign;
pub mod mutation;
mod targets;

pub use targets::{CANARY, TARGETS, Target, target};
