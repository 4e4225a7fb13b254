//! Tests the command line by running it: record, plan and run of a program; interrupts and crashes; bad input. The library `libisotherm.so`
//! must lie beside the program (`cargo build --workspace` puts it there).

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

fn isotherm() -> Command {
    Command::new(env!("CARGO_BIN_EXE_isotherm"))
}

fn run(arguments: &[&str]) -> Output {
    isotherm()
        .args(arguments)
        .output()
        .expect("isotherm starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A program with one hot and one cold array, each from a function of its own, that runs for about
/// the given number of seconds of processor time and prints one line that never changes.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { COLD = 32 << 20, HOT = 4 << 20 };
__attribute__((noinline)) char *make_cold(void) { char *p = malloc(COLD); memset(p, 1, COLD); return p; }
__attribute__((noinline)) char *make_hot(void) { char *p = malloc(HOT); memset(p, 2, HOT); return p; }
int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    char *cold = make_cold(), *hot = make_hot();
    unsigned x = 1, sum = 0;
    while ((double)clock() / CLOCKS_PER_SEC < seconds)
        for (int i = 0; i < 100000; i++) { x = x * 1664525u + 1013904223u; sum += hot[x % HOT]++; }
    printf("cold %d hot %zu\n", cold[7], (size_t)HOT);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"#;

fn compile(directory: &Path) -> PathBuf {
    let source = directory.join("program.c");
    let binary = directory.join("program");
    std::fs::write(&source, PROGRAM).unwrap();
    let status = Command::new("cc")
        .args(["-O1", "-g", "-o"])
        .arg(&binary)
        .arg(&source)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "the test program does not compile");
    binary
}

fn path(directory: &TempDir, name: &str) -> String {
    directory.path().join(name).to_string_lossy().into_owned()
}

/// Records the program and returns the profile's path.
fn recorded(directory: &TempDir, seconds: &str) -> String {
    let binary = compile(directory.path());
    let profile = path(directory, "app.iso");
    let binary = binary.to_string_lossy().into_owned();
    let output = run(&[
        "record", "--epoch", "100ms", "-o", &profile, "--", &binary, seconds, "5",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(
        said.matches("ended with exit status: 5").count(),
        1,
        "{said}"
    );
    assert_eq!(stdout(&output), "cold 1 hot 4194304\n");
    profile
}

#[test]
fn the_hot_array_is_found_planned_into_the_fast_tier_and_the_guided_run_is_the_same_program() {
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&directory, "1.5");
    let plan = path(&directory, "app.plan");
    let output = run(&[
        "plan", &profile, "--tiers", "emulated", "--fast", "6MiB", "-o", &plan,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));

    let text = std::fs::read_to_string(&plan).unwrap();
    assert!(text.starts_with("isotherm-plan 1"), "{text}");
    let explained = run(&["explain", &plan, "make_hot"]);
    assert!(explained.status.success(), "{}", stderr(&explained));
    assert!(
        stdout(&explained).contains("fast"),
        "{}",
        stdout(&explained)
    );

    let json = run(&["report", "--json", &profile, "--plan", &plan]);
    assert!(json.status.success(), "{}", stderr(&json));
    assert!(stdout(&json).contains("make_hot"), "{}", stdout(&json));

    let text = path(&directory, "app.txt");
    let report = run(&["report", "--text", &profile, "-o", &text]);
    assert_eq!(stdout(&report), "", "{}", stderr(&report));
    let text = std::fs::read_to_string(text).unwrap();
    assert!(text.contains("make_hot"), "{text}");

    let report = run(&["report", &profile, "-o", "-"]);
    assert!(
        stdout(&report).starts_with("<!DOCTYPE html>"),
        "{}",
        stderr(&report)
    );
    let page = path(&directory, "app.html");
    let report = run(&["report", &profile, "--plan", &plan, "-o", &page]);
    assert!(report.status.success(), "{}", stderr(&report));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("make_hot") && page.contains("emulated"),
        "the page lacks its content"
    );

    let binary = path(&directory, "program");
    let plain = Command::new(&binary).args(["0.2", "5"]).output().unwrap();
    let guided = run(&["-q", "run", "--plan", &plan, "--", &binary, "0.2", "5"]);
    assert_eq!(
        guided.status.code(),
        plain.status.code(),
        "{}",
        stderr(&guided)
    );
    assert_eq!(guided.stdout, plain.stdout);
}

#[test]
fn a_plan_of_another_program_is_called_foreign_and_the_program_still_runs() {
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&directory, "0.6");
    let plan = path(&directory, "app.plan");
    let output = run(&[
        "plan", &profile, "--tiers", "emulated", "--fast", "6MiB", "-o", &plan,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let other = run(&["run", "--plan", &plan, "--", "sh", "-c", "echo hi; exit 3"]);
    assert_eq!(other.status.code(), Some(3), "{}", stderr(&other));
    assert_eq!(stdout(&other), "hi\n");
    let said = stderr(&other);
    assert!(said.contains("another program"), "{said}");
    let about_the_plan = said.lines().filter(|line| line.contains("plan"));
    assert_eq!(about_the_plan.count(), 1, "{said}");
}

/// Records by this command, interrupts the processes that `whom` chooses of the recorder and its children, and checks that the program has
/// ended by it and the profile is whole.
fn record_until_an_interrupt(through: &str, whom: impl Fn(u32) -> Vec<u32>) {
    let directory = tempfile::tempdir().unwrap();
    let binary = compile(directory.path());
    let profile = path(&directory, "app.iso");
    // A shell that starts the tests in the background has them ignore the interrupt.
    let mut child = Command::new(through)
        .args(["env", "--default-signal=INT"])
        .arg(env!("CARGO_BIN_EXE_isotherm"))
        .args(["record", "--epoch", "100ms", "-o", &profile, "--"])
        .arg(&binary)
        // Longer than the busiest machine needs to write an epoch.
        .arg("600")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(directory.path().join("said")).unwrap())
        .spawn()
        .unwrap();
    wait_for_epochs(&mut child, &directory);
    for pid in whom(child.id()) {
        Command::new("kill")
            .args(["-INT", &pid.to_string()])
            .status()
            .unwrap();
    }
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(2), "{status}");
    let report = run(&["report", "--text", &profile]);
    assert!(report.status.success(), "{}", stderr(&report));
}

/// A terminal sends the interrupt to the whole process group; here both processes get it by number.
#[test]
fn an_interrupt_in_the_middle_keeps_the_profile() {
    record_until_an_interrupt("env", descendants);
}

#[test]
fn an_interrupt_of_the_recorder_alone_reaches_the_program_where_no_terminal_sends_it() {
    record_until_an_interrupt("setsid", |recorder| vec![recorder]);
}

#[test]
fn a_killed_recorder_leaves_a_readable_profile() {
    let directory = tempfile::tempdir().unwrap();
    let binary = compile(directory.path());
    let profile = path(&directory, "app.iso");
    let mut child = isotherm()
        .args(["record", "--epoch", "100ms", "-o", &profile, "--"])
        .arg(&binary)
        // Longer than the busiest machine needs to write an epoch.
        .arg("600")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(directory.path().join("said")).unwrap())
        .spawn()
        .unwrap();
    wait_for_epochs(&mut child, &directory);
    let is_program = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "program\n")
    };
    let program = descendants(child.id()).into_iter().find(is_program);
    child.kill().unwrap();
    child.wait().unwrap();
    // The program outlives its recorder.
    let program = program.expect("it runs").to_string();
    let ended = Command::new("kill").arg(program).status();
    assert!(ended.unwrap().success());
    let report = run(&["report", "--text", &profile]);
    assert!(report.status.success(), "{}", stderr(&report));
    assert!(stdout(&report).contains("program"), "{}", stdout(&report));
}

/// Waits until a recorder has written an epoch into `app.iso`. One that cannot begin, because no
/// `libisotherm.so` was built, has said so into `said`.
fn wait_for_epochs(recorder: &mut Child, directory: &TempDir) {
    let end = Instant::now() + Duration::from_secs(120);
    let epochs = directory.path().join("app.iso/epochs-000000.parquet");
    while !epochs.exists() {
        let ended = recorder.try_wait().unwrap();
        let said = std::fs::read_to_string(directory.path().join("said")).unwrap_or_default();
        assert!(ended.is_none(), "the recorder ended: {ended:?}\n{said}");
        assert!(Instant::now() < end, "no epoch was written within 120 s");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(300));
}

/// The process and its children.
fn descendants(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).unwrap_or_default();
    let mut all = vec![pid];
    all.extend(
        children
            .split_whitespace()
            .filter_map(|child| child.parse::<u32>().ok()),
    );
    all
}

#[test]
fn a_crash_of_the_program_is_our_own_end() {
    let directory = tempfile::tempdir().unwrap();
    let profile = path(&directory, "app.iso");
    let output = run(&[
        "-q",
        "record",
        "-o",
        &profile,
        "--",
        "sh",
        "-c",
        "kill -SEGV $$",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.signal(), Some(11), "{said}");
    assert!(said.contains("sh ended with signal: 11"), "{said}");
    assert!(run(&["report", "--text", &profile]).status.success());
}

/// Each command line must fail with one sentence that holds the words.
fn each_is_refused(cases: &[(&[&str], &str)]) {
    for (arguments, words) in cases {
        let output = run(arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        assert!(
            stderr(&output).contains(words),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert!(
            !stderr(&output).contains("panicked"),
            "{arguments:?}: {}",
            stderr(&output)
        );
        let said = stderr(&output);
        let parts: Vec<&str> = said.trim_end().split(": ").collect();
        assert!(
            parts.windows(2).all(|pair| pair[0] != pair[1]),
            "{arguments:?}: said twice: {said}"
        );
    }
}

#[test]
fn bad_input_is_one_clear_sentence_and_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&directory, "0.6");
    let text = path(&directory, "text");
    std::fs::write(&text, "not a plan\n").unwrap();
    let empty = path(&directory, "empty.iso");
    std::fs::create_dir(&empty).unwrap();
    let cases: [(&[&str], &str); 21] = [
        (&["record", "--", "/no/such/program"], "no such program"),
        (&["record", "--", "no-such-program-at-all"], "on the PATH"),
        (&["record", "-o", &profile, "--", "true"], "--force"),
        (&["record", "--depth", "99", "--", "true"], "99"),
        (
            &["record", "--epoch", "5", "--", "true"],
            "a unit is required",
        ),
        (
            &["record", "--chunk", "5000B", "--", "true"],
            "power of two",
        ),
        (
            &["record", "--period", "1", "--source", "timer", "--", "true"],
            "--period: works with the sources instrumented",
        ),
        (
            &["record", "--source", "magic", "--", "true"],
            "there is no source",
        ),
        (&["plan", "/no/such.iso"], "/no/such.iso"),
        (&["plan", &empty], "not a profile"),
        (&["plan", &profile, "--policy", "best"], "thermos"),
        (
            &["plan", &profile, "--tiers", "emulated", "--fast", "9000TiB"],
            "larger than this machine",
        ),
        (&["plan", &profile, "--fast", "12parsec"], "12parsec"),
        (&["run", "--plan", &text, "--", "true"], "line 1"),
        (
            &["run", "--plan", "/no/such.plan", "--", "true"],
            "no plan at /no/such.plan: no such file; make one with `isotherm plan",
        ),
        (
            &["compare", &profile, "--", "true"],
            "it is a directory; if it is a profile, `isotherm plan",
        ),
        (
            &["explain", "/bin/true", "x"],
            "is not a plan: it is no text",
        ),
        (&["sites", "/"], "/: is a directory; name a program"),
        (
            &["sites", "/no/such"],
            "cannot be read; name a program or a shared library: No such file",
        ),
        (
            &["sites", &text],
            "is not an ELF file that can be read; name a program",
        ),
        (
            &["run", "--tiers", "/no/such.toml", "--", "true"],
            "nor a file that exists",
        ),
    ];
    each_is_refused(&cases);
}

#[test]
fn a_policy_of_a_run_that_cannot_be_is_refused_and_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let text = path(&directory, "text");
    std::fs::write(&text, "not a plan\n").unwrap();
    let nodes = path(&directory, "nodes.toml");
    let two = "[[tier]]\nname = \"fast\"\nnodes = [0]\n[[tier]]\nname = \"slow\"\nnodes = [1]\n";
    std::fs::write(&nodes, two).unwrap();
    let cases: [(&[&str], &str); 10] = [
        (
            &["run", "--policy", "best", "--", "true"],
            "there is no policy \"best\"; there are payback, history, oracle, first-come-first-allocated, balance, first-come, none",
        ),
        (
            &["run", "--policy", "oracle", "--", "true"],
            "make one with `isotherm record -o app.iso -- true` and add --profile app.iso",
        ),
        (
            &[
                "run",
                "--policy",
                "history",
                "--profile",
                &text,
                "--",
                "true",
            ],
            "--policy history decides by the past; leave it out",
        ),
        (
            &["run", "--unit", "64KiB", "--", "true"],
            "--unit: is of runs with --policy or --tiers compressed",
        ),
        (
            &["run", "--policy", "history", "--unit", "5KiB", "--", "true"],
            "no power of two from 4 KiB to 1 GiB",
        ),
        (
            &["run", "--policy", "history", "--unit", "2GiB", "--", "true"],
            "no power of two from 4 KiB to 1 GiB",
        ),
        (
            &["run", "--policy", "history", "--plan", &text, "--", "true"],
            "cannot be used with",
        ),
        (
            &["run", "--policy", "history", "--undo", "--", "true"],
            "leave out --mover and --undo",
        ),
        (
            &[
                "run", "--policy", "history", "--tiers", &nodes, "--", "true",
            ],
            "moves pages of the emulated machine",
        ),
        (
            &["run", "--policy", "none", "--dry-run", "--", "true"],
            "leave out --output, --dry-run and --unit",
        ),
    ];
    each_is_refused(&cases);
}

#[test]
fn flags_of_another_export_format_are_refused() {
    let export = |format, flag, value| ["report", "x.iso", "--export", format, flag, value];
    let stacks = "--stacks: --export speedscope writes all stacks";
    let both = "--width: --export speedscope writes both widths";
    each_is_refused(&[
        (&export("speedscope", "--stacks", "code"), stacks),
        (&export("speedscope", "--stacks", "allocation"), stacks),
        (&export("speedscope", "--width", "heat"), both),
        (
            &export("pprof", "--width", "bytes"),
            "--width: --export pprof writes both widths",
        ),
    ]);
    // These belong to the format, so only the profile is missing.
    for (format, flag, value) in [
        ("folded", "--width", "bytes"),
        ("folded", "--stacks", "code"),
        ("pprof", "--stacks", "code"),
    ] {
        let said = stderr(&run(&export(format, flag, value)));
        assert!(said.contains("x.iso") && !said.contains(flag), "{said}");
    }
}

#[test]
fn a_reader_that_stops_reading_ends_the_command_as_any_other() {
    let directory = tempfile::tempdir().unwrap();
    let profile = recorded(&directory, "0.6");
    for arguments in [
        vec!["doctor"],
        vec!["report", "--json", &profile],
        vec!["completions", "zsh"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = isotherm().args(&arguments).stdout(writer).output().unwrap();
        let status = output.status;
        assert_eq!(
            status.signal(),
            Some(13),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_static_program_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("s.c");
    let binary = directory.path().join("s");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let built = Command::new("cc")
        .arg("-static")
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        isotherm_skip::skip!("this machine cannot link a static program");
        return;
    }
    let output = run(&["record", "--", &binary.to_string_lossy()]);
    assert!(!output.status.success());
    for words in ["statically linked", "`isotherm daemon`"] {
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
}

#[test]
fn an_online_run_is_the_same_program_and_keeps_its_profile() {
    let directory = tempfile::tempdir().unwrap();
    let binary = compile(directory.path()).to_string_lossy().into_owned();
    let profile = path(&directory, "online.iso");
    let summary = path(&directory, "summary.json");
    let flags = ["--tiers", "emulated", "--fast", "6MiB", "--epoch", "200ms"];
    let output = isotherm()
        .arg("run")
        .args(flags)
        .args([
            "-o",
            &profile,
            "--summary",
            &summary,
            "--",
            &binary,
            "2",
            "4",
        ])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert_eq!(stdout(&output), "cold 1 hot 4194304\n");
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(summary).unwrap()).unwrap();
    assert_eq!(json["mode"], "online");
    assert_eq!(json["emulated"], true);
    assert!(run(&["report", "--text", &profile]).status.success());
}

#[test]
fn what_programs_read_is_json_and_what_shells_read_is_a_script() {
    for command in ["doctor", "tiers"] {
        let output = run(&["-q", command, "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let parsed = serde_json::from_str::<serde_json::Value>(&stdout(&output));
        assert!(parsed.is_ok(), "{command}: {}", stdout(&output));
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&run(&["completions", shell])).contains("isotherm"));
    }
    let directory = tempfile::tempdir().unwrap();
    assert!(run(&["man", &path(&directory, "man")]).status.success());
    for (command, usage) in [
        (
            "-record",
            "fBisotherm recordfR [OPTIONS] <-- <PROGRAM>...|--pid <PID>>",
        ),
        (
            "-merge",
            "fBisotherm mergefR [OPTIONS] --output <PROFILE> <PROFILE>...",
        ),
        ("", "fBisothermfR [OPTIONS] <COMMAND>"),
    ] {
        let page = directory.path().join(format!("man/isotherm{command}.1"));
        let page = std::fs::read_to_string(page).unwrap().replace('\\', "");
        let synopsis = format!(".SH SYNOPSIS\n{usage}\n.SH DESCRIPTION");
        assert!(page.contains(&synopsis), "{page}");
    }
}
