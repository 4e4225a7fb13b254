//! Tests runs with `--remap` on an emulated machine: hot data spreads over the devices as its bandwidth rises, and stays whole.

mod support;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use isotherm_abi::page_tiers::PAGE_SLOW;
use isotherm_session::{SessionFile, session_of};
use rustix::process::{Pid, Signal, kill_process};
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

/// The command line of a run, with its summary in a file.
fn run_words() -> String {
    format!(
        "run --remap bandwidth.toml --tiers {TIERS} --fast 1GiB --source timer --cache 0B --summary run.json -- ./app"
    )
}

/// The summary of a run with these words and what it said on standard error; `None` where nothing can be emulated.
fn remapped(directory: &Path, words: &str) -> Option<(Value, String)> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = succeeds(directory, &words);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "whole\n");
    let text = std::fs::read_to_string(directory.join("run.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return None;
    }
    Some((summary, stderr(&output)))
}

#[test]
fn hot_data_spreads_over_two_devices_after_two_seconds_and_stays_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let Some((summary, said)) = remapped(directory.path(), &run_words()) else {
        return;
    };
    assert_eq!(summary["mode"], "remap");
    let first = &summary["remaps"][0];
    assert_eq!(
        (&first["from_devices"], &first["to_devices"]),
        (&1.into(), &2.into()),
        "{summary}"
    );
    let samples = summary["samples"].as_array().expect("samples");
    assert!(samples.len() >= 3, "{summary}");
    let demoted = summary["runtime"]["counters"]["pages_demoted"].as_u64();
    assert!(demoted.is_some_and(|pages| pages > 0), "{summary}");
    assert!(said.contains("remap"), "{said}");
}

#[test]
fn hot_data_without_room_on_one_device_takes_two_whatever_its_bandwidth() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let model = "bounds = [\"1000GB/s\"]\n";
    std::fs::write(directory.path().join("bandwidth.toml"), model).expect("written");
    let words = run_words().replace(" -- ", " --device-capacity 40MiB -- ");
    let Some((summary, said)) = remapped(directory.path(), &words) else {
        return;
    };
    let added = &summary["added"][0];
    assert_eq!(added["to_devices"], 2, "{summary}");
    let hot = added["hot_bytes"].as_u64();
    assert!(hot.is_some_and(|bytes| bytes > 40 << 20), "{summary}");
    assert_eq!(
        summary["remaps"].as_array().map(Vec::len),
        Some(0),
        "{summary}"
    );
    assert_eq!(summary["devices"], 2, "{summary}");
    assert!(said.contains("for its size"), "{said}");
}

/// A run whose program writes to the file `out`.
struct Started {
    run: Child,
    directory: PathBuf,
}

impl Started {
    fn new(directory: &Path) -> Self {
        let file = File::create(directory.join("out")).expect("created");
        let words = run_words();
        let mut command = Command::new(env!("CARGO_BIN_EXE_isotherm"));
        let command = command.args(words.split_whitespace()).stdout(file);
        Self {
            run: command.current_dir(directory).spawn().expect("started"),
            directory: directory.to_owned(),
        }
    }

    /// The program, once it runs.
    fn program(&self) -> Option<u32> {
        let run = self.run.id();
        let children = std::fs::read_to_string(format!("/proc/{run}/task/{run}/children")).ok()?;
        let mut children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        children.find(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name == "app\n")
        })
    }

    /// Waits until a page of the program is slow: the program and its session file; `None` where it ends before.
    fn moving(&mut self) -> Option<(u32, PathBuf)> {
        while self.run.try_wait().expect("a state").is_none() {
            let session = self.program().and_then(|pid| {
                let session = session_of(Path::new("/proc"), pid)?;
                Some((pid, session))
            });
            if let Some((pid, session)) = session.filter(|(_, session)| has_slow_page(session)) {
                return Some((pid, session));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }

    /// What the program printed, once it has printed or a minute has passed.
    fn printed(&self) -> String {
        let begin = Instant::now();
        loop {
            let text = std::fs::read_to_string(self.directory.join("out")).expect("read");
            if !text.is_empty() || begin.elapsed() > Duration::from_secs(60) {
                return text;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn has_slow_page(session: &Path) -> bool {
    let pages = SessionFile::open(session).and_then(|session| session.page_tiers());
    pages.is_ok_and(|pages| pages.tiers.contains(&PAGE_SLOW))
}

/// Whether a file is gone within a minute.
fn is_removed(path: &Path) -> bool {
    let begin = Instant::now();
    while path.exists() && begin.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(50));
    }
    !path.exists()
}

fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::KILL).expect("it lives");
}

#[test]
fn a_run_that_is_killed_while_data_moves_leaves_the_program_whole_and_no_session() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let mut started = Started::new(directory.path());
    let Some((_, session)) = started.moving() else {
        return isotherm_skip::skip!("nothing can be emulated here, or nothing was sampled");
    };
    kill(started.run.id());
    started.run.wait().expect("ended");
    assert_eq!(started.printed(), "whole\n", "the program runs on");
    assert!(is_removed(session.parent().expect("a directory")));
}

#[test]
fn a_program_that_is_killed_while_its_data_moves_ends_the_run_with_its_summary() {
    let directory = tempfile::tempdir().expect("a directory");
    prepare(directory.path());
    let mut started = Started::new(directory.path());
    let Some((program, session)) = started.moving() else {
        return isotherm_skip::skip!("nothing can be emulated here, or nothing was sampled");
    };
    kill(program);
    assert!(!started.run.wait().expect("ended").success());
    let text = std::fs::read_to_string(directory.path().join("run.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(summary["mode"], "remap", "{text}");
    assert!(!session.parent().expect("a directory").exists());
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
