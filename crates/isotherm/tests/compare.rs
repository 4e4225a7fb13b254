//! Tests `isotherm compare` by running it: outputs that differ, and plans that fit nothing. The library `libisotherm.so` must be beside the
//! program (`cargo build --workspace` puts it there).

mod support;

use std::process::Command;

use tempfile::TempDir;

use support::{isotherm, stderr};

/// Prints its process id, which differs in each run, where it is asked to.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *hot = malloc(4 << 20);
    for (int i = 0; i < 200; i++) memset(hot, i, 4 << 20);
    if (argc > 1) printf("%d\n", getpid());
    printf("%d\n", hot[7]);
    return 0;
}
"#;

/// A directory with the program and a plan of it.
fn planned() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.c"), PROGRAM).unwrap();
    let built = Command::new("cc")
        .current_dir(&directory)
        .args(["-O1", "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    for arguments in [
        &["record", "--epoch", "50ms", "--", "./app"][..],
        &[
            "plan", "app.iso", "--tiers", "emulated", "--fast", "8MiB", "-o", "app.plan",
        ],
    ] {
        let output = isotherm(&directory, arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    directory
}

#[test]
fn a_program_that_prints_something_else_each_time_is_compared_and_it_is_said_once() {
    let directory = planned();
    let compare = ["compare", "--rounds", "3", "--json", "app.plan"];
    let output = isotherm(&directory, &[&compare[..], &["--", "./app", "id"]].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("output differs").count(), 1, "{said}");
    assert!(said.contains("--check-output"), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outputs_differ"], true);
    for key in ["min_seconds", "median_seconds", "max_seconds"] {
        assert!(json[key]["guided"].as_f64() > Some(0.0), "{key}: {json}");
    }
    assert!(json["guided_within_noise_of_first_touch"].is_boolean());
    assert!(json["min_seconds"]["guided"].as_f64() <= json["max_seconds"]["guided"].as_f64());

    let output = isotherm(&directory, &[&compare[..], &["--", "./app"]].concat());
    assert!(
        !stderr(&output).contains("output differs"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn who_wants_the_check_of_the_output_gets_an_error() {
    let directory = planned();
    let compare = [
        "compare",
        "--rounds",
        "2",
        "--check-output",
        "app.plan",
        "--",
        "./app",
        "id",
    ];
    let output = isotherm(&directory, &compare);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("output differs"),
        "{}",
        stderr(&output)
    );
    assert!(output.stdout.is_empty());
}

#[test]
fn a_plan_that_fits_nothing_is_refused_with_reason_and_remedy() {
    let directory = planned();
    for (edit, reason) in [
        ("every site is another one", "was made by this program"),
        ("no site is left", "it names no site"),
    ] {
        let plan = std::fs::read_to_string(directory.path().join("app.plan")).unwrap();
        let lines = plan.lines().enumerate().filter_map(|(at, line)| {
            let Some(rest) = line.strip_prefix("site ") else {
                return Some(line.to_owned());
            };
            let tier = rest.split_once(' ')?.1.split(" caller").next()?;
            (reason == "was made by this program").then(|| format!("site {at:016x} {tier}"))
        });
        let lines: Vec<String> = lines.collect();
        std::fs::write(directory.path().join("other.plan"), lines.join("\n") + "\n").unwrap();
        let output = isotherm(&directory, &["compare", "other.plan", "--", "./app"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{edit}: {said}");
        assert!(said.contains(reason), "{edit}: {said}");
        assert!(
            said.contains("isotherm record -o app.iso -- ./app"),
            "{edit}: {said}"
        );
        assert!(output.stdout.is_empty(), "{edit}");
    }
}
