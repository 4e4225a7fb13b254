//! Tests where data goes that has no site of the plan, or no site at all.
//!
//! A guided run of the very program that was recorded, on a path that was not: sites that the plan does not know are placed as
//! first touch would place them, small ones that it knows go with the arena that they shared.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::process::Command;

use tempfile::TempDir;

use support::{guided, stderr, succeeds};

/// A hot array, four small sites of 200 KiB, two of them through the function that makes the hot array; and 4 MiB at each of
/// two sites that are reached by an argument only.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL (200 << 10)

__attribute__((noinline)) static char *filled(size_t bytes) {
    char *made = malloc(bytes);
    memset(made, 1, bytes);
    return made;
}

__attribute__((noinline)) static char *unseen(size_t bytes) {
    char *made = malloc(bytes);
    memset(made, 2, bytes);
    return made;
}

int main(int count, char **words) {
    volatile char *hot = filled(1 << 20);
    char *first = filled(SMALL), *second = filled(SMALL);
    char *third = malloc(SMALL), *fourth = malloc(SMALL);
    memset(third, 1, SMALL);
    memset(fourth, 1, SMALL);
    for (long round = 0; round < 40000000; round++)
        hot[round * 4099 % (1 << 20)] += 1;
    printf("%d\n", first[5] + second[5] + third[5] + fourth[5]);
    if (count > 1) {
        char *here = malloc(4 << 20), *there = unseen(4 << 20);
        memset(here, 2, 4 << 20);
        printf("%s %d\n", words[1], here[7] + there[7]);
    }
    return 0;
}
"#;

/// Pages of the small sites.
const SMALL_PAGES: u64 = 4 * 50;
/// Pages of the sites that were not recorded.
const UNSEEN_PAGES: u64 = 2 * 1024;

/// A directory with the program.
fn built() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), SOURCE).expect("writes");
    let built = Command::new("cc")
        .current_dir(&directory)
        .args(["-O1", "-g", "-Wl,--build-id", "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

/// A directory with the program and a plan for it that sends the shared arena to the slow tier.
fn planned(fast: &str) -> TempDir {
    let directory = built();
    succeeds(
        &directory,
        &["record", "--epoch", "50ms", "-o", "app.iso", "--", "./app"],
    );
    let plan = [
        "plan", "app.iso", "--tiers", "emulated", "--fast", fast, "-o", "app.plan",
    ];
    succeeds(&directory, &plan);
    let path = directory.path().join("app.plan");
    let text = std::fs::read_to_string(&path).expect("was written");
    assert!(
        text.contains("site shared ") && text.contains("\ndefault fast\n"),
        "{text}"
    );
    let slow = text.replace("site shared fast", "site shared slow");
    std::fs::write(&path, slow).expect("writes");
    directory
}

/// Pages that a guided run placed into the slow tier, and those of them for which the fast tier had no room. The first are
/// counted with one for each group of pages that the fast tier makes at once.
fn slow_pages(directory: &TempDir, arguments: &[&str]) -> (u64, u64) {
    let (_, summary) = guided(directory, arguments);
    assert_eq!(summary["fit"]["rebuilt"], false, "{summary:#}");
    let counters = &summary["runtime"]["counters"];
    let pages = |name: &str| counters[name].as_u64().expect("a counter");
    (pages("first_touches"), pages("spilled_first_touches"))
}

#[test]
fn a_small_site_goes_with_the_shared_arena_and_one_never_seen_where_first_touch_would_put_it() {
    let directory = planned("64MiB");
    let (known, spilled) = slow_pages(&directory, &[]);
    // The hot array and what was made by the same function are apart.
    assert!((SMALL_PAGES..SMALL_PAGES + 100).contains(&known), "{known}");
    assert_eq!(spilled, 0);
    let (all, spilled) = slow_pages(&directory, &["unseen"]);
    assert!(
        all < known + UNSEEN_PAGES / 4,
        "{all} pages are slow, {known} of them of known sites"
    );
    assert_eq!(spilled, 0);
}

#[test]
fn a_site_never_seen_is_slow_where_the_fast_tier_is_full() {
    let directory = planned("2MiB");
    let (all, spilled) = slow_pages(&directory, &["unseen"]);
    assert!(
        spilled > UNSEEN_PAGES * 3 / 4,
        "{spilled} pages spilled of {all} slow ones"
    );
}

#[test]
fn a_program_that_its_launcher_starts_without_the_runtime_is_named() {
    let directory = built();
    let warning = |launcher: &[&str]| {
        let record = ["record", "--cache", "0B", "--force", "-o", "app.iso", "--"];
        let output = succeeds(&directory, &[&record, launcher, &["./app"][..]].concat());
        stderr(&output)
    };
    let said = warning(&["env", "-i"]);
    if said.contains("source timer:") {
        return isotherm_skip::skip!("threads cannot be sampled here");
    }
    assert!(said.contains(" (app) ran without libisotherm.so"), "{said}");
    assert!(!said.contains("before its memory was measured"), "{said}");
    assert!(!warning(&["env"]).contains("libisotherm.so"));
}
