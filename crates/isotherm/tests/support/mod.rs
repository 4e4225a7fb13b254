//! Runs the tool as its users run it, and builds the C programs that the tests run.

#![allow(dead_code, reason = "each test program uses what it needs of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// Runs the tool in a directory until it ends.
pub(crate) fn isotherm(directory: impl AsRef<Path>, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .expect("isotherm starts")
}

/// From here on what this process starts has small pages, even where the kernel gives each program huge ones: what it touches is then what is
/// resident.
pub(crate) fn use_small_pages() {
    rustix::thread::disable_transparent_huge_pages(true).expect("PR_SET_THP_DISABLE");
}

/// A directory with `app`, built of a program in C with its debugging information.
pub(crate) fn built(program: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), program).expect("is written");
    let built = Command::new("cc")
        .current_dir(&directory)
        .args(["-O1", "-g", "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

/// A program in C that sums an array of this size over and over for this much processor time, however loaded the machine is, and prints
/// `whole` if each sum was the same.
pub(crate) fn sums(mebibytes: u32, seconds: u32) -> String {
    SUMS.replace("MEBIBYTES", &mebibytes.to_string())
        .replace("SECONDS", &seconds.to_string())
}

const SUMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { WORDS = (MEBIBYTES << 20) / sizeof(long) };
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(void) {
    long *all = malloc(WORDS * sizeof *all), torn = 0;
    for (long i = 0; i < WORDS; i++) all[i] = 1;
    for (double end = worked() + SECONDS; worked() < end;) {
        long sum = 0;
        for (long i = 0; i < WORDS; i++) sum += all[i];
        __asm__ volatile("" : "+r"(sum) : : "memory");
        torn += sum != WORDS;
    }
    puts(torn ? "torn" : "whole");
    return 0;
}
"#;

/// The messages of the tool on standard error.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The processes whose working directory this is.
pub(crate) fn running_in(directory: &Path) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    processes
        .map(|process| process.path())
        .filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == directory))
        .collect()
}

/// Runs `./app` under `app.plan`: the messages of the run, and its summary.
pub(crate) fn guided(directory: impl AsRef<Path>, arguments: &[&str]) -> (String, Value) {
    let run = [
        "run",
        "--plan",
        "app.plan",
        "--summary",
        "run.json",
        "--",
        "./app",
    ];
    let output = succeeds(&directory, &[&run, arguments].concat());
    let summary = std::fs::read(directory.as_ref().join("run.json")).expect("was written");
    let summary = serde_json::from_slice(&summary).expect("is JSON");
    (stderr(&output), summary)
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
