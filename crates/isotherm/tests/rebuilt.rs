//! Tests that a plan guides the program after it was built anew: its sites are found by function, file, line and callers.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use support::{guided, succeeds};

/// A program of three large arrays, of which one is hot, through a function of its own.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double *array(size_t count) {
    double *made = malloc(count * sizeof(double));
    for (size_t at = 0; at < count; at++)
        made[at] = 1;
    return made;
}

int main(void) {
    size_t count = 1 << 18;
    double *hot = array(count), *cold = array(4 * count);
    double *filled = malloc(count * sizeof(double));
    memset(filled, 0, count * sizeof(double));
    printf("before\n");
    for (int round = 0; round < 100; round++)
        for (size_t at = 0; at < count; at++)
            filled[at] += hot[at * 7919 % count] + cold[at] + round;
    printf("%d %d\n", filled[7] > 0, cold[1] > 0);
    return 0;
}
"#;

fn build(directory: &TempDir, source: &str, flags: &[&str]) {
    let file = directory.path().join("app.c");
    std::fs::write(&file, source).expect("writes");
    let built = Command::new("cc")
        .current_dir(directory)
        .args(["-O1", "-Wl,--build-id", "-o", "app", "app.c"])
        .args(flags)
        .status();
    assert!(built.expect("a C compiler").success());
}

/// A directory with the program and a plan for it, every other site of which is slow.
fn planned(flags: &[&str]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    build(&directory, SOURCE, flags);
    succeeds(
        &directory,
        &["record", "--epoch", "50ms", "-o", "app.iso", "--", "./app"],
    );
    let plan = [
        "plan", "app.iso", "--tiers", "emulated", "--fast", "4MiB", "-o", "app.plan",
    ];
    succeeds(&directory, &plan);
    directory
}

/// How each site of the plan was found, by the source text of its innermost line.
fn ways(summary: &Value) -> Vec<String> {
    let sites = summary["fit"]["sites"].as_array().expect("lists sites");
    let mut ways: Vec<_> = sites
        .iter()
        .map(|site| site["found_by"].as_str().expect("a word").to_owned())
        .collect();
    ways.sort();
    ways
}

/// All sites were found, and the run made them.
fn all_were_found(summary: &Value, said: &str) {
    let fit = &summary["fit"];
    assert_eq!(fit["found_sites"], fit["planned_sites"], "{said}\n{fit:#}");
    assert!(fit["planned_sites"].as_u64() >= Some(3), "{fit:#}");
    assert_eq!(summary["sites_only_in_plan"], 0, "{said}\n{summary:#}");
    assert_eq!(summary["value_matched_share"], 1.0, "{said}");
}

#[test]
fn an_unchanged_program_is_known_by_name() {
    let directory = planned(&["-g"]);
    let (said, summary) = guided(&directory, &[]);
    all_were_found(&summary, &said);
    assert_eq!(summary["fit"]["rebuilt"], false);
    assert!(said.contains("the plan fits this build"), "{said}");
}

#[test]
fn a_changed_text_leaves_every_site_in_the_plan() {
    let directory = planned(&["-g"]);
    build(
        &directory,
        &SOURCE.replace("before", "a longer text than before"),
        &["-g"],
    );
    let (said, summary) = guided(&directory, &[]);
    all_were_found(&summary, &said);
    assert_eq!(summary["fit"]["rebuilt"], true, "{said}");
    assert!(
        ways(&summary).iter().all(|way| way == "line"),
        "{summary:#}"
    );
    assert!(said.contains("rebuilt since the plan was made"), "{said}");
}

#[test]
fn lines_added_above_leave_every_site_in_the_plan() {
    let directory = planned(&["-g"]);
    let above = SOURCE
        .replace(
            "#include <string.h>",
            "#include <string.h>\n\nint unused;\n",
        )
        .replace(
            "int main(void) {\n",
            "int main(void) {\n    puts(\"begin\");\n\n",
        );
    build(&directory, &above, &["-g"]);
    let (said, summary) = guided(&directory, &[]);
    all_were_found(&summary, &said);
    // `array` only moved, `main` was edited above its calls.
    assert!(
        ways(&summary).contains(&"variable".to_owned()),
        "{summary:#}"
    );
}

#[test]
fn a_site_that_is_gone_is_said_and_the_rest_is_placed_by_the_plan() {
    let directory = planned(&["-g"]);
    let without = SOURCE
        .replace("*cold = array(4 * count)", "*cold = hot")
        .replace("before", "now");
    build(&directory, &without, &["-g"]);
    let (said, summary) = guided(&directory, &[]);
    let fit = &summary["fit"];
    let (found, planned) = (fit["found_sites"].as_u64(), fit["planned_sites"].as_u64());
    assert_eq!(found.map(|found| found + 1), planned, "{said}\n{fit:#}");
    assert!(
        said.contains("1 of the plan's sites were not found in this build"),
        "{said}"
    );
    assert!(said.contains("placed by first touch"), "{said}");
}

#[test]
fn a_stripped_build_is_placed_as_first_touch_would() {
    let directory = planned(&["-g"]);
    build(&directory, &SOURCE.replace("before", "now"), &["-s"]);
    let (said, summary) = guided(&directory, &[]);
    assert_eq!(summary["fit"]["found_sites"], 0, "{said}");
    assert!(said.contains("is it stripped?"), "{said}");
    let counters = &summary["runtime"]["counters"];
    let pages = |name: &str| counters[name].as_u64().expect("a counter");
    // 8 MiB of 12 are slow: all of them because the fast tier was full, none because of the plan.
    let (slow, spilled) = (pages("first_touches"), pages("spilled_first_touches"));
    assert!(slow > 1000 && spilled * 10 > slow * 9, "{counters:#}");
}

#[test]
fn without_debugging_information_the_order_of_calls_tells() {
    let directory = planned(&[]);
    build(
        &directory,
        &SOURCE.replace("before", "a longer text than before"),
        &[],
    );
    let (said, summary) = guided(&directory, &[]);
    all_were_found(&summary, &said);
    assert!(
        ways(&summary).iter().all(|way| way == "order"),
        "{summary:#}"
    );
}
