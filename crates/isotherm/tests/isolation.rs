//! Tests `isotherm record --isolate` by running it: runs of single sites, the plan by them, failures, interrupts. `libisotherm.so` must be
//! beside the program (`cargo build --workspace` puts it there).

mod support;

use std::process::Command;

use isotherm_model::isolation_runs::{IsolatedData, IsolationRuns};
use tempfile::TempDir;

use support::{built, isotherm, stderr, succeeds};

/// Follows pointers through one array, sums another, and rarely looks at two more. With a file named `stop` beside it, it ends with an
/// error; with `interrupt-soon`, its second run interrupts the program that started it.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { CHASED = 8 << 20, SUMMED = 4 << 20 };
static char archive[8 << 20];
int main(void) {
    unsigned *chased = malloc(CHASED * sizeof *chased);
    unsigned *summed = malloc(SUMMED * sizeof *summed);
    char *cold = malloc(16 << 20);
    memset(cold, 1, 16 << 20);
    memset(archive, 2, sizeof archive);
    memset(summed, 3, SUMMED * sizeof *summed);
    for (unsigned i = 0; i < CHASED; i++) chased[i] = (i * 2654435761u + 12345u) % CHASED;
    unsigned at = 0, sum = 0;
    for (int i = 0; i < 4000000; i++) at = chased[at] ^ (i & 1023);
    for (int round = 0; round < 40; round++)
        for (unsigned i = 0; i < SUMMED; i++) sum += summed[i];
    printf("%u %u %d %d %d\n", at, sum, cold[77], archive[77], getpid());
    if (unlink("interrupt-now") == 0) kill(getppid(), SIGINT);
    rename("interrupt-soon", "interrupt-now");
    return access("stop", F_OK) == 0;
}
"#;

const RECORD: [&str; 5] = ["record", "--source", "timer", "--cache", "0B"];

fn isolate<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let isolate: [&'a str; 2] = ["--isolate", "sites"];
    [&RECORD[..], &isolate, more, &["--", "./app"]].concat()
}

fn runs(directory: &TempDir) -> Option<IsolationRuns> {
    let (profile, _) =
        isotherm_profile::read(&directory.path().join("app.iso")).expect("a profile");
    profile.isolation
}

/// Interrupted after the first site, the others have neither a run nor a share in the rest.
fn is_interrupted_and_no_plan_takes_what_is_left_out(directory: &TempDir, plan: &[&str]) {
    std::fs::write(directory.path().join("interrupt-soon"), "").unwrap();
    // A shell that starts the tests in the background has them ignore the interrupt.
    let interrupted = Command::new("env")
        .args(["--default-signal=INT", env!("CARGO_BIN_EXE_isotherm")])
        .args(isolate(&[]))
        .current_dir(directory)
        .output()
        .expect("isotherm starts");
    let said = stderr(&interrupted);
    assert!(said.contains("the same command goes on"), "{said}");
    assert!(!said.contains("next:"), "{said}");
    let begun = runs(directory).expect("runs");
    assert_eq!(begun.sites().len(), 1);
    assert_eq!(begun.of(IsolatedData::Rest), None);
    let refused = stderr(&isotherm(directory, plan));
    assert!(refused.contains("with accesses had none"), "{refused}");
}

#[test]
fn the_bandwidth_of_the_hottest_sites_is_added_site_by_site_and_a_plan_takes_it() {
    let directory = built(PROGRAM);
    succeeds(&directory, &[&RECORD[..], &["--", "./app"]].concat());
    let plan = [
        "plan",
        "app.iso",
        "--value",
        "bandwidth",
        "--tiers",
        "emulated:cxl",
    ];
    let refused = isotherm(&directory, &plan);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(
        said.contains("isotherm record --isolate sites -o PROFILE -- ./app"),
        "{said}"
    );

    // The first run ends with an error, so nothing is added; then one site, then all, and what was there stays.
    std::fs::write(directory.path().join("stop"), "").unwrap();
    let stopped = isotherm(&directory, &isolate(&["--isolate-top", "1"]));
    let said = stderr(&stopped);
    if said.contains("nothing counts the bytes of a tier here") {
        isotherm_skip::skip!("no bytes of a tier are counted: {said}");
        return;
    }
    assert_eq!(stopped.status.code(), Some(1), "{said}");
    assert!(said.contains("run ended with exit status: 1"), "{said}");
    assert_eq!(runs(&directory), None);
    std::fs::remove_file(directory.path().join("stop")).unwrap();

    is_interrupted_and_no_plan_takes_what_is_left_out(&directory, &plan);
    let output = succeeds(&directory, &isolate(&["--isolate-top", "1"]));
    assert!(stderr(&output).contains("next: isotherm plan app.iso --value bandwidth"));
    let first = runs(&directory).expect("runs");
    assert_eq!(first.sites().len(), 1);
    assert!(first.of(IsolatedData::Rest).is_some(), "{first:?}");
    succeeds(&directory, &isolate(&[]));
    let all = runs(&directory).expect("runs");
    assert!(all.sites().len() >= 2, "{all:?}");
    assert_eq!(all.runs[0], first.runs[0]);
    assert_eq!(
        all.runs.last().map(|run| run.isolated),
        Some(IsolatedData::Rest)
    );
    // 4 million accesses of 64 bytes at random, and 40 times 16 MiB in a stream. What is counted follows the time that a thread waits,
    // which depends on the processor's caches and on the load of the machine.
    let bytes: Vec<u64> = all.runs.iter().map(|run| run.bytes.0).collect();
    let is_possible = bytes.iter().all(|bytes| *bytes < 10_000_000_000);
    let are_seen = bytes.iter().take(2).all(|bytes| *bytes > 1_000_000);
    assert!(is_possible && are_seen, "{all:?}");

    let complete = succeeds(&directory, &isolate(&[]));
    assert!(stderr(&complete).contains("has its bandwidth already"));
    assert_eq!(runs(&directory), Some(all));
    succeeds(&directory, &[&plan[..], &["--fast", "100%"]].concat());
    let text = std::fs::read_to_string(directory.path().join("app.plan")).unwrap();
    assert!(text.contains("value bandwidth  # bytes a second"), "{text}");
    assert!(text.contains("counted bytes"), "{text}");
    succeeds(&directory, &["run", "--plan", "app.plan", "--", "./app"]);
}

#[test]
fn a_profile_of_another_program_takes_no_runs() {
    let directory = built(PROGRAM);
    succeeds(&directory, &["record", "-o", "app.iso", "--", "./app"]);
    let other = ["record", "--isolate", "sites", "--", "./app", "other"];
    let refused = isotherm(&directory, &other);
    assert_eq!(refused.status.code(), Some(1));
    let said = stderr(&refused);
    assert!(said.contains("is a profile of `./app`"), "{said}");
    assert_eq!(runs(&directory), None);
    let alone = isotherm(&directory, &["record", "--isolate-top", "3", "--", "./app"]);
    assert!(
        stderr(&alone).contains("--isolate <WHAT>"),
        "{}",
        stderr(&alone)
    );
}
