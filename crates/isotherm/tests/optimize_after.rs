//! Tests `isotherm run --optimize-after`: the hot part of a large array enters fast memory within the run, and the data stays whole.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use support::{isotherm, stderr, succeeds};

const MIB: u64 = 1 << 20;

/// Samples that tell the hot part.
const ENOUGH_SAMPLES: u64 = 100;

/// Least bytes of the hot part that a choice has.
const CHOSEN: u64 = 3 * MIB;

/// A choice of fewer bytes was made by few samples: the program is given more time.
const RETRIED_BELOW: u64 = 7 * MIB / 2;

/// An array of 48 MiB that is written once; then iterations, each over the 4 MiB from 32 MiB on, for the given seconds of processor time.
/// It prints where these are, and at the end whether every update is there.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { MIB = 1 << 20, COUNT = 48 * MIB / 8, FROM = 32 * MIB / 8, HOT = 4 * MIB / 8 };
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int count, char **words) {
    unsigned long *array = malloc(COUNT * sizeof *array), updates = 0, sum = 0;
    for (int i = 0; i < COUNT; i++) array[i] = 1;
    printf("%lu\n", (unsigned long)(array + FROM));
    unsigned random = 1;
    for (double end = worked() + atoi(words[count - 1]); worked() < end;)
        for (int i = 0; i < 200000; i++, updates++) {
            random = random * 1664525u + 1013904223u;
            array[FROM + (random >> 8) % HOT]++;
        }
    for (int i = 0; i < COUNT; i++) sum += array[i];
    puts(sum == updates + COUNT ? "whole" : "torn");
    return 0;
}
"#;

fn program() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), SOURCE).expect("writes");
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

/// A run: its messages, the address of the hot part, and the optimization; `None` where the machine cannot emulate or hardly samples. When
/// the time is over a loaded machine may have given the program too little of it, or only enough to write the array once, whose samples
/// tell no hot part, or it may have ended before its heat repeated: then it has more.
fn optimized(flags: &[&str]) -> Option<(String, u64, Value)> {
    let mut tries = [1, 4, 16].into_iter().peekable();
    while let Some(times) = tries.next() {
        let is_last = tries.peek().is_none();
        let (said, hot, done) = match optimized_later(flags, times)? {
            (said, hot, Some(done)) => (said, hot, done),
            (said, ..) if is_last => panic!("nothing was optimized: {said}"),
            _ => continue,
        };
        let has_samples = number(&done, "samples") >= ENOUGH_SAMPLES;
        if has_samples && (is_last || number(&done, "selected_bytes") >= RETRIED_BELOW) {
            return Some((said, hot, done));
        }
        if is_last {
            isotherm_skip::skip!("few samples here: {done}");
        }
    }
    None
}

/// A run as [`optimized`] makes it, with `times` as much time until the optimization and for the program. It optimizes at most once.
fn optimized_later(flags: &[&str], times: u64) -> Option<(String, u64, Option<Value>)> {
    let directory = program();
    let seconds = |flag: &&str| flag.strip_suffix('s').and_then(|it| it.parse::<u64>().ok());
    let later =
        |flag: &&str| seconds(flag).map_or((*flag).to_owned(), |it| format!("{}s", it * times));
    let flags: Vec<String> = flags.iter().map(later).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let flags = flags.as_slice();
    let work = (3 * times).to_string();
    let run = [
        "run",
        "--source",
        "timer",
        "--cache",
        "0B",
        "--summary",
        "run.json",
    ];
    let tiers = match flags.contains(&"--tiers") {
        true => &[][..],
        false => &["--tiers", "emulated:cxl"],
    };
    let program = ["--", "./app", &work];
    let output = succeeds(&directory, &[&run, tiers, flags, &program].concat());
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut lines = printed.lines();
    let hot = lines.next().expect("an address").parse();
    assert_eq!(lines.next(), Some("whole"));
    let summary = std::fs::read(directory.path().join("run.json")).expect("was written");
    let summary: Value = serde_json::from_slice(&summary).expect("is JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return None;
    }
    assert_eq!(summary["mode"], "optimize");
    let all = summary["optimizations"].as_array().expect("a list");
    assert!(all.len() <= 1, "{summary}");
    let done = all.first().cloned();
    if let Some(done) = &done {
        check_rate(done, flags);
    }
    Some((stderr(&output), hot.expect("a number"), done))
}

fn number(of: &Value, name: &str) -> u64 {
    of[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {of}"))
}

/// The rate is the one that was named, else one of those that a profile may have.
fn check_rate(done: &Value, flags: &[&str]) {
    let hz = number(done, "sampling_hz").to_string();
    let named = flags.iter().position(|flag| *flag == "--frequency");
    match named.and_then(|at| flags.get(at + 1)) {
        Some(named) => assert_eq!(hz, *named),
        None => assert!(
            ["250", "1000", "2000", "4000"].contains(&hz.as_str()),
            "{done}"
        ),
    }
}

/// The hot part is chosen, what is chosen is fast, and no more is fast than may be.
fn moves_the_hot_part(flags: &[&str]) {
    let Some((said, _, done)) = optimized(flags) else {
        return;
    };
    let (selected, capacity) = (
        number(&done, "selected_bytes"),
        number(&done, "capacity_bytes"),
    );
    assert!((CHOSEN..=capacity).contains(&selected), "{done}");
    let there = number(&done, "placed_bytes") + number(&done, "promoted_bytes");
    assert!(there >= selected / 10 * 9, "{done}");
    assert!(number(&done, "fast_bytes") <= capacity, "{done}");
    assert!(number(&done, "demoted_bytes") > 0, "{done}");
    assert!(said.contains("optimized run took"), "{said}");
    assert!(said.contains("moved to fast memory"), "{said}");
}

#[test]
fn the_hot_part_takes_the_place_of_what_was_touched_first() {
    moves_the_hot_part(&["--fast", "12MiB", "--optimize-after", "1s"]);
}

#[test]
fn a_site_policy_chooses_among_parts_too() {
    moves_the_hot_part(&[
        "--fast",
        "12MiB",
        "--optimize-after",
        "1s",
        "--policy",
        "thermos",
    ]);
}

#[test]
fn a_share_is_one_of_the_data() {
    let flags = ["--fast", "25%", "--optimize-after", "1s"];
    let flags = [&flags[..], &["--frequency", "900"]].concat();
    let Some((said, _, done)) = optimized(&flags) else {
        return;
    };
    let until = "until the decision, and of the program's resident data from then on";
    assert!(said.contains(until), "{said}");
    let resident = number(&done, "resident_bytes");
    let quarter = number(&done, "capacity_bytes");
    assert!(quarter.abs_diff(resident / 4) < MIB, "{done}");
    assert!(number(&done, "fast_bytes") <= resident / 4 + MIB, "{done}");
}

#[test]
fn pages_move_by_page_trap_too() {
    moves_the_hot_part(&[
        "--fast",
        "12MiB",
        "--optimize-after",
        "2s",
        "--tiers",
        "emulated:tmp",
    ]);
}

#[test]
fn repeating_heat_ends_the_profile() {
    moves_the_hot_part(&["--fast", "12MiB", "--optimize-after", "first-iteration"]);
}

/// The first address and the bytes of each range that `tier` is named for.
fn told(said: &str, tier: &str) -> Vec<(u64, f64)> {
    let range = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "move")?;
        let unit = match *words.get(at + 2)? {
            "KiB" => 1024.0,
            "MiB" => MIB as f64,
            _ => return None,
        };
        let bytes = words.get(at + 1)?.parse::<f64>().ok()? * unit;
        let address = words.get(at + 4)?.strip_prefix("0x")?;
        (words.get(words.len() - 2) == Some(&tier))
            .then(|| Some((u64::from_str_radix(address, 16).ok()?, bytes)))?
    };
    said.lines().filter_map(range).collect()
}

#[test]
fn a_dry_run_tells_the_moves_and_makes_none() {
    let flags = ["--fast", "12MiB", "--optimize-after", "1s", "--dry-run"];
    let Some((said, hot, done)) = optimized(&flags) else {
        return;
    };
    let ranges = told(&said, "fast");
    let inside = |(start, bytes): &(u64, f64)| {
        let (start, end) = (*start as f64, *start as f64 + bytes);
        (end.min((hot + 4 * MIB) as f64) - start.max(hot as f64)).max(0.0)
    };
    let covered: f64 = ranges.iter().map(inside).sum();
    assert!(covered >= 3.5 * MIB as f64, "{covered} of {hot:#x}: {said}");
    assert!(!told(&said, "slow").is_empty(), "{said}");
    assert_eq!(done["dry_run"], true);
    assert!(said.contains("would have moved"), "{said}");
}

#[test]
fn a_program_that_ends_before_and_one_without_data_move_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = |flags: &[&str], program: &[&str]| {
        let common = ["run", "--tiers", "emulated:cxl", "--fast", "12MiB"];
        let output = succeeds(&directory, &[&common, flags, &["--"], program].concat());
        stderr(&output)
    };
    let said = run(&["--optimize-after", "1min"], &["true"]);
    assert!(said.contains("ended before"), "{said}");
    let said = run(&["--optimize-after", "first-iteration"], &["true"]);
    assert!(said.contains("before its heat began to repeat"), "{said}");
    // Longer than the busiest machine needs to begin.
    let said = run(&["--optimize-after", "200ms"], &["sleep", "5"]);
    assert!(
        said.contains("nothing was moved") || said.contains("nothing was placed"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_optimized_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    for (flags, wanted) in [
        (&["--optimize-after", "0s"][..], "no time"),
        (&["--optimize-after", "soon"], "first-iteration"),
        (
            &["--optimize-after", "1s", "--policy", "history"],
            "history",
        ),
        (
            &["--optimize-after", "1s", "--policy", "atmem=m:1"],
            "m is 1",
        ),
        (&["--optimize-after", "1s", "--fast", "0B"], "zero bytes"),
        (
            &["--optimize-after", "1s", "--fast", "900TiB"],
            "larger than",
        ),
        (&["--optimize-after", "1s", "--undo"], "--undo"),
        (&["--optimize-after", "1s", "--unit", "1MiB"], "--unit"),
        (&["--policy", "thermos"], "--optimize-after 2s"),
        (&["--policy", "history", "--undo"], "--undo"),
    ] {
        let common = ["run", "--tiers", "emulated:cxl"];
        let output = isotherm(&directory, &[&common, flags, &["--", "true"]].concat());
        assert!(!output.status.success(), "{flags:?}");
        assert!(
            stderr(&output).contains(wanted),
            "{flags:?}: {}",
            stderr(&output)
        );
    }
}
