//! Runs tests under a real Linux in an emulated machine, with memory nodes that this machine lacks.
//!
//! ```text
//! topologies/NAME.toml --> Topology --+
//! setup/vm --> build/vm --> Kit ------+--> Guest::boot --> Guest::run --> Ended (status, output)
//! programs, libraries --> Archive ----+
//! ```
//!
//! One boot serves many tests: the guest waits for commands on a serial line, and answers each with its exit
//! status and output. Emulated memory is equally fast everywhere, so tests can check where data is, not how
//! fast it is. No root and no hardware virtualisation is needed.

pub mod archive;
pub mod guest;
pub mod kit;
pub mod payload;
pub mod serial;
pub mod topology;

use std::path::{Path, PathBuf};

/// The folder in which `setup/vm` puts its files, in the repository that this crate was built in.
#[must_use]
pub fn kits() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.ancestors().nth(2).unwrap_or(own);
    root.join("build/vm")
}
