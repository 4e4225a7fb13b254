//! The daemon on emulated machines: it moves memory of programs that run under the runtime, on a machine with one kind of it.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{
    Daemon, HOT, MIB, PROGRAM, Watched, compile, directory, isotherm_status, usable, whole_config,
};

/// Fast memory of the program's machine: a quarter of its memory, and somewhat more than what is hot of it.
const FAST: &str = "40MiB";

const CONFIG: &str = r#"policy = "history"
[processes]
programs = ["watched"]
filter = "off"
[memory]
tiers = "emulated"
[sources]
accessed_bits = "off"
cache = "0B"
"#;

/// Epochs after which a machine that samples has delivered some.
const PATIENT_EPOCHS: u64 = 60;

/// Fast bytes of a process in a range of addresses.
fn fast_in(directory: &Path, pid: u64, range: &Range<u64>) -> u64 {
    let number = pid.to_string();
    let maps = isotherm_status(directory, &["--maps", "--pid", &number, "--json"]);
    let Ok(maps) = serde_json::from_slice::<Value>(&maps.stdout) else {
        return 0;
    };
    let ranges = maps["processes"][0]["ranges"].as_array().cloned();
    let number = |of: &Value, name: &str| of[name].as_u64().expect("a number");
    let ranges = ranges.unwrap_or_default();
    let inside = ranges
        .iter()
        .filter(|one| range.start <= number(one, "start") && number(one, "end") <= range.end);
    inside.map(|one| number(one, "fast_bytes")).sum()
}

#[test]
fn the_hot_part_of_a_program_on_an_emulated_machine_ends_fast() {
    let directory = directory();
    let directory = directory.path();
    let program = compile(directory, "watched", PROGRAM);
    let mut run = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    let tiers = "emulated:B:3,L:3";
    run.args([
        "-q", "run", "--policy", "none", "--tiers", tiers, "--fast", FAST, "--",
    ]);
    run.arg(&program);
    let emulated = Watched::with(run);
    // The same program without a machine of its own is no concern of this daemon.
    let _plain = Watched::start(directory);
    let mut daemon = Daemon::with_flags(directory, &whole_config(directory, CONFIG), &[]);
    let status = daemon.wait("samples", |status| {
        let epochs = status["epochs"].as_u64().unwrap_or(0);
        usable(status, &["timer", "pebs", "ibs", "spe"]) > 0 || epochs >= PATIENT_EPOCHS
    });
    let watched = status["processes"].as_array().expect("a list").clone();
    if watched.is_empty() || usable(&status, &["timer", "pebs", "ibs", "spe"]) == 0 {
        return isotherm_skip::skip!("no samples, or nothing can be emulated here: {status}");
    }
    assert_eq!(watched.len(), 1, "{status}");
    let pid = watched[0]["pid"].as_u64().expect("a number");
    assert_eq!(status["capacity_bytes"], 40 * MIB, "{status}");
    let hot = emulated.hot.next_multiple_of(2 * MIB)..emulated.hot + HOT;
    // The first epochs rank by few samples.
    daemon.wait("fast hot part", |_| {
        fast_in(directory, pid, &hot) >= (hot.end - hot.start) * 3 / 4
    });
    let status = daemon.status().expect("a status");
    let number = |name: &str| status["total"][name].as_u64().expect("a number");
    assert!(number("promoted_bytes") >= HOT / 2, "{status}");
    let fast = status["fast_bytes"].as_u64().expect("a number");
    assert!(fast <= 40 * MIB, "{status}");
    daemon.stop();
}
