//! Tests `isotherm daemon --replay`, which runs a recording through the daemon's own step.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces")
}

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .current_dir(traces())
        .args(["daemon", "--replay"])
        .args(arguments)
        .output()
        .expect("isotherm starts")
}

fn printed(arguments: &[&str]) -> String {
    let output = replay(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).expect("is UTF-8")
}

/// A configuration of epochs of 1 ms is not allowed; these are the shortest.
const CONFIG: &str = "epoch = \"100ms\"\npolicy = \"history\"\n[memory]\nunit = \"64KiB\"\n";

/// Twelve epochs: of four units one is accessed a hundred times as often as the others; in the middle
/// another one takes its place.
fn phases(directory: &Path) -> [String; 2] {
    let mut text = "time_us,address,access\n".to_owned();
    for epoch in 0..12_u64 {
        let hot = if epoch < 6 { 3 } else { 1 };
        for access in 0..103_u64 {
            let unit = if access < 100 { hot } else { access - 100 };
            let time = epoch * 100_000 + access * 900;
            let _ = writeln!(text, "{time},{},r", (unit << 16) + access * 64);
        }
    }
    let (file, config) = (directory.join("phases.csv"), directory.join("daemon.toml"));
    std::fs::write(&file, text).expect("writes");
    std::fs::write(&config, CONFIG).expect("writes");
    [file, config].map(|path| path.display().to_string())
}

/// The status of each of the twelve epochs.
fn told(arguments: &[&str]) -> Vec<Value> {
    let lines = printed(&[arguments, &["--json"]].concat());
    let read = |line| serde_json::from_str(line).expect("is JSON");
    let epochs: Vec<Value> = lines.lines().map(read).collect();
    assert_eq!(epochs.len(), 12);
    epochs
}

fn hit_rates(epochs: &[Value]) -> Vec<f64> {
    let rate = |status: &Value| status["hit_rate"].as_f64().expect("is a number");
    epochs.iter().map(rate).collect()
}

#[test]
fn the_oracle_knows_of_a_change_before_it_comes_and_a_live_daemon_has_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let [file, config] = phases(directory.path());
    std::fs::write(&config, CONFIG.replace("history", "oracle")).expect("writes");
    let rates = hit_rates(&told(&[&file, "--config", &config, "--fast", "25%"]));
    assert!(rates[0] < 0.05, "nothing is fast at first: {rates:?}");
    assert!(rates[1..].iter().all(|rate| *rate > 0.9), "{rates:?}");
    let live = Command::new(env!("CARGO_BIN_EXE_isotherm"))
        .args(["daemon", "--dry-run", "--once", "--config", &config])
        .output()
        .expect("isotherm starts");
    let said = String::from_utf8_lossy(&live.stderr).into_owned();
    assert!(
        !live.status.success() && said.contains("isotherm daemon --replay"),
        "{said}"
    );
    let with_groups = CONFIG.replace("history", "oracle") + "[groups.\"/a\"]\npriority = 2\n";
    std::fs::write(&config, with_groups).expect("writes");
    let refused = replay(&[&file, "--config", &config]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("knows nothing of [groups]"),
        "{said}"
    );
}

#[test]
fn a_recording_is_decided_about_epoch_by_epoch_as_in_a_dry_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let [file, config] = phases(directory.path());
    let arguments = [&file, "--config", &config, "--fast", "25%"];
    let epochs = told(&arguments);
    let rates = hit_rates(&epochs);
    // Nothing is fast at first; after that the hot unit is, but for the epoch in which it changes.
    for (epoch, rate) in rates.iter().enumerate() {
        let cold = epoch == 0 || epoch == 6;
        assert!(
            if cold { *rate < 0.05 } else { *rate > 0.9 },
            "{epoch}: {rates:?}"
        );
    }
    let last = &epochs[11];
    assert_eq!(
        (&last["dry_run"], &last["policy"]),
        (&true.into(), &"history".into())
    );
    assert_eq!(
        (&last["fast_bytes"], &last["resident_bytes"]),
        (&65_536.into(), &(4 << 16).into())
    );
    assert_eq!(
        last["total"]["promoted_bytes"],
        2 << 16,
        "one unit, and the other one"
    );
    assert_eq!(last["total"]["demoted_bytes"], 1 << 16);
    let brief = printed(&arguments);
    let line = "would: move 64 KiB in 1 range of process 0 to fast memory\n";
    assert_eq!(brief.matches(line).count(), 2, "{brief}");
    assert!(!brief.contains(" at 0x"), "{brief}");
    let text = printed(&[&arguments[..], &["--verbose"]].concat());
    let promotions = text.matches("would: move 64KiB").count();
    assert_eq!(promotions, 3, "{text}");
    for part in [
        "epoch 6: hit rate",
        "at 0x30000 of process 0 to fast memory",
        "of all its accesses",
        "dry run by history",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn what_other_tools_recorded_is_replayed() {
    let directory = tempfile::tempdir().expect("a directory");
    let [_, config] = phases(directory.path());
    for (file, method) in [
        ("page-faults.perf.data", "page-faults"),
        ("page-faults.perf-script.txt", "page-faults"),
        ("mem-loads.perf-script.txt", "mem-loads"),
        ("damon.trace.txt", "damon"),
        ("damo.json", "damo"),
    ] {
        let lines = printed(&[file, "--config", &config, "--fast", "50%", "--json"]);
        let last: Value =
            serde_json::from_str(lines.lines().last().expect("a line")).expect("is JSON");
        assert!(last["units"].as_u64() > Some(0), "{file}: {last}");
        assert!(
            last["sources"][0]["usable"].as_u64() > Some(0),
            "{method}: {last}"
        );
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_with_a_sentence() {
    let refused = |arguments: &[&str]| {
        let output = replay(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["nowhere.data"]).contains("nowhere.data"));
    assert!(refused(&["accesses.csv", "--format", "profile"]).contains("isotherm simulate"));
    assert!(refused(&["accesses.csv", "--dry-run"]).contains("--dry-run"));
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("c.toml");
    std::fs::write(&config, "[groups.\"/web\"]\nfloor = \"1GiB\"\n").expect("writes");
    let config = config.display().to_string();
    assert!(refused(&["accesses.csv", "--config", &config]).contains("floors"));
}
