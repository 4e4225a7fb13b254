//! Tests files that cannot be written: what was there before stays, and so does the program's exit status.

mod support;

use std::path::Path;
use std::process::{Command, Output};

use isotherm_model::port::Recorder;
use isotherm_model::profile::{Ending, EpochSpan, Meta, Segment};
use isotherm_profile::{Existing, Writer};
use tempfile::TempDir;

use support::{built, isotherm, stderr, succeeds, sums};

/// Runs the tool where no file may grow beyond this number of blocks of 512 bytes: writing fails in the middle, as on a full disk.
fn cramped(directory: &TempDir, blocks: u32, arguments: &[&str]) -> Output {
    let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .current_dir(directory)
        .args(["-c", &limited, env!("CARGO_BIN_EXE_isotherm")])
        .args(arguments)
        .output()
        .expect("a shell")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("is a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A profile of one epoch.
fn profile(path: &Path) {
    let meta = Meta {
        command: vec!["before".to_owned()],
        ..Meta::default()
    };
    let mut writer = Writer::create(path, &meta, Existing::Refuse).unwrap();
    let epoch = EpochSpan::default();
    writer
        .record(&Segment {
            epoch,
            ..Segment::default()
        })
        .unwrap();
    writer.finish(Ending::Exited(0), &[]).unwrap();
}

#[test]
fn a_page_or_plot_that_cannot_be_written_leaves_the_old_one_or_none() {
    let directory = tempfile::tempdir().unwrap();
    profile(&directory.path().join("x.iso"));
    let cases: [&[&str]; 2] = [
        &["report", "x.iso", "-o", "out"],
        &[
            "simulate",
            "--generate",
            "uniform",
            "--accesses",
            "10000",
            "--sweep",
            "--plot",
            "out",
        ],
    ];
    for arguments in cases {
        for old in [None, Some("the old one")] {
            let out = directory.path().join("out");
            old.iter()
                .for_each(|old| std::fs::write(&out, old).unwrap());
            let output = cramped(&directory, 2, arguments);
            assert_eq!(
                output.status.code(),
                Some(1),
                "{arguments:?}: {}",
                stderr(&output)
            );
            assert!(
                stderr(&output).contains("out: cannot be written: "),
                "{}",
                stderr(&output)
            );
            assert_eq!(
                std::fs::read_to_string(&out).ok().as_deref(),
                old,
                "{arguments:?}"
            );
            let left = usize::from(old.is_some());
            assert_eq!(
                names(directory.path()).len(),
                1 + left,
                "{:?}",
                names(directory.path())
            );
        }
        std::fs::remove_file(directory.path().join("out")).unwrap();
    }
}

#[test]
fn man_pages_that_cannot_be_written_leave_no_empty_ones() {
    let directory = tempfile::tempdir().unwrap();
    let output = cramped(&directory, 0, &["man", "man"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(names(&directory.path().join("man")).is_empty());
}

#[test]
fn a_summary_that_could_not_be_written_is_known_before_the_program_runs() {
    let directory = tempfile::tempdir().unwrap();
    for summary in ["no/such/y.json", "."] {
        let program = [
            "run",
            "--summary",
            summary,
            "--",
            "sh",
            "-c",
            "echo ran; exit 7",
        ];
        let output = isotherm(&directory, &program);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(output.stdout.is_empty(), "the program ran");
        assert!(
            stderr(&output).contains("cannot be written"),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_summary_that_fails_at_the_end_leaves_the_program_its_status() {
    let directory = tempfile::tempdir().unwrap();
    for (status, ours) in [("7", 7), ("0", 1)] {
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let program = format!("rmdir sub; exit {status}");
        let run = [
            "run",
            "--tiers",
            "emulated",
            "--fast",
            "1MiB",
            "--summary",
            "sub/y.json",
        ];
        let output = isotherm(
            &directory,
            &[&run[..], &["--", "sh", "-c", &program]].concat(),
        );
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(ours), "{said}");
        assert_eq!(
            said.matches("sub/y.json: cannot be written").count(),
            1,
            "{said}"
        );
    }
}

/// No session file is found after such a run: what the program allocated is unknown, and is not said to be nothing.
#[test]
fn a_plan_is_not_called_foreign_where_no_session_file_could_be_written() {
    let directory = built(&sums(8, 1));
    succeeds(&directory, &["record", "-o", "app.iso", "--", "./app"]);
    succeeds(&directory, &["plan", "app.iso", "--tiers", "emulated"]);
    let plan = std::fs::read_to_string(directory.path().join("app.plan")).unwrap();
    if !plan.contains("site ") {
        isotherm_skip::skip!("no samples here, so the plan has no site: {plan}");
        return;
    }
    let output = cramped(
        &directory,
        100,
        &["run", "--plan", "app.plan", "--", "./app"],
    );
    let said = stderr(&output);
    assert!(said.contains("session file could not be written"), "{said}");
    assert!(said.contains("ran without Isotherm"), "{said}");
    for false_words in ["another program", "made by this run"] {
        assert!(!said.contains(false_words), "{said}");
    }
    let output = cramped(
        &directory,
        100,
        &["compare", "app.plan", "--rounds", "2", "--", "./app"],
    );
    let said = stderr(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("ran without Isotherm"), "{said}");
    assert!(!said.contains("another build"), "{said}");
}

#[test]
fn a_profile_that_cannot_be_written_leaves_the_program_its_status_and_is_told_once() {
    for command in ["record", "run"] {
        for (status, ours) in [("5", 5), ("0", 1)] {
            let directory = tempfile::tempdir().unwrap();
            // A directory in the place of a table fails as a full disk does.
            let program = format!("mkdir x.iso/epochs-000000.parquet; exit {status}");
            let arguments = [command, "-o", "x.iso", "--", "sh", "-c", &program];
            let output = isotherm(&directory, &arguments);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(ours), "{command}: {said}");
            assert_eq!(said.matches("could not be written").count(), 1, "{said}");
            assert!(said.contains("nothing of the run is recorded"), "{said}");
            assert!(!said.contains("yet") && !said.contains("next:"), "{said}");
        }
    }
}

#[test]
fn what_could_not_be_written_while_the_program_ran_is_named_without_the_reason_at_its_end() {
    let directory = tempfile::tempdir().unwrap();
    // The first epoch may come before it.
    let program = "until mkdir x.iso/epochs-000000.parquet; do rm -f x.iso/epochs-000000.parquet; done 2> errors; \
                   sleep 1; exit 5";
    let record = [
        "record", "--epoch", "50ms", "-o", "x.iso", "--", "sh", "-c", program,
    ];
    let output = isotherm(&directory, &record);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert_eq!(said.matches("Is a directory").count(), 1, "{said}");
    assert!(
        said.contains("x.iso: ") && said.contains(" of the run "),
        "{said}"
    );
}

#[test]
fn a_profile_is_not_called_something_else_where_no_more_files_may_be_opened() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.iso");
    profile(&path);
    let mut refused = 0;
    for files in 4..32 {
        let limited = format!("ulimit -n {files}; exec \"$0\" record --force -o x.iso -- true");
        let output = Command::new("sh")
            .current_dir(&directory)
            .args(["-c", &limited, env!("CARGO_BIN_EXE_isotherm")])
            .output()
            .expect("a shell");
        let said = stderr(&output);
        assert!(!said.contains("is not a profile"), "{files} files: {said}");
        refused += usize::from(said.contains("Too many open files"));
    }
    assert!(refused > 0, "no limit was low enough");
}

#[test]
fn a_program_that_never_begins_and_a_full_disk_leave_the_profile_that_force_would_replace() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str, content: &str| std::fs::write(directory.path().join(name), content);
    text("library.c", "int answer(void) { return 7; }").unwrap();
    text(
        "program.c",
        "int answer(void); int main(void) { return answer(); }",
    )
    .unwrap();
    let build = "cc -shared -fPIC -o libanswer.so library.c && cc -o program program.c -L. -lanswer && rm libanswer.so";
    let built = Command::new("sh")
        .current_dir(&directory)
        .args(["-c", build])
        .status();
    assert!(built.expect("a shell").success(), "a C compiler");
    profile(&directory.path().join("x.iso"));
    profile(&directory.path().join("y.iso"));
    let unchanged = |output: &Output, status: i32| {
        let said = stderr(output);
        assert_eq!(output.status.code(), Some(status), "{said}");
        let (kept, warnings) = isotherm_profile::read(&directory.path().join("x.iso")).unwrap();
        assert_eq!(
            (&kept.meta.command[..], warnings),
            (&["before".to_owned()][..], vec![]),
            "{said}"
        );
        let left = names(directory.path())
            .into_iter()
            .filter(|name| name.starts_with('.'));
        assert_eq!(left.count(), 0, "{said}");
    };
    // The loader ends a program that lacks a library, before its first allocation.
    for command in ["record", "run"] {
        let output = isotherm(
            &directory,
            &[command, "--force", "-o", "x.iso", "--", "./program"],
        );
        assert!(
            stderr(&output).contains("the program did not begin, so x.iso is left unchanged"),
            "{}",
            stderr(&output)
        );
        unchanged(&output, 127);
    }
    let program = "mkdir x.iso/epochs-000000.parquet; exit 5";
    let output = isotherm(
        &directory,
        &[
            "record", "--force", "-o", "x.iso", "--", "sh", "-c", program,
        ],
    );
    unchanged(&output, 5);
    unchanged(
        &cramped(&directory, 0, &["merge", "--force", "-o", "x.iso", "y.iso"]),
        1,
    );
}

#[test]
fn no_input_is_overwritten_by_an_output() {
    let directory = tempfile::tempdir().expect("a directory");
    profile(&directory.path().join("x.iso"));
    std::os::unix::fs::symlink("runs.txt", directory.path().join("link")).expect("links");
    for name in ["runs.txt", "trace.csv", "x.plan"] {
        std::fs::write(directory.path().join(name), "content\n").expect("writes");
    }
    for arguments in [
        &["fit-bandwidth", "runs.txt", "-o", "runs.txt"][..],
        &["fit-bandwidth", "runs.txt", "-o", "link"],
        &["simulate", "trace.csv", "--plot", "./trace.csv"],
        &["report", "x.iso", "--plan", "x.plan", "-o", "x.plan"],
        &["report", "x.iso", "-o", "x.iso/meta.parquet"],
        &["plan", "x.iso", "-o", "x.iso/x.plan"],
        &[
            "run",
            "--plan",
            "x.plan",
            "--summary",
            "x.plan",
            "--",
            "true",
        ],
        &["import", "trace.csv", "--force", "-o", "trace.csv"],
        &["merge", "--force", "-o", "x.iso", "x.iso"],
    ] {
        let before = names(&directory.path().join("x.iso"));
        let output = isotherm(&directory, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.contains("is both read and written; name another file with --"),
            "{said}"
        );
        assert_eq!(
            names(&directory.path().join("x.iso")),
            before,
            "{arguments:?}"
        );
    }
    for name in ["runs.txt", "trace.csv", "x.plan"] {
        let content = std::fs::read_to_string(directory.path().join(name));
        assert_eq!(content.expect("reads"), "content\n", "{name}");
    }
}

#[test]
fn no_plan_is_the_next_command_of_a_profile_without_accesses() {
    let directory = tempfile::tempdir().expect("a directory");
    profile(&directory.path().join("x.iso"));
    for arguments in [&["report", "x.iso"][..], &["merge", "-o", "y.iso", "x.iso"]] {
        let output = isotherm(&directory, arguments);
        let said = stderr(&output);
        assert!(output.status.success(), "{said}");
        assert!(!said.contains("isotherm plan"), "{said}");
    }
}
