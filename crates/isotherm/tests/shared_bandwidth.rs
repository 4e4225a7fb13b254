//! Runs on emulated machines whose slow memory has a limited bandwidth.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{isotherm, stderr, succeeds};

/// Sums 128 MiB forty times.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { WORDS = 16 << 20 };
int main(void) {
    long *all = malloc(WORDS * sizeof *all), sum = 0;
    for (long i = 0; i < WORDS; i++) all[i] = i;
    for (int round = 0; round < 40; round++) {
        for (long i = 0; i < WORDS; i++) sum += all[i];
        __asm__ volatile("" : "+r"(sum) : : "memory");
    }
    printf("%ld\n", sum);
    return 0;
}
"#;

const SUM: &str = "5629499198668800\n";

fn program(directory: &Path) {
    std::fs::write(directory.join("app.c"), PROGRAM).expect("written");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-o", "app", "app.c"]);
    let built = compiler.current_dir(directory).status();
    assert!(built.expect("a C compiler").success());
}

/// Nanoseconds that the program waited for slow memory. None where the machine cannot emulate.
fn waited(directory: &Path, tiers: &str) -> Option<u64> {
    let words =
        "run --policy first-come --fast 2MiB --source timer --cache 0B --summary run.json --tiers";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend([tiers, "--", "./app"]);
    let output = succeeds(directory, &words);
    assert_eq!(String::from_utf8_lossy(&output.stdout), SUM);
    let text = std::fs::read_to_string(directory.join("run.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return None;
    }
    summary["runtime"]["counters"]["delay_ns"].as_u64()
}

#[test]
fn a_program_waits_for_the_bandwidth_beyond_its_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    program(directory.path());
    let tiers = |limit: &str| waited(directory.path(), &format!("emulated:L:1,B:1{limit}"));
    let (Some(free), Some(wide), Some(narrow)) =
        (tiers(""), tiers(",limit:1PiB/s"), tiers(",limit:500MiB/s"))
    else {
        return;
    };
    // Samples wait for their own microseconds at any limit.
    assert_eq!((free, wide / 10_000_000), (0, 0));
    // 5 GiB take 10 s at that limit; the program works for a part of them.
    assert!(narrow > 1_000_000_000, "{narrow} ns");
}

#[test]
fn a_machine_needs_a_limit_and_keeps_it_in_the_plan() {
    let directory = tempfile::tempdir().expect("a directory");
    let told = |tiers: &str| {
        let output = succeeds(directory.path(), &["tiers", "--tiers", tiers]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(
        told("emulated:lab,limit:5GiB/s")
            .contains("emulated: all runs on the machine \"lab\" share 5 GiB/s of slow memory")
    );
    assert!(told("emulated:limit:5GiB/s").contains("the processes of a run share 5 GiB/s"));
    let refused = isotherm(directory.path(), &["tiers", "--tiers", "emulated:lab"]);
    let error = stderr(&refused);
    assert!(!refused.status.success());
    assert!(error.contains("emulated:lab,limit:5GiB/s"), "{error}");
}
