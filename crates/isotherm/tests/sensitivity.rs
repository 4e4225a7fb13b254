//! Tests `isotherm sensitivity` by running it: objects timed alone, predictions, stored times, interrupts and limits. The library
//! `libisotherm.so` must be beside the program (`cargo build --workspace` puts it there).

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use support::{built, isotherm, running_in, stderr, succeeds};

/// Follows pointers through one array of the heap and rarely looks at another and at a static one. With an argument it fails.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { HOT = 4 << 20 };
static char archive[8 << 20];
int main(int argc, char **argv) {
    if (argc > 1) return 3;
    unsigned *hot = malloc(HOT * sizeof *hot);
    char *cold = malloc(16 << 20);
    memset(cold, 1, 16 << 20);
    memset(archive, 2, sizeof archive);
    for (unsigned i = 0; i < HOT; i++) hot[i] = (i * 2654435761u + 12345u) % HOT;
    unsigned at = 0;
    for (int i = 0; i < 5000000; i++) at = hot[at] ^ (i & 1023);
    printf("%u %d %d\n", at, cold[77], archive[77]);
    return 0;
}
"#;

/// A directory with the program and a profile of it by the timer.
fn recorded() -> TempDir {
    let directory = built(PROGRAM);
    let record = [
        "record", "--source", "timer", "--epoch", "50ms", "--", "./app",
    ];
    succeeds(&directory, &record);
    directory
}

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("is JSON")
}

#[test]
fn a_cache_is_of_runs_and_of_a_machine_emulated_by_time() {
    let directory = recorded();
    let sensitivity = ["sensitivity", "--profile", "app.iso", "--cache", "3MiB"];
    let refused = |more: &[&str], why: &str| {
        let output = isotherm(&directory, &[&sensitivity[..], more].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(why), "{said}");
    };
    refused(&["--predict"], "--cache: is of runs of the program");
    let trap = ["--tiers", "emulated:tmp", "--", "./app"];
    refused(
        &trap,
        "--cache: is the cache that a machine emulated by time",
    );
    let run = [
        "--rounds",
        "1",
        "--objects",
        "1",
        "--tiers",
        "emulated",
        "--",
        "./app",
    ];
    succeeds(&directory, &[&sensitivity[..], &run].concat());
}

#[test]
fn each_object_is_timed_alone_beside_its_prediction() {
    let directory = built(PROGRAM);
    let sensitivity = [
        "sensitivity",
        "--rounds",
        "2",
        "--objects",
        "3",
        "--tiers",
        "emulated",
        "--json",
        "--plot",
        "app.html",
        "--",
        "./app",
    ];
    let output = succeeds(&directory, &sensitivity);
    let said = stderr(&output);
    assert!(
        said.contains("timing 5 placements, 2 rounds each"),
        "{said}"
    );
    assert!(
        said.contains("next: isotherm record --source timer -o app.iso -- ./app"),
        "{said}"
    );
    let table = json(&output);
    assert_eq!(table["schema_version"], 1);
    assert_eq!(table["command"][0], "./app");
    // What is measured depends on the load of the machine; what is predicted does not.
    let slowdown = |of: &str| table[of]["slowdown"].as_f64().expect("a number");
    assert!(slowdown("measured") > 0.0, "{table:#}");
    assert!(slowdown("predicted") > 1.1, "{table:#}");
    let objects = table["objects"].as_array().expect("a list");
    assert_eq!(objects.len(), 3, "{table:#}");
    let benefit = |object: &Value, of: &str| object[of]["benefit"].as_f64().expect("a number");
    let measured: Vec<f64> = objects.iter().map(|it| benefit(it, "measured")).collect();
    assert!(measured.is_sorted_by(|a, b| a >= b), "{table:#}");
    let is_hot = |object: &&Value| benefit(object, "predicted") > 0.5;
    let hot = objects.iter().find(is_hot).expect("the hot array");
    assert_eq!(hot["kind"], "heap", "{table:#}");
    assert!(hot["size_bytes"].as_u64() >= Some(16 << 20), "{table:#}");
    for object in objects {
        let rounds = object["measured"]["runs_seconds"].as_array();
        assert_eq!(rounds.map(Vec::len), Some(2), "{table:#}");
    }
    let is_static = |object: &&Value| object["kind"] == "static";
    let archive = objects.iter().find(is_static).expect("the static array");
    assert!(
        archive["object"]
            .as_str()
            .is_some_and(|it| it.contains("archive")),
        "{table:#}"
    );
    assert_eq!(table["outputs_differ"], false);
    let page = std::fs::read_to_string(directory.path().join("app.html")).unwrap();
    assert!(page.contains("archive"));
    // The profile was of this command only.
    let left = std::fs::read_dir(&directory).unwrap();
    assert!(left.flatten().all(|file| file.file_name() != "app.iso"));
}

#[test]
fn a_profile_predicts_without_a_run() {
    let directory = recorded();
    std::fs::remove_file(directory.path().join("app")).unwrap();
    let sensitivity = [
        "sensitivity",
        "--predict",
        "--profile",
        "app.iso",
        "--tiers",
        "emulated:nvm",
    ];
    let output = succeeds(&directory, &sensitivity);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("./app\n"), "{text}");
    assert!(text.contains("predicted from one recorded run"), "{text}");
    assert!(text.contains("predicted co-benefit"), "{text}");
    assert!(!text.contains("min .. max"), "{text}");
    let said = stderr(&output);
    assert!(
        said.contains("next: isotherm colocate app.iso --fast 25%"),
        "{said}"
    );
    let table = json(&succeeds(
        &directory,
        &[&sensitivity[..], &["--json"]].concat(),
    ));
    assert_eq!(table["measured"], Value::Null);
    assert_eq!(table["objects"][0]["measured"], Value::Null);
    assert!(table["objects"][0]["predicted"]["benefit"].as_f64() > Some(0.5));
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_reason() {
    let directory = recorded();
    let refused = |arguments: &[&str]| {
        let output = isotherm(&directory, &[&["sensitivity"], arguments].concat());
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        stderr(&output)
    };
    let failing = refused(&["--", "./app", "fail"]);
    assert!(
        failing.contains("the recorded run ended with exit status: 3"),
        "{failing}"
    );
    let failing = refused(&["--profile", "app.iso", "--", "./app", "fail"]);
    assert!(
        failing.contains("the all slow run ended with exit status: 3"),
        "{failing}"
    );
    let nothing = refused(&["--profile", "app.iso"]);
    assert!(nothing.contains("PROGRAM"), "{nothing}");
    let rounds = refused(&["--predict", "--rounds", "3", "--profile", "app.iso"]);
    assert!(rounds.contains("cannot be used with"), "{rounds}");
    let trap = refused(&[
        "--predict",
        "--profile",
        "app.iso",
        "--tiers",
        "emulated:tmp",
    ]);
    assert!(trap.contains("do not say how much slower"), "{trap}");
    let missing = refused(&["--", "./missing"]);
    assert!(missing.contains("missing"), "{missing}");
    let separator = refused(&["./app"]);
    assert!(
        separator.contains("isotherm sensitivity -- ./app"),
        "{separator}"
    );
}

#[test]
fn a_profile_of_another_program_is_refused() {
    let directory = recorded();
    let output = isotherm(
        &directory,
        &[
            "sensitivity",
            "--profile",
            "app.iso",
            "--rounds",
            "1",
            "--tiers",
            "emulated",
            "--",
            "/bin/true",
        ],
    );
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("was not made by this program"), "{said}");
}

#[test]
fn a_profile_keeps_the_times_and_colocate_takes_them_on_the_same_tiers() {
    let directory = built(PROGRAM);
    let sensitivity = |more: &[&'static str]| {
        let first = ["sensitivity", "--rounds", "1", "--tiers", "emulated:cxl"];
        [&first[..], more, &["--", "./app"]].concat()
    };
    let output = succeeds(
        &directory,
        &sensitivity(&["--objects", "2", "-o", "app.iso"]),
    );
    let said = stderr(&output);
    let added = "added the times of 1 round on emulated:B:2,L:2.3 to app.iso";
    assert!(said.contains(added), "{said}");
    let next = "next: isotherm colocate app.iso --tiers emulated:cxl --fast 25%";
    assert!(said.contains(next), "{said}");

    let colocate = |tiers: &'static str, profile: &'static str| {
        ["colocate", profile, "--fast", "16MiB", "--tiers", tiers]
    };
    let with_json = |arguments: &[&str]| {
        let output = succeeds(&directory, &[arguments, &["--json"]].concat());
        (json(&output)["programs"][0].clone(), stderr(&output))
    };
    let (program, _) = with_json(&colocate("emulated:B:2,L:2.3", "app.iso"));
    assert_eq!(program["times"]["source"], "measured", "{program:#}");
    assert_eq!(program["times"]["rounds"], 1);
    assert_eq!(program["times"]["measured_sites"], 2, "{program:#}");
    let text = succeeds(&directory, &colocate("emulated", "app.iso"));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("measured (2 of "), "{text}");
    let (program, said) = with_json(&colocate("emulated:nvm", "app.iso"));
    assert_eq!(program["times"]["source"], "predicted", "{program:#}");
    assert!(
        said.contains("was measured on emulated:B:2,L:2.3"),
        "{said}"
    );

    let refused = isotherm(&directory, &sensitivity(&["-o", "app.iso"]));
    assert!(stderr(&refused).contains("--force"), "{}", stderr(&refused));
    // The profile itself takes more times in, a copy of it has its own.
    let of_profile = ["--objects", "3", "--profile", "app.iso", "-o"];
    for output in ["copy.iso", "app.iso"] {
        succeeds(
            &directory,
            &sensitivity(&[&of_profile[..], &[output]].concat()),
        );
        let (program, _) = with_json(&colocate("emulated", output));
        assert_eq!(program["times"]["measured_sites"], 3, "{program:#}");
    }
    let merged = succeeds(
        &directory,
        &["merge", "-o", "all.iso", "app.iso", "copy.iso"],
    );
    assert!(
        stderr(&merged).contains("are left out"),
        "{}",
        stderr(&merged)
    );
    let (program, _) = with_json(&colocate("emulated", "all.iso"));
    assert_eq!(program["times"]["source"], "predicted", "{program:#}");
}

/// Interrupts a measurement of 1,000 rounds once the program has started this often; the first start is that of the recording.
fn interrupted_after(directory: &TempDir, starts: usize) -> Output {
    // A shell that starts the tests in the background has them ignore the interrupt.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_isotherm")]);
    command.current_dir(directory).args([
        "sensitivity",
        "--rounds",
        "1000",
        "--objects",
        "1",
        "--tiers",
        "emulated:cxl",
        "--json",
        "-o",
        "app.iso",
        "--",
        "sh",
        "-c",
        "echo start >> starts; ./app; exit $?",
    ]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sensitivity = command.spawn().expect("isotherm starts");
    let started = || {
        let lines = std::fs::read_to_string(directory.path().join("starts"));
        lines.map_or(0, |lines| lines.lines().count())
    };
    while started() < starts {
        let ended = sensitivity.try_wait().expect("its status");
        assert_eq!(
            ended, None,
            "it ended before the program had started so often"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = Pid::from_raw(sensitivity.id() as i32).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    let output = sensitivity.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{said}");
    assert!(said.contains("interrupted after "), "{said}");
    output
}

/// The origin of the times by which `isotherm colocate` shares among the program of this profile.
fn source_of_times(directory: &TempDir) -> Value {
    let colocate = [
        "colocate",
        "app.iso",
        "--fast",
        "16MiB",
        "--tiers",
        "emulated:cxl",
        "--json",
    ];
    json(&succeeds(directory, &colocate))["programs"][0]["times"].clone()
}

#[test]
fn an_interrupt_prints_and_keeps_the_complete_rounds() {
    let directory = built(PROGRAM);
    // The recording, three placements of the first round, and one of the second.
    let output = interrupted_after(&directory, 5);
    let table = json(&output);
    let rounds = table["objects"][0]["measured"]["runs_seconds"].as_array();
    assert!(rounds.is_some_and(|rounds| !rounds.is_empty()), "{table:#}");
    let times = source_of_times(&directory);
    assert_eq!(times["source"], "measured", "{times}");
    assert_eq!(
        times["rounds"].as_u64(),
        rounds.map(|rounds| rounds.len() as u64)
    );
}

#[test]
fn an_interrupt_in_the_first_round_prints_the_predictions_and_leaves_the_profile() {
    let directory = built(PROGRAM);
    let output = interrupted_after(&directory, 2);
    let table = json(&output);
    assert_eq!(table["measured"], Value::Null, "{table:#}");
    assert_ne!(table["objects"][0]["predicted"], Value::Null, "{table:#}");
    let times = source_of_times(&directory);
    assert_eq!(times["source"], "predicted", "{times}");
}

/// A directory with a program that does a quarter of the work: all slow it takes some two seconds.
fn built_short() -> TempDir {
    built(&PROGRAM.replace("5000000", "3000000"))
}

/// Measures one object of this shell script, with a limit that the program alone never reaches, for a round.
fn limited(directory: &TempDir, script: &str) -> Output {
    let sensitivity = [
        "sensitivity",
        "--rounds",
        "1",
        "--objects",
        "1",
        "--tiers",
        "emulated:cxl",
        "--time-limit",
        "10s",
        "--json",
        "--",
        "sh",
        "-c",
        script,
    ];
    isotherm(directory, &sensitivity)
}

#[test]
fn an_object_with_which_the_program_hangs_has_no_time() {
    let directory = built_short();
    // The recording and all slow end, the third start does not.
    let script = "echo start >> starts; [ $(wc -l < starts) = 3 ] && sleep 1000; ./app; exit $?";
    let output = limited(&directory, script);
    let said = stderr(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("alone fast: the program did not end within 10.00 s and was ended"),
        "{said}"
    );
    let table = json(&output);
    let object = &table["objects"][0];
    assert_eq!(object["exceeded_limit"], true, "{table:#}");
    assert_eq!(object["measured"], Value::Null, "{table:#}");
    assert!(
        table["measured"]["slowdown"].as_f64().is_some(),
        "{table:#}"
    );
    let left = running_in(directory.path());
    assert!(left.is_empty(), "processes run on: {left:?}");
}

#[test]
fn a_program_that_never_ends_is_predicted_from_its_time_within_the_limit() {
    let directory = built_short();
    // Neither the shell nor what it waits for ends by SIGTERM.
    let output = limited(&directory, "trap '' TERM; ./app; sleep 1000; exit 0");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("the recorded run did not end within 10.00 s"),
        "{said}"
    );
    assert!(
        said.contains("round 1, all slow: the program did not end within 10.00 s and was ended; give it less to do"),
        "{said}"
    );
    let table = json(&output);
    assert_eq!(table["measured"], Value::Null, "{table:#}");
    assert_ne!(table["objects"][0]["predicted"], Value::Null, "{table:#}");
    let left = running_in(directory.path());
    assert!(left.is_empty(), "processes run on: {left:?}");
}
