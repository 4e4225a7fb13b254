//! Runs with `--remap` on an emulated machine: hot data spreads over the devices as its bandwidth rises, and stays whole.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{isotherm, stderr, succeeds, sums};

/// One device has 200 MiB/s, the others 600 MiB/s, and a program that moves 50 MB/s needs two.
const TIERS: &str = "emulated:L:1,B:1,fast-limit:200MiB/s,limit:600MiB/s";

fn prepare(directory: &Path) {
    std::fs::write(directory.join("app.c"), sums(64, 6)).expect("written");
    std::fs::write(directory.join("bandwidth.toml"), "bounds = [\"50MB/s\"]\n").expect("written");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-o", "app", "app.c"]);
    let built = compiler.current_dir(directory).status();
    assert!(built.expect("a C compiler").success());
}

#[test]
fn hot_data_spreads_over_two_devices_after_two_seconds_and_stays_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let words = format!(
        "run --remap bandwidth.toml --tiers {TIERS} --fast 1GiB --source timer --cache 0B --summary run.json -- ./app"
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = succeeds(directory.path(), &words);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    let text = std::fs::read_to_string(directory.path().join("run.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return;
    }
    assert_eq!(summary["mode"], "remap");
    let first = &summary["remaps"][0];
    assert_eq!(
        (&first["from_devices"], &first["to_devices"]),
        (&1.into(), &2.into()),
        "{text}"
    );
    let samples = summary["samples"].as_array().expect("samples");
    assert!(samples.len() >= 3, "{text}");
    let demoted = summary["runtime"]["counters"]["pages_demoted"].as_u64();
    assert!(demoted.is_some_and(|pages| pages > 0), "{text}");
    assert!(stderr(&output).contains("remap"), "{}", stderr(&output));
}

#[test]
fn remapping_needs_a_model_and_a_machine_emulated_by_time() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let refused = |words: &str| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let output = isotherm(directory.path(), &words);
        assert!(!output.status.success());
        stderr(&output)
    };
    let trap = refused("run --remap bandwidth.toml --tiers emulated:tmp -- ./app");
    assert!(
        trap.contains("add --tiers emulated:L:1,B:1,fast-limit"),
        "{trap}"
    );
    let missing = refused("run --remap missing.toml --tiers emulated:cxl -- ./app");
    assert!(missing.contains("missing.toml"), "{missing}");
}
