//! Tests runs by an epoch policy on an emulated machine: pages follow the hot part of a real program, and its data stays whole.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{isotherm, stderr, succeeds, sums};

/// 128 MiB that are touched once, then two parts of 16 MiB of them one after the other, two seconds of processor time each.
/// Every byte counts its updates, and at the end all of them together must be those that were made.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { ALL = 128 << 20, PART = 16 << 20 };
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(void) {
    unsigned char *all = malloc(ALL);
    memset(all, 1, ALL);
    unsigned x = 1;
    unsigned long updates = 0, sum = 0;
    for (int phase = 0; phase < 2; phase++) {
        volatile unsigned char *hot = all + ALL / 2 + phase * PART;
        for (double end = worked() + 2; worked() < end; updates += 200000)
            for (int i = 0; i < 200000; i++) { x = x * 1664525u + 1013904223u; hot[x % PART]++; }
    }
    for (long i = 0; i < ALL; i++) sum += all[i];
    puts((sum - updates) % 256 == 0 ? "whole" : "torn");
    return 0;
}
"#;

const UNIT: u64 = 1 << 20;

fn program(directory: &Path) {
    build(directory, PROGRAM);
}

fn build(directory: &Path, program: &str) {
    std::fs::write(directory.join("app.c"), program).expect("written");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-o", "app", "app.c"]);
    let built = compiler.current_dir(directory).status();
    assert!(built.expect("a C compiler").success());
}

/// Runs the program by a policy, with a fast tier of 24 MiB: the summary of the run. None where the machine cannot emulate.
fn run(directory: &Path, policy: &str, tiers: &str, printed: &str) -> Option<Value> {
    run_with(directory, (policy, &[]), tiers, printed)
}

/// The summary of a run by a policy with more flags; `None` where the machine cannot emulate.
fn run_with(
    directory: &Path,
    (policy, flags): (&str, &[&str]),
    tiers: &str,
    printed: &str,
) -> Option<Value> {
    let common = [
        "run",
        "--policy",
        policy,
        "--unit",
        "1MiB",
        "--tiers",
        tiers,
        "--fast",
        "24MiB",
        "--epoch",
        "500ms",
        "--source",
        "timer",
        "--cache",
        "0B",
        "--summary",
        "run.json",
    ];
    let output = succeeds(directory, &[&common, flags, &["--", "./app"]].concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
    let summary = std::fs::read(directory.join("run.json")).expect("was written");
    let summary: Value = serde_json::from_slice(&summary).expect("is JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return None;
    }
    assert_eq!(summary["mode"], "policy");
    let moves = &summary["moves"];
    let counters = &summary["runtime"]["counters"];
    for pages in ["pages_promoted", "pages_demoted"] {
        assert_eq!(moves[pages], counters[pages]);
    }
    // Each process places what it first touches up to the capacity; a moment later the run has moved what is too much.
    let images = number(&summary["runtime"], "images");
    assert!(
        number(moves, "fast_bytes") <= images * number(moves, "capacity_bytes"),
        "{moves}"
    );
    // The tiers of static data are read a moment after the room that it leaves the heap.
    assert!(
        (23 << 20..=25 << 20).contains(&number(moves, "capacity_bytes")),
        "{moves}"
    );
    assert!(stderr(&output).contains(&format!("{policy} run took")));
    Some(summary)
}

fn number(of: &Value, name: &str) -> u64 {
    of[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {of}"))
}

/// The share of sampled accesses that fast memory served.
fn served(moves: &Value) -> f64 {
    number(moves, "accesses_fast") as f64 / number(moves, "accesses").max(1) as f64
}

/// Two static arrays of 32 MiB, of each of which a part is used, one after the other.
const STATIC_ARRAYS: &str = r#"
#include <stdio.h>
#include <string.h>
#include <time.h>
enum { SIZE = 32 << 20, HOT = 16 << 20 };
static unsigned char first[SIZE], second[SIZE];
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(void) {
    memset(first, 1, SIZE);
    memset(second, 1, SIZE);
    unsigned x = 1;
    for (int phase = 0; phase < 2; phase++) {
        volatile unsigned char *hot = phase ? second + 8 : first + 8;
        for (double end = worked() + 2; worked() < end;)
            for (int i = 0; i < 200000; i++) { x = x * 1664525u + 1013904223u; hot[x % HOT]++; }
    }
    puts(first[SIZE - 1] == 1 && second[SIZE - 1] == 1 ? "whole" : "torn");
    return 0;
}
"#;

#[test]
fn the_hot_part_of_static_data_is_promoted_too() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), STATIC_ARRAYS);
    let Some(summary) = run(directory.path(), "history", "emulated", "whole\n") else {
        return;
    };
    let moves = &summary["moves"];
    assert!(number(moves, "resident_bytes") >= 64 << 20, "{moves}");
    if number(moves, "accesses") < 500 {
        return isotherm_skip::skip!("few samples here: {moves}");
    }
    assert!(number(moves, "pages_promoted") >= 8 << 8, "{moves}");
}

/// A part is 16 units. Each policy follows both parts, and promotes most of their units.
///
/// Not each page of such a unit moves: while the program first touches its memory, demotions make room in fast memory, and the pages that
/// the program touches next are made there. Fast memory holds 24 of the 32 units, so the pages of 8 must move in any case.
fn follows(policy: &str, tiers: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    program(directory.path());
    let Some(summary) = run(directory.path(), policy, tiers, "whole\n") else {
        return;
    };
    let moves = &summary["moves"];
    if number(moves, "accesses") < 500 {
        return isotherm_skip::skip!("few samples here: {moves}");
    }
    assert!(number(moves, "units_promoted") >= 24, "{moves}");
    let of_a_unit = UNIT / 4096;
    assert!(number(moves, "pages_promoted") >= 8 * of_a_unit, "{moves}");
    assert!(served(moves) > 0.4, "{moves}");
}

#[test]
fn history_follows_a_hot_part_that_changes() {
    follows("history", "emulated:B:3,L:3");
}

#[test]
fn payback_follows_a_hot_part_that_changes() {
    follows("payback", "emulated:B:3,L:3");
}

/// The oracle follows a recorded run of the program. It needs no samples of its own; those of the recording are enough for all 32 units.
#[test]
fn the_oracle_follows_what_an_earlier_run_did() {
    let directory = tempfile::tempdir().expect("a directory");
    program(directory.path());
    let record = [
        "record", "--source", "timer", "--cache", "0B", "--epoch", "500ms", "-o", "app.iso", "--",
    ];
    succeeds(directory.path(), &[&record[..], &["./app"]].concat());
    let future = ["--profile", "app.iso"];
    let oracle = ("oracle", &future[..]);
    let tiers = "emulated:B:3,L:3";
    let Some(summary) = run_with(directory.path(), oracle, tiers, "whole\n") else {
        return;
    };
    let moves = &summary["moves"];
    let found = &moves["future"];
    assert_eq!(found["profile"], "app.iso");
    if number(found, "recorded") < 500 * 1024 {
        return isotherm_skip::skip!("few samples here: {moves}");
    }
    assert!(
        number(found, "found") * 10 > number(found, "recorded") * 9,
        "{moves}"
    );
    assert!(number(moves, "units_promoted") >= 24, "{moves}");
    let of_a_unit = UNIT / 4096;
    assert!(number(moves, "pages_promoted") >= 8 * of_a_unit, "{moves}");

    let other = isotherm(
        directory.path(),
        &[
            "run",
            "--policy",
            "oracle",
            "--profile",
            "app.iso",
            "--tiers",
            tiers,
            "--",
            "./app",
            "2",
        ],
    );
    let said = stderr(&other);
    assert!(!other.status.success());
    assert!(
        said.contains("is a profile of `./app`, which tells nothing of the future of `./app 2`"),
        "{said}"
    );
}

#[test]
fn pages_follow_by_page_trap_too() {
    follows("history", "emulated:tmp");
}

/// As the program above, but a child process does the second part, in its copy of the memory.
#[test]
fn a_forked_child_has_tiers_of_its_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = PROGRAM
        .replace(
            "#include <time.h>",
            "#include <time.h>\n#include <sys/wait.h>\n#include <unistd.h>",
        )
        .replace(
            "volatile unsigned char",
            "if (phase == 1 && fork()) { wait(0); break; }\n        volatile unsigned char",
        );
    assert_ne!(program, PROGRAM);
    build(directory.path(), &program);
    let wholes = "whole\nwhole\n";
    let Some(summary) = run(directory.path(), "history", "emulated:B:3,L:3", wholes) else {
        return;
    };
    assert_eq!(number(&summary["runtime"], "images"), 2, "{summary}");
    let moves = &summary["moves"];
    if number(moves, "accesses") < 500 {
        return isotherm_skip::skip!("few samples here: {moves}");
    }
    assert!(number(moves, "units_promoted") >= 24, "{moves}");
    assert!(number(moves, "pages_promoted") > 0, "{moves}");
}

/// Tiers with more bandwidth than a program asks for, which count the bytes that they serve.
const WIDE: &str = "emulated:L:1,B:1,fast-limit:1TiB/s,limit:1TiB/s";

/// Tiers with this bandwidth of fast memory, and three times as much and the same latency of slow memory.
fn narrow(fast: u64) -> String {
    format!(
        "emulated:L:1,B:1,fast-limit:{fast}B/s,limit:{}B/s",
        3 * fast
    )
}

#[test]
fn a_balance_moves_data_out_of_fast_memory_that_is_overloaded() {
    let directory = tempfile::tempdir().expect("a directory");
    // Fast memory has room for all of it.
    build(directory.path(), &sums(20, 2));
    let Some(summary) = run(directory.path(), "first-come", WIDE, "whole\n") else {
        return;
    };
    let read = number(&summary["runtime"]["counters"], "fast_traffic_bytes");
    let demand = (read as f64 / summary["seconds"].as_f64().expect("seconds")) as u64;
    build(directory.path(), &sums(20, 24));
    // A processor that computes faster asks for more.
    let narrow = narrow(demand / 4);
    // No access is sampled while the program waits for the bandwidth: most epochs have too few to move by, and several together have enough.
    let Some(summary) = run(directory.path(), "balance", &narrow, "whole\n") else {
        return;
    };
    let moves = &summary["moves"];
    assert!(number(moves, "units_demoted") >= 8, "{moves}");
    assert!(number(moves, "pages_demoted") >= 6 << 8, "{moves}");
    // All of it would be served by fast memory, which has room for it. In balance slow memory serves three times as much.
    let served = |tier: &str| number(&summary["runtime"]["counters"], tier);
    let (fast, slow) = (served("fast_traffic_bytes"), served("slow_traffic_bytes"));
    assert!(slow > fast / 2, "{fast} fast and {slow} slow");
    let latency = |tier: &str| number(&moves["loads"], tier);
    let (fast, slow) = (latency("fast_latency_ns"), latency("slow_latency_ns"));
    assert!(fast < 3 * slow, "{moves}");
}

#[test]
fn a_balance_without_counted_bytes_or_without_moves_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = |more: &[&str]| {
        let common = ["run", "--policy", "balance", "--fast", "24MiB"];
        let output = isotherm(directory.path(), &[&common, more, &["--", "true"]].concat());
        assert!(!output.status.success());
        stderr(&output)
    };
    for tiers in ["emulated", "emulated:tmp", "emulated:cxl,limit:5GiB/s"] {
        let said = refused(&["--tiers", tiers]);
        let remedy = "add --tiers emulated:cxl,limit:5GiB/s,fast-limit:10GiB/s";
        assert!(said.contains(remedy), "{said}");
    }
    let dry = refused(&["--tiers", &narrow(800 << 20), "--dry-run"]);
    assert!(dry.contains("leave out --dry-run"), "{dry}");
}

#[test]
fn what_came_first_stays_where_it_is() {
    let directory = tempfile::tempdir().expect("a directory");
    program(directory.path());
    let Some(summary) = run(
        directory.path(),
        "first-come",
        "emulated:B:3,L:3",
        "whole\n",
    ) else {
        return;
    };
    let moves = &summary["moves"];
    for none in [
        "units_promoted",
        "units_demoted",
        "pages_promoted",
        "pages_demoted",
    ] {
        assert_eq!(number(moves, none), 0, "{moves}");
    }
    // Neither part was touched among the first.
    assert!(served(moves) < 0.3, "{moves}");
}

#[test]
fn a_dry_run_moves_nothing_and_says_what_would_move() {
    let directory = tempfile::tempdir().expect("a directory");
    program(directory.path());
    let output = succeeds(
        directory.path(),
        &[
            "run",
            "--policy",
            "history",
            "--dry-run",
            "--tiers",
            "emulated",
            "--fast",
            "24MiB",
            "--epoch",
            "500ms",
            "--cache",
            "0B",
            "--source",
            "timer",
            "--summary",
            "run.json",
            "--",
            "./app",
        ],
    );
    let summary = std::fs::read(directory.path().join("run.json")).expect("was written");
    let summary: Value = serde_json::from_slice(&summary).expect("is JSON");
    if summary["placed"] == false {
        return isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
    }
    assert_eq!(number(&summary["moves"], "pages_promoted"), 0, "{summary}");
    assert!(
        stderr(&output).contains("would have moved"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_run_for_the_daemon_observes_nothing_and_a_recorded_one_keeps_its_profile() {
    let directory = tempfile::tempdir().expect("a directory");
    let none = [
        "run", "--policy", "none", "--tiers", "emulated", "--fast", "24MiB", "--", "true",
    ];
    succeeds(directory.path(), &none);
    let recorded = [
        "run", "--policy", "payback", "--tiers", "emulated", "--fast", "24MiB", "-o", "app.iso",
        "--", "true",
    ];
    succeeds(directory.path(), &recorded);
    assert!(directory.path().join("app.iso").is_dir());
}
