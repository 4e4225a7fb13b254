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
#[path = "../../crates/runtime/src/config.rs"]
#[allow(
    dead_code,
    clippy::all,
    reason = "a part of the preloaded library, judged there; to link that would replace the fuzzer's malloc"
)]
mod config;
#[path = "../../crates/runtime/src/leading_table.rs"]
#[allow(dead_code, clippy::all, reason = "as above")]
mod leading_table;
pub mod mutation;
#[path = "../../crates/runtime/src/path.rs"]
#[allow(dead_code, clippy::all, reason = "as above")]
mod path;
#[path = "../../crates/runtime/src/plan.rs"]
#[allow(dead_code, clippy::all, reason = "as above")]
mod plan;
#[path = "../../crates/runtime/src/split_table.rs"]
#[allow(dead_code, clippy::all, reason = "as above")]
mod split_table;
mod targets;

pub use targets::{CANARY, TARGETS, Target, target};
