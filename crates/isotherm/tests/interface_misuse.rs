//! Tests programs that use `include/isotherm.h` while their data changes, or ask for what cannot be: the answers are those of the header,
//! and the data stays whole. Arguments out of range are tested in `crates/runtime/tests/interface.rs`.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::mpsc::channel;
use std::time::Duration;

use isotherm_abi::interface::InterfaceStatus;
use tempfile::TempDir;

use support::{isotherm, stderr};

const SOURCE: &str = include_str!("programs/interface_misuse.c");

fn program() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), SOURCE).expect("writes");
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", "-Wall", "-Werror", "-pthread", include])
        .args(["-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

fn alone(directory: impl AsRef<Path>, how: &str) -> Output {
    let program = directory.as_ref().join("app");
    Command::new(program).arg(how).output().expect("starts")
}

fn under_isotherm(directory: impl AsRef<Path>, tiers: &str, how: &str) -> Output {
    let run = [
        "run", "--tiers", tiers, "--fast", "8MiB", "--source", "timer",
    ];
    let cache = [
        "--cache", "0B", "--epoch", "100ms", "--", "./app", how, "observed",
    ];
    isotherm(directory, &[&run[..], &cache].concat())
}

/// The statuses that a program printed, each with its number: `status 0 12`.
fn statuses(output: &Output) -> Vec<(u64, u64)> {
    let printed = String::from_utf8_lossy(&output.stdout);
    let of_line = |line: &str| {
        let mut words = line.strip_prefix("status ")?.split(' ');
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    printed.lines().filter_map(of_line).collect()
}

/// The program finds its data whole, alone and on both kinds of emulated machine; there each status is one of these. With
/// `emulated:cxl` the first of them is among the answers: without it nothing would be tested.
fn stays_whole(how: &str, wanted: &[InterfaceStatus]) {
    let directory = program();
    let plain = alone(&directory, how);
    let whole = |output: &Output| {
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_whole = output.status.success() && printed.ends_with("whole\n");
        assert!(
            is_whole,
            "{how}: {}\n{printed}{}",
            output.status,
            stderr(output)
        );
    };
    whole(&plain);
    let absent = InterfaceStatus::Absent as u64;
    let all = statuses(&plain);
    assert!(all.len() == 1 && all[0].0 == absent, "{how}: {all:?}");
    for tiers in ["emulated:cxl", "emulated:tmp"] {
        let output = under_isotherm(&directory, tiers, how);
        if stderr(&output).contains("emulat") && statuses(&output) == all {
            isotherm_skip::skip!("{tiers}: {}", stderr(&output));
            continue;
        }
        whole(&output);
        let found = statuses(&output);
        let is_wanted = |status: u64| wanted.iter().any(|one| *one as u64 == status);
        assert!(
            !found.is_empty() && found.iter().all(|(status, _)| is_wanted(*status)),
            "{how} with {tiers}: {found:?}, {}",
            stderr(&output)
        );
        let first = wanted[0] as u64;
        assert!(
            tiers != "emulated:cxl" || found.iter().any(|(status, _)| *status == first),
            "{how} with {tiers}: {found:?}, {}",
            stderr(&output)
        );
    }
}

#[test]
fn objects_that_other_threads_free_and_resize_while_they_move_stay_whole() {
    stays_whole("churn", &[InterfaceStatus::Ok, InterfaceStatus::NoSamples]);
}

#[test]
fn objects_smaller_than_a_chunk_are_moved_together_and_stay_whole() {
    stays_whole("small", &[InterfaceStatus::Ok, InterfaceStatus::NoSamples]);
}

#[test]
fn every_limit_of_fast_memory_is_kept() {
    stays_whole("limits", &[InterfaceStatus::Ok, InterfaceStatus::NoSamples]);
}

#[test]
fn threads_that_optimize_at_one_time_are_answered_one_at_a_time() {
    stays_whole(
        "together",
        &[
            InterfaceStatus::Ok,
            InterfaceStatus::NoSamples,
            InterfaceStatus::Busy,
        ],
    );
}

#[test]
fn a_forked_child_is_not_observed_and_its_parent_still_is() {
    stays_whole("child", &[InterfaceStatus::Ok, InterfaceStatus::NoSamples]);
}

/// The seed of random calls: `ISOTHERM_SEED`, or the time.
fn seed() -> u32 {
    let seed = std::env::var("ISOTHERM_SEED").ok();
    let seed = seed.and_then(|text| text.parse().ok()).unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.expect("after 1970").subsec_nanos()
    });
    println!("ISOTHERM_SEED={seed}");
    seed
}

/// Data that is registered twice, stacks, memory that was unmapped while it was registered, profiles within profiles, optimizations at one
/// time and in children, objects that a child frees twice: while an observer serves the program, every answer is one that its call can
/// have.
#[test]
fn random_misuse_under_an_observer_loses_no_data() {
    let how = format!("random={}", seed());
    stays_whole(
        &how,
        &[
            InterfaceStatus::Ok,
            InterfaceStatus::NoSamples,
            InterfaceStatus::Busy,
            InterfaceStatus::Invalid,
        ],
    );
}

#[test]
fn random_misuse_of_a_recorded_program_loses_no_data() {
    let directory = program();
    let how = format!("random={}", seed());
    let record = [
        "record", "--source", "timer", "-o", "app.iso", "--", "./app",
    ];
    let output = isotherm(&directory, &[&record[..], &[&how]].concat());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_whole = output.status.success() && printed.ends_with("whole\n");
    assert!(is_whole, "{printed}{}", stderr(&output));
    // No process answers the requests of a recorded program.
    let found: Vec<u64> = statuses(&output)
        .iter()
        .map(|(status, _)| *status)
        .collect();
    let wanted = [InterfaceStatus::NoObserver, InterfaceStatus::Invalid];
    assert_eq!(found, wanted.map(|status| status as u64), "{printed}");
}

/// A second `free` is undefined, with and without Isotherm: the program may go on or die by a signal, but it ends.
#[test]
fn a_program_that_frees_an_object_twice_ends() {
    let (end, ends) = channel();
    std::thread::spawn(move || {
        let directory = program();
        let outputs = [
            alone(&directory, "twice"),
            under_isotherm(&directory, "emulated:cxl", "twice"),
        ];
        end.send(outputs)
    });
    let outputs = ends.recv_timeout(Duration::from_secs(120));
    for output in outputs.expect("both programs end in time") {
        let ended = output.status;
        // As a signal of its own, or as the status that the tool passes on for one.
        let by_signal = ended.signal().is_some() || ended.code().is_some_and(|code| code > 128);
        assert!(ended.success() || by_signal, "{ended}: {}", stderr(&output));
    }
}
