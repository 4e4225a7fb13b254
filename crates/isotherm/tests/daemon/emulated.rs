//! Tests the daemon on emulated machines: it moves memory of programs that run under the runtime, on a machine with one kind of memory.

use std::ops::Range;
use std::path::Path;
use std::process::Command;

use isotherm_abi::page_tiers::{PAGE_BYTES, PAGE_FAST};
use isotherm_session::{SessionFile, session_of};
use serde_json::Value;

use super::{
    Daemon, HOT, MIB, PROGRAM, Watched, compile, directory, isotherm_status, usable, whole_config,
};

/// Fast memory of the program's machine: a quarter of its memory, and somewhat more than its hot part.
const FAST: &str = "40MiB";

/// A configuration for the program of this directory only: other tests run programs of the same name.
fn config(directory: &Path, fast: &str) -> String {
    config_of(directory, ("history", "emulated"), fast)
}

/// A configuration with this policy and these tiers.
fn config_of(directory: &Path, (policy, tiers): (&str, &str), fast: &str) -> String {
    let program = directory.canonicalize().unwrap().join("watched");
    let config = format!(
        "policy = \"{policy}\"\n[processes]\nprograms = [\"{}\"]\nfilter = \"off\"\n\
         [memory]\ntiers = \"{tiers}\"\nfast = \"{fast}\"\n\
         [sources]\naccessed_bits = \"off\"\ncache = \"0B\"\n",
        program.display()
    );
    whole_config(directory, &config)
}

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

/// The program on an emulated machine of its own.
fn emulated(directory: &Path) -> Watched {
    emulated_on(directory, &["--tiers", "emulated:B:3,L:3", "--fast", FAST])
}

/// The program on the machine of these flags.
fn emulated_on(directory: &Path, tiers: &[&str]) -> Watched {
    let program = compile(directory, "watched", PROGRAM);
    let mut run = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    run.args(["-q", "run", "--policy", "none"]);
    run.args(tiers).arg("--").arg(&program);
    Watched::with(run)
}

/// The status once there are samples, and the watched processes. None where the machine has no samples, or cannot emulate.
fn sampled(daemon: &mut Daemon) -> Option<(Value, Vec<Value>)> {
    let status = daemon.wait("samples", |status| {
        let epochs = status["epochs"].as_u64().unwrap_or(0);
        usable(status, &["timer", "pebs", "ibs", "spe"]) > 0 || epochs >= PATIENT_EPOCHS
    });
    let watched = status["processes"].as_array().expect("a list").clone();
    if watched.is_empty() || usable(&status, &["timer", "pebs", "ibs", "spe"]) == 0 {
        isotherm_skip::skip!("no samples, or nothing can be emulated here: {status}");
        return None;
    }
    Some((status, watched))
}

/// Fast bytes of a process, as its runtime publishes them.
fn published_fast(pid: u64) -> u64 {
    let pid = u32::try_from(pid).expect("a process id");
    let path = session_of(Path::new("/proc"), pid).expect("a session");
    let session = SessionFile::open(&path).expect("a session file");
    let pages = session.page_tiers().expect("its tiers").tiers;
    let fast = pages.iter().filter(|tier| **tier == PAGE_FAST);
    fast.count() as u64 * PAGE_BYTES
}

#[test]
fn the_hot_part_of_a_program_on_an_emulated_machine_ends_fast() {
    let directory = directory();
    let directory = directory.path();
    let emulated = emulated(directory);
    // The same program without a machine of its own is no concern of this daemon.
    let _plain = Watched::start(directory);
    let mut daemon = Daemon::with_flags(directory, &config(directory, "100%"), &[]);
    let Some((status, watched)) = sampled(&mut daemon) else {
        return;
    };
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

/// Two runs begin with 40 MiB fast each, by first touch. The daemon has 40 MiB for both.
#[test]
fn two_runs_share_the_fast_memory_that_the_daemon_has() {
    let directory = directory();
    let directory = directory.path();
    let programs = [emulated(directory), emulated(directory)];
    let limit = 40 * MIB;
    let mut daemon = Daemon::with_flags(directory, &config(directory, FAST), &[]);
    let list = |status: &Value| status["processes"].as_array().cloned().unwrap_or_default();
    let status = daemon.wait("samples of both", |status| {
        let seen = usable(status, &["timer", "pebs", "ibs", "spe"]) > 0;
        let both = seen && list(status).len() == programs.len();
        both || status["epochs"].as_u64() >= Some(PATIENT_EPOCHS)
    });
    let watched = list(&status);
    if watched.len() != programs.len() || usable(&status, &["timer", "pebs", "ibs", "spe"]) == 0 {
        return isotherm_skip::skip!("no samples, or nothing can be emulated here: {status}");
    }
    let pids = watched
        .iter()
        .map(|one| one["pid"].as_u64().expect("a number"));
    let pids: Vec<u64> = pids.collect();
    let fast = || pids.iter().map(|pid| published_fast(*pid)).sum::<u64>();
    // A program that had no processor for a while obeys after the status.
    let status = daemon.wait("what fits", |status| {
        status["fast_bytes"].as_u64() <= Some(limit) && fast() <= limit
    });
    assert_eq!(status["capacity_bytes"], limit, "{status}");
    let begun = status["epochs"].as_u64().expect("a number");
    for epoch in begun + 1..begun + 9 {
        // What a program was late to move fits an epoch later.
        daemon.wait("an epoch in which both fit", |status| {
            let is_later = status["epochs"].as_u64() >= Some(epoch);
            is_later && status["fast_bytes"].as_u64() <= Some(limit) && fast() <= limit
        });
    }
    let fast = fast();
    assert!(fast >= limit / 2, "the tier is used: {fast}");
    daemon.stop();
}

/// All memory begins in fast memory, whose bandwidth the hot part alone exceeds several times; slow memory has three times as much.
#[test]
fn a_balance_moves_a_part_of_what_is_hot_out_of_fast_memory_that_is_overloaded() {
    let directory = directory();
    let directory = directory.path();
    let tiers = "emulated:L:1,B:1,fast-limit:150MiB/s,limit:450MiB/s";
    let file = directory.join("lab.toml").display().to_string();
    let write = ["tiers", "--tiers", tiers, "--fast", "1GiB", "-o", &file];
    let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
    let written = command.args(write).output().expect("runs");
    assert!(written.status.success(), "{written:?}");
    let emulated = emulated_on(directory, &["--tiers", &file]);
    let config = config_of(directory, ("balance", &file), "100%");
    let mut daemon = Daemon::with_flags(directory, &config, &[]);
    let Some((_, watched)) = sampled(&mut daemon) else {
        return;
    };
    let pid = watched[0]["pid"].as_u64().expect("a number");
    let hot = emulated.hot.next_multiple_of(2 * MIB)..emulated.hot + HOT;
    let all = hot.end - hot.start;
    let demoted = |status: &Value| status["total"]["demoted_bytes"].as_u64().unwrap_or(0);
    let status = daemon.wait("moves", |status| demoted(status) >= all / 4);
    assert_eq!(status["policy"], "balance");
    // A part of what is hot is slow, with room in fast memory, and not all of it.
    daemon.wait("a balance", |status| {
        let fast = fast_in(directory, pid, &hot);
        fast > 0
            && fast <= all * 3 / 4
            && status["fast_bytes"].as_u64() < status["capacity_bytes"].as_u64()
    });
    daemon.stop();
}

#[test]
fn a_balance_without_limits_of_the_bandwidth_is_refused() {
    let directory = directory();
    let directory = directory.path();
    std::fs::write(
        directory.join("daemon.toml"),
        config_of(directory, ("balance", "emulated"), "100%"),
    )
    .expect("written");
    let daemon = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        command.args(["daemon", "--once", "--config"]);
        let output = command
            .arg(directory.join("daemon.toml"))
            .args(flags)
            .output();
        let output = output.expect("runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = daemon(&[]);
    assert!(said.contains("memory.tiers = \"lab.toml\""), "{said}");
    let said = daemon(&["--dry-run"]);
    assert!(said.contains("leave out --dry-run"), "{said}");
}
