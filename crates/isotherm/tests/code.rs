//! Tests what a recording keeps of the code that accesses data: functions, lines, loads and stores, threads, patterns.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::path::Path;

use serde_json::Value;

use support::{built, isotherm, succeeds};

/// One array that is chased at random by a load, and one that is filled in steps of 4 KiB, each by a function of its own.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
enum { COUNT = 64 << 20, STEPS = 15000000, SWEEPS = 8000 };
static unsigned *chased;
static char *filled;
__attribute__((noinline)) unsigned chase(unsigned at) {
    for (int step = 0; step < STEPS; step++)
        at = chased[(at * 1664525u + 1013904223u) % (COUNT / 4)] + step;
    return at;
}
__attribute__((noinline)) void fill(int sweep) {
    for (int at = 0; at < COUNT; at += 4096)
        filled[at] = (char)sweep;
}
int main(void) {
    chased = malloc(COUNT);
    for (int at = 0; at < COUNT / 4; at++) chased[at] = at;
    filled = malloc(COUNT);
    for (int sweep = 0; sweep < SWEEPS; sweep++) fill(sweep);
    printf("%u %d\n", chase(1), filled[0]);
    return 0;
}
"#;

fn report(directory: &Path) -> Value {
    let output = succeeds(directory, &["report", "--json", "app.iso"]);
    serde_json::from_slice(&output.stdout).expect("is JSON")
}

/// The code in the report that accesses the site of this variable.
fn code<'a>(report: &'a Value, variable: &str) -> &'a [Value] {
    let sites = report["sites"].as_array().expect("lists sites");
    let is_it = |site: &&Value| {
        let text = site["location"].as_str();
        text.is_some_and(|text| text.ends_with(variable))
    };
    let site = sites.iter().find(is_it);
    let code = site.and_then(|site| site["code"].as_array());
    code.map_or(&[], Vec::as_slice)
}

/// The line of this function among the code of a site.
fn of<'a>(code: &'a [Value], function: &str) -> Option<&'a Value> {
    code.iter().find(|line| line["function"] == function)
}

/// The stacks of code are written in each format.
fn is_exported(at: &Path) {
    let folded = succeeds(
        at,
        &[
            "report", "app.iso", "--export", "folded", "--stacks", "code",
        ],
    );
    let folded = String::from_utf8_lossy(&folded.stdout).into_owned();
    let is_chase = |line: &str| line.starts_with("chase (app.c:") && line.contains(": chased ");
    assert!(folded.lines().any(is_chase), "{folded}");
    for (format, file) in [("speedscope", "app.speedscope.json"), ("pprof", "app.pb")] {
        succeeds(at, &["report", "app.iso", "--export", format]);
        assert!(
            at.join(file).metadata().is_ok_and(|file| file.len() > 100),
            "{format}"
        );
    }
    let refused = isotherm(at, &["report", "app.iso", "--export", "pprof", "-o", "-"]);
    assert!(support::stderr(&refused).contains("name a file with --output"));
}

#[test]
fn the_functions_that_touch_each_array_are_named_with_their_lines() {
    let directory = built(SOURCE);
    let at = directory.path();
    let record = [
        "record", "--cache", "0B", "--source", "timer", "-o", "app.iso", "--", "./app",
    ];
    succeeds(at, &record);
    let whole = report(at);
    if whole["totals"]["accesses"].as_u64() < Some(200) {
        return isotherm_skip::skip!("threads cannot be sampled here");
    }
    let chase = of(code(&whole, ": chased"), "chase").unwrap_or_else(|| panic!("{whole:#}"));
    let line = chase["line"].as_u64().expect("has a line");
    assert!((6..=8).contains(&line), "{chase:#}");
    assert!(
        chase["file"]
            .as_str()
            .is_some_and(|file| file.ends_with("app.c")),
        "{chase:#}"
    );
    assert!(chase["loads"].as_u64() > Some(0), "{chase:#}");
    assert_eq!(chase["stores"], 0, "{chase:#}");
    assert_eq!(chase["threads"], 1, "{chase:#}");
    assert_eq!(chase["pattern"], "random", "{chase:#}");
    assert!(of(code(&whole, ": chased"), "fill").is_none(), "{whole:#}");
    let fill = of(code(&whole, ": filled"), "fill").unwrap_or_else(|| panic!("{whole:#}"));
    assert!(fill["stores"].as_u64() > Some(0), "{fill:#}");
    assert_eq!(fill["loads"], 0, "{fill:#}");

    let functions = whole["functions"].as_array().expect("lists functions");
    let chase = functions
        .iter()
        .find(|function| function["function"] == "chase");
    let first = &chase.expect("the function")["sites"][0];
    assert!(
        first["location"]
            .as_str()
            .is_some_and(|text| text.ends_with(": chased")),
        "{first:#}"
    );

    let text = succeeds(at, &["report", "--text", "app.iso"]).stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("Code that accesses the sites"), "{text}");
    assert!(text.contains("app.c:"), "{text}");

    is_exported(at);

    // A profile from before it had the table is read without a word, and shown without code.
    std::fs::remove_file(at.join("app.iso/code.parquet")).expect("is there");
    let older = isotherm(at, &["report", "--json", "app.iso"]);
    assert!(
        older.status.success() && older.stderr.is_empty(),
        "{}",
        support::stderr(&older)
    );
    assert!(report(at).get("functions").is_none());
}
