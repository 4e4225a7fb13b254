//! Tests `isotherm colocate` by running it: plans, timed runs together, warnings, programs that fail or hang, interrupts. The library
//! `libisotherm.so` must be beside the program (`cargo build --workspace` puts it there).

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use support::{isotherm, running_in, stderr, succeeds};

/// Follows pointers through an array of 16 MiB as often as its argument says, in units of 100,000; fails where there is a file `fail`, and
/// hangs or is killed where there is one of these names. It ignores interrupts while it hangs.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
enum { HOT = 4 << 20 };
int main(int argc, char **argv) {
    if (access("fail", F_OK) == 0) return 3;
    if (access("end-by-kill", F_OK) == 0) raise(SIGKILL);
    if (access("hang", F_OK) == 0) signal(SIGINT, SIG_IGN);
    while (access("hang", F_OK) == 0) pause();
    /* A buffer would be a site of 4 KiB, and one sample makes it the hottest. */
    setvbuf(stdout, 0, _IONBF, 0);
    unsigned *hot = malloc(HOT * sizeof *hot);
    for (unsigned i = 0; i < HOT; i++) hot[i] = (i * 2654435761u + 12345u) % HOT;
    unsigned at = 0;
    for (long i = 0; i < 100000L * atoi(argv[argc - 1]); i++) at = hot[at] ^ (i & 1023);
    printf("%u\n", at);
    return 0;
}
"#;

/// Follows pointers through the first 16 MiB of an array of 64 MiB.
const UNEVEN: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { HOT = 4 << 20 };
int main(void) {
    unsigned *all = calloc(4 * HOT, sizeof *all);
    for (unsigned i = 0; i < 4 * HOT; i++) all[i] = (i * 2654435761u + 12345u) % HOT;
    unsigned at = 0;
    for (long i = 0; i < 12000000L; i++) at = all[at] ^ (i & 1023);
    printf("%u\n", at);
    return 0;
}
"#;

/// Where there is a file `meet`, each run adds a byte to it. The first four runs (two programs alone, all fast and by their plans) end at
/// once. Of the next two, which run together, the second fails, and the first waits for it, then too long.
const MEETING: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int exists(const char *name) { return access(name, F_OK) == 0; }
static void touch(const char *name) { close(open(name, O_CREAT | O_WRONLY, 0600)); }
enum { CELLS = 4 << 20 };
int main(void) {
    unsigned *all = malloc(CELLS * sizeof *all);
    for (unsigned i = 0; i < CELLS; i++) all[i] = (i * 2654435761u + 12345u) % CELLS;
    unsigned at = 0;
    for (long i = 0; i < 2000000L; i++) at = all[at] ^ (i & 1023);
    printf("%u\n", at);
    int runs = open("meet", O_WRONLY | O_APPEND);
    if (runs < 0 || write(runs, "r", 1) != 1 || lseek(runs, 0, SEEK_CUR) <= 4) return 0;
    if (open("running", O_CREAT | O_EXCL | O_WRONLY, 0600) < 0) { touch("met"); return 3; }
    for (int i = 0; i < 6000 && !exists("met"); i++) usleep(10000);
    if (exists("met")) { touch("waiting"); sleep(100); touch("outlived"); }
    return 0;
}
"#;

/// A directory with this program.
fn compiled(source: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.c"), source).unwrap();
    let built = Command::new("cc")
        .current_dir(&directory)
        .args(["-O1", "-g", "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

/// A directory with the profiles of a short and of a long run.
fn recorded() -> TempDir {
    let directory = compiled(PROGRAM);
    for (profile, amount) in [("short.iso", "10"), ("long.iso", "100")] {
        let record = [
            "record", "--source", "timer", "--epoch", "50ms", "-o", profile, "--", "./app", amount,
        ];
        succeeds(&directory, &record);
    }
    directory
}

const COLOCATE: [&str; 8] = [
    "colocate",
    "short.iso",
    "long.iso",
    "--tiers",
    "emulated:nvm",
    "--fast",
    "16MiB",
    "--run",
];

#[test]
fn the_recorded_programs_run_alone_and_together_until_the_longest_has_ended_once() {
    let directory = recorded();
    let output = succeeds(&directory, &[&COLOCATE[..], &["--json"]].concat());
    let printed: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
    assert_eq!(printed["runs"]["rounds"], 1);
    let programs = printed["runs"]["programs"].as_array().expect("programs");
    let of = |name: &str| {
        let found = programs.iter().find(|it| it["program"] == name);
        found.unwrap_or_else(|| panic!("{name} is in {printed}"))
    };
    let (short, long) = (of("short"), of("long"));
    assert!(short["restarts"].as_u64() > Some(0), "{printed}");
    assert_eq!(long["restarts"], 0, "{printed}");
    for program in programs {
        for run in ["all_fast", "alone", "together"] {
            let seconds = |kind: &str| program[format!("{run}_{kind}")].as_f64();
            let (time, processor) = (seconds("seconds"), seconds("processor_seconds"));
            assert!(processor > Some(0.0), "{run} of {program}");
            // One thread, and the threads of the runtime.
            let most = time.map(|time| 1.2 * time + 0.1);
            assert!(processor < most, "{run} of {program}");
        }
    }
    let explained = |plan| {
        let output = succeeds(&directory, &["explain", plan, "main"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let reasons = [explained("long.plan"), explained("short.plan")].concat();
    let named = |has: &str, comes: &str| {
        let mut clauses = reasons.split("; ");
        clauses
            .any(|clause| clause.contains(has) && clause.contains("hot") && clause.contains(comes))
    };
    assert!(named(" lacks ", ", which comes after it"), "{reasons}");
    assert!(named(" has ", ", which comes before it"), "{reasons}");
    let text = succeeds(&directory, &COLOCATE);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("measured, 1 round: "), "{text}");
    assert!(text.contains("collocation"), "{text}");
}

#[test]
fn too_few_processors_and_too_little_fast_memory_are_warned_of() {
    let directory = recorded();
    let processors = isotherm_sys::affinity::allowed()
        .expect("the kernel tells")
        .len();
    let programs = vec!["short.iso"; processors + 1];
    let share = |fast: &'static str, policy: &'static str, programs: &[&'static str]| {
        let tiers = [
            "--tiers",
            "emulated:nvm",
            "--fast",
            fast,
            "--policy",
            policy,
        ];
        let output = succeeds(&directory, &[&["colocate"], programs, &tiers].concat());
        stderr(&output)
    };
    let said = share("1MiB", "comerge", &programs);
    let crowded = format!("{} programs on {processors} processor", processors + 1);
    assert!(said.contains(&crowded), "{said}");
    assert!(said.contains("holds no whole site"), "{said}");
    assert!(said.contains("--share chunks"), "{said}");
    let said = share("16MiB", "least-slowdown", &programs[..1]);
    assert!(!said.contains("programs on"), "{said}");
    assert!(!said.contains("holds no"), "{said}");
}

#[test]
fn the_programs_of_a_run_share_a_limit_without_a_name() {
    let directory = compiled(PROGRAM);
    // Each run leaves a line: its amount, the file of its machine, and the names that this file has.
    let script = format!(
        "stat -c \"$0 %i %h\" \"${{{}}}/{}\" >> machines; ./app $0; ended=$?; sleep 1; exit $ended",
        isotherm_abi::env::SESSION,
        isotherm_abi::machine::FILE_NAME
    );
    for (profile, amount) in [("short.iso", "20"), ("long.iso", "21")] {
        let record = [
            "record", "--source", "timer", "-o", profile, "--", "sh", "-c", &script, amount,
        ];
        succeeds(&directory, &record);
    }
    let limited = COLOCATE.map(|word| match word {
        "emulated:nvm" => "emulated:nvm,limit:5GiB/s",
        other => other,
    });
    succeeds(&directory, &limited);
    let lines = std::fs::read_to_string(directory.path().join("machines")).expect("is written");
    let shared = |amount: &str| -> Vec<String> {
        let words = lines
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let with_names = words.filter(|words| words[0] == amount && words[2] != "1");
        with_names.map(|words| words[1].to_owned()).collect()
    };
    let [short, long] = ["20", "21"].map(shared);
    assert!(!short.is_empty() && !long.is_empty(), "{lines}");
    assert!(
        short.iter().chain(&long).all(|file| *file == short[0]),
        "{lines}"
    );
    let alone = lines.lines().filter(|line| line.ends_with(" 1")).count();
    assert!(alone >= 4, "alone all fast and by plan: {lines}");
}

#[test]
fn a_program_that_gets_no_fast_memory_runs_by_its_plan() {
    let directory = recorded();
    let shared = succeeds(
        &directory,
        &[&COLOCATE[..7], &["--share", "sites", "--json"]].concat(),
    );
    let shared: Value = serde_json::from_slice(&shared.stdout).expect("is JSON");
    let mut programs = shared["programs"].as_array().expect("programs").iter();
    let without = programs.find(|program| program["fast_bytes"] == 0);
    let plan = without.unwrap_or_else(|| panic!("one array fits: {shared}"))["plan"].as_str();
    let run = [
        "run",
        "--plan",
        plan.expect("a file"),
        "--summary",
        "run.json",
        "--",
        "./app",
        "20",
    ];
    succeeds(&directory, &run);
    let summary = std::fs::read(directory.path().join("run.json")).expect("a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("is JSON");
    let fast = &summary["runtime"]["counters"]["fast_bytes"];
    assert!(fast.as_u64().unwrap_or(0) < 1 << 20, "{summary}");
}

#[test]
fn a_program_that_fails_is_named_and_the_plans_stay() {
    let directory = recorded();
    std::fs::write(directory.path().join("fail"), "").unwrap();
    let output = isotherm(&directory, &COLOCATE);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("program \"long\" ended with exit status: 3"),
        "{said}"
    );
    assert!(directory.path().join("long.plan").is_file());
}

#[test]
fn a_program_that_is_killed_is_named() {
    let directory = recorded();
    std::fs::write(directory.path().join("end-by-kill"), "").unwrap();
    let output = isotherm(&directory, &COLOCATE);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("program \"long\" ended with signal: 9"),
        "{said}"
    );
}

#[test]
fn a_program_that_hangs_ends_with_its_time_limit() {
    let directory = recorded();
    std::fs::write(directory.path().join("hang"), "").unwrap();
    let mut words = COLOCATE.to_vec();
    words.extend(["--time-limit", "300ms"]);
    let output = isotherm(&directory, &words);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("program \"long\" did not end within 300.0 ms"),
        "{said}"
    );
    let left = running_in(directory.path());
    assert!(left.is_empty(), "processes run on: {left:?}");
    words.retain(|word| *word != "--run");
    assert_eq!(isotherm(&directory, &words).status.code(), Some(2));
}

#[test]
fn a_program_that_fails_ends_the_others_with_their_descendants() {
    let directory = compiled(MEETING);
    for profile in ["short.iso", "long.iso"] {
        let record = [
            "record",
            "--source",
            "timer",
            "-o",
            profile,
            "--",
            "sh",
            "-c",
            "./app; exit $?",
        ];
        succeeds(&directory, &record);
    }
    let file = |name: &str| directory.path().join(name);
    std::fs::write(file("meet"), "").unwrap();
    let output = isotherm(&directory, &COLOCATE);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("ended with exit status: 3"), "{said}");
    assert!(file("met").exists(), "both ran at the same time: {said}");
    assert!(!file("outlived").exists(), "{said}");
    let left = running_in(directory.path());
    assert!(left.is_empty(), "processes run on: {left:?}");
}

#[test]
fn an_interrupt_ends_the_programs_and_prints_the_plans() {
    let directory = recorded();
    // A shell that starts the tests in the background has them ignore the interrupt.
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_isotherm")]);
    command.current_dir(&directory).args(COLOCATE);
    command
        .args(["--rounds", "1000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut colocate = command.spawn().expect("isotherm starts");
    // The last of the plans is written before the first run.
    while !directory.path().join("short.plan").exists() || running_in(directory.path()).len() < 2 {
        let ended = colocate.try_wait().expect("its status");
        assert_eq!(ended, None, "it ended before any program ran");
        std::thread::sleep(Duration::from_millis(10));
    }
    let pid = Pid::from_raw(colocate.id() as i32).expect("a process");
    kill_process(pid, Signal::INT).expect("it runs");
    let output = colocate.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{said}");
    assert!(said.contains("interrupted after "), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("long.plan"), "{printed}");
    let left = running_in(directory.path());
    assert!(left.is_empty(), "processes run on: {left:?}");
}

#[test]
fn a_recorded_command_that_is_gone_is_refused_before_anything_runs() {
    let directory = recorded();
    std::fs::remove_file(directory.path().join("app")).unwrap();
    let output = isotherm(&directory, &COLOCATE);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("the recorded command cannot be run from this directory"),
        "{said}"
    );
}

#[test]
fn a_profile_from_emulated_memory_is_warned_of() {
    let directory = recorded();
    let run = [
        "run",
        "--tiers",
        "emulated:nvm",
        "--fast",
        "8MiB",
        "--source",
        "timer",
        "-o",
        "slowed.iso",
        "--",
        "./app",
        "60",
    ];
    succeeds(&directory, &run);
    let share = [
        "colocate",
        "slowed.iso",
        "long.iso",
        "--tiers",
        "emulated:nvm",
        "--fast",
        "16MiB",
    ];
    let output = succeeds(&directory, &share);
    let said = stderr(&output);
    assert!(
        said.contains("slowed.iso: was recorded on emulated tiers"),
        "{said}"
    );
    assert!(
        !said.contains("long.iso: was recorded on emulated tiers"),
        "{said}"
    );
    let predict = [
        "sensitivity",
        "--predict",
        "--profile",
        "slowed.iso",
        "--tiers",
        "emulated:nvm",
    ];
    let said = stderr(&succeeds(&directory, &predict));
    assert!(
        said.contains("slowed.iso: was recorded on emulated tiers"),
        "{said}"
    );
}

#[test]
fn an_uneven_site_is_shared_in_parts() {
    let directory = compiled(UNEVEN);
    let record = [
        "record", "--source", "timer", "-o", "app.iso", "--", "./app",
    ];
    succeeds(&directory, &record);
    let share = |objects: &str| {
        let words = [
            "colocate",
            "app.iso",
            "--tiers",
            "emulated:nvm",
            "--fast",
            "16MiB",
            "--policy",
            "comerge",
            "--share",
            objects,
            "--json",
        ];
        let output = succeeds(&directory, &words);
        let printed: Value = serde_json::from_slice(&output.stdout).expect("is JSON");
        let plan = std::fs::read_to_string(directory.path().join("app.plan")).expect("a plan");
        let is_fast = |line: &&str| line.starts_with("part ") && line.contains(" fast from ");
        (printed, plan.lines().filter(is_fast).count())
    };
    let (whole, no_parts) = share("sites");
    assert_eq!(
        (no_parts, &whole["shares"]),
        (0, &Value::from("sites")),
        "{whole}"
    );
    let fast = whole["programs"][0]["fast_bytes"].as_u64();
    assert!(fast < Some(1 << 20), "the array does not fit: {whole}");
    let (chunks, parts) = share("chunks");
    assert_eq!(chunks["shares"], "chunks", "{chunks}");
    assert!(parts > 0, "{chunks}");
    let slowdown = |printed: &Value| printed["programs"][0]["slowdown"].as_f64();
    assert!(slowdown(&chunks) < slowdown(&whole), "{chunks} and {whole}");
    let both = chunks["policies"].as_array().expect("policies").iter();
    let of_comerge: Vec<_> = both
        .filter(|row| row["policy"] == "comerge")
        .map(|row| &row["shares"])
        .collect();
    assert_eq!(of_comerge, ["sites", "chunks"]);
}
