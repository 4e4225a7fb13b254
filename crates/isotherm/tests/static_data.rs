//! Tests that variables of static storage are sites: they are recorded by name, planned and placed, on the emulated pair; `tests/vm` does
//! the same on nodes.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use support::{guided, stderr, succeeds, use_small_pages};

/// Two static arrays of 8 MiB: one is read all the time, at random, the other is written once. With SHIFTED another array lies
/// before them, with SPARE one that is never touched.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
enum { COUNT = 1 << 20 };
#ifdef SHIFTED
double other[COUNT] = {1};
#endif
#ifdef SPARE
static volatile double spare[4 * COUNT];
#endif
static double cold[COUNT], hot[COUNT];
int main(int count, char **words) {
#ifdef SPARE
    if (count > 9) spare[count] = spare[count + 1];
#endif
    for (int i = 0; i < COUNT; i++) cold[i] = 2 * (hot[i] = i);
    double sum = cold[count];
    unsigned random = 1;
    for (int i = 0; i < 120000000; i++) {
        random = random * 1664525u + 1013904223u;
        sum += hot[random >> 12];
    }
#ifdef SHIFTED
    sum += other[count];
#endif
    printf("%f\n", sum);
    return 0;
}
"#;

const MIB: u64 = 1 << 20;

fn build(directory: &Path, flags: &[&str]) {
    use_small_pages();
    std::fs::write(directory.join("app.c"), SOURCE).expect("writes");
    let built = Command::new("cc")
        .current_dir(directory)
        .args(["-O1", "-g", "-Wl,--build-id", "-o", "app", "app.c"])
        .args(flags)
        .status();
    assert!(built.expect("a C compiler").success());
}

/// A directory with the program and a plan of it with fast memory for one of the arrays.
fn planned() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), &[]);
    let record = ["record", "--cache", "0B", "-o", "app.iso", "--", "./app"];
    succeeds(&directory, &record);
    let plan = [
        "plan",
        "app.iso",
        "--tiers",
        "emulated:cxl",
        "--fast",
        "9MiB",
        "-o",
        "app.plan",
    ];
    succeeds(&directory, &plan);
    directory
}

/// The tier of a variable in the plan.
fn planned_tier(directory: &TempDir, label: &str) -> String {
    let plan = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    let mut lines = plan.lines().filter(|line| line.starts_with("site "));
    let line = lines.find(|line| line.contains(&format!("# {label} ")));
    let line = line.unwrap_or_else(|| panic!("{label}: {plan}"));
    line.split(' ').nth(2).expect("a tier").to_owned()
}

/// MiB in the fast and in the slow tier at the end, and samples of accesses to the slow one; `None` where threads cannot be
/// sampled.
fn placed(summary: &Value) -> Option<(u64, u64, u64)> {
    let off = summary["runtime"]["runtime_off"]
        .as_array()
        .expect("a list");
    let counters = &summary["runtime"]["counters"];
    let number = |name: &str| counters[name].as_u64().expect("a counter");
    off.is_empty().then(|| {
        (
            number("fast_bytes") / MIB,
            number("slow_bytes") / MIB,
            number("slow_accesses"),
        )
    })
}

/// The summary of a run by the plan, with these flags.
fn run_with(directory: &TempDir, flags: &[&str]) -> Value {
    let run = ["run", "--plan", "app.plan", "--summary", "run.json"];
    succeeds(directory, &[&run[..], flags, &["--", "./app"]].concat());
    let summary = std::fs::read(directory.path().join("run.json")).expect("was written");
    serde_json::from_slice(&summary).expect("is JSON")
}

#[test]
fn an_array_that_is_never_touched_has_no_resident_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), &["-DSPARE"]);
    succeeds(&directory, &["record", "-o", "app.iso", "--", "./app"]);
    let report = succeeds(&directory, &["report", "--json", "app.iso"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("is JSON");
    // A site without resident bytes has no name. The first page of an array may be of the one before.
    let resident = |bytes: u64| {
        let mut sites = report["sites"].as_array().expect("sites").iter();
        let requested = |site: &Value| site["requested_bytes"].as_u64().expect("a number");
        let found = sites.find(|site| (bytes..=bytes + 4096).contains(&requested(site)));
        let site = found.unwrap_or_else(|| panic!("{bytes} B: {report:#}"));
        site["peak_rss_bytes"].as_u64().expect("a number")
    };
    assert!(resident(8 * MIB) >= 8 * MIB, "{report:#}");
    assert!(resident(32 * MIB) < MIB, "{report:#}");
    let footprint = report["totals"]["footprint_bytes"]
        .as_u64()
        .expect("a number");
    assert!(footprint < 24 * MIB, "{footprint}");
}

#[test]
fn a_plan_names_static_arrays_and_a_run_places_them() {
    let directory = planned();
    assert_eq!(planned_tier(&directory, "data hot (app)"), "fast");
    assert_eq!(planned_tier(&directory, "data cold (app)"), "slow");
    let (said, summary) = guided(&directory, &[]);
    assert_eq!(summary["sites_only_in_plan"], 0, "{said}");
    let Some((fast, slow, few)) = placed(&summary) else {
        return isotherm_skip::skip!("threads cannot be sampled here");
    };
    // One array each, with the little else that the program has.
    assert!((8..=9).contains(&fast), "{summary:#}");
    assert!((8..=9).contains(&slow), "{summary:#}");
    let (fast, slow, all) =
        placed(&run_with(&directory, &["--static", "slow"])).expect("as before");
    assert!(fast <= 1 && slow >= 16, "{fast} MiB fast, {slow} slow");
    // The hot array is slow now: nearly all accesses are to it.
    assert!(all > 4 * few + 20, "{all} slow accesses, {few} by the plan");
    let (fast, slow, _) = placed(&run_with(&directory, &["--static", "fast"])).expect("as before");
    assert!(
        (8..=9).contains(&fast),
        "no more than the limit: {fast} MiB"
    );
    assert!((7..=9).contains(&slow), "the rest spills: {slow} MiB");
}

#[test]
fn a_variable_of_a_rebuilt_program_is_found_by_its_name() {
    let directory = planned();
    build(directory.path(), &["-DSHIFTED"]);
    let (said, summary) = guided(&directory, &[]);
    let sites = summary["fit"]["sites"].as_array().expect("a list");
    let by = sites.iter().map(|site| site["found_by"].as_str());
    assert!(
        by.clone().all(|by| by == Some("variable")),
        "{said}\n{summary:#}"
    );
    assert!(by.count() >= 2, "{summary:#}");
    let Some((fast, slow, _)) = placed(&summary) else {
        return isotherm_skip::skip!("threads cannot be sampled here");
    };
    assert!(
        (8..=9).contains(&fast) && (8..=9).contains(&slow),
        "{summary:#}"
    );
}

#[test]
fn arrays_of_a_library_are_sites_too() {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("writes");
    };
    write(
        "table.c",
        "static long table[1 << 18]; long sum(int n) { long s = 0; for (int k = 0; k < n; k++)
            for (int i = 0; i < 1 << 18; i++) s += table[i]++; return s; }",
    );
    write(
        "main.c",
        "long sum(int); int main(void) { return sum(600) == 1; }",
    );
    for words in [
        &["-O1", "-shared", "-fPIC", "-o", "libtable.so", "table.c"][..],
        &["-O1", "-o", "app", "main.c", "./libtable.so"],
    ] {
        let built = Command::new("cc")
            .current_dir(&directory)
            .args(words)
            .status();
        assert!(built.expect("a C compiler").success());
    }
    let record = ["record", "--cache", "0B", "-o", "app.iso", "--", "./app"];
    let output = succeeds(&directory, &record);
    let report = succeeds(&directory, &["report", "--json", "app.iso"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    let sites = report["sites"].as_array().expect("sites");
    let is_table = |site: &&Value| site["callers"][0]["function"] == "data table";
    let table = sites.iter().find(is_table);
    let table = table.unwrap_or_else(|| panic!("{}\n{report:#}", stderr(&output)));
    // Its first page may have begun before it.
    let peak = table["peak_rss_bytes"].as_u64().expect("bytes");
    assert!((2 * MIB..=2 * MIB + 4096).contains(&peak), "{table:#}");
}
