//! Compiles programs for a test.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of `tests/programs` into a directory. None, with the reason printed, where
/// there is no C compiler; a program that does not compile is a failure.
pub(crate) fn compile(name: &str, directory: &Path) -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        isotherm_skip::skip!("no C compiler");
        return None;
    }
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let program = directory.join(name);
    let status = Command::new("cc")
        .args(["-O1", "-g", "-o"])
        .args([&program, &programs.join(format!("{name}.c"))])
        .status()
        .expect("the compiler runs");
    assert!(status.success(), "{name}.c does not compile");
    Some(program)
}
