//! The tool, run as its users run it.

#![allow(dead_code, reason = "each test program uses what it needs of it")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the tool in a directory until it ends.
pub(crate) fn isotherm(directory: impl AsRef<Path>, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("isotherm starts")
}

/// What it said on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the tool in a directory; it must succeed.
pub(crate) fn succeeds(directory: impl AsRef<Path>, arguments: &[&str]) -> Output {
    let output = isotherm(directory, arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    output
}
