//! Tests `isotherm import` with files of other tools in `tests/traces`; llvm/tests/memprof.py has programs that write such files.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

use support::isotherm;

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces")
}

/// Imports a file of `tests/traces` into the folder.
fn import(folder: &Path, name: &str, more: &[&str]) -> Output {
    let input = traces().join(name);
    let input = input.to_str().expect("a path");
    isotherm(folder, &[&["import", input], more].concat())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn sums_of_other_tools_become_profiles_that_every_command_reads() {
    for (name, accesses) in [
        ("memprof.yaml", 90_010),
        ("damon.trace.txt", 3_968),
        ("damo.data", 3_648),
    ] {
        let folder = tempfile::tempdir().expect("a directory");
        let folder = folder.path();
        let output = import(folder, name, &[]);
        assert!(output.status.success(), "{name}: {}", said(&output));
        let report = isotherm(folder, &["report", "--json", "app.iso"]);
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("is JSON");
        let rows = report["sites"].as_array().expect("has sites").iter();
        let found: u64 = rows.filter_map(|site| site["accesses"].as_u64()).sum();
        assert_eq!(found, accesses, "{name}");
        for next in [
            &["plan", "app.iso", "--tiers", "emulated"][..],
            &["curve", "app.iso"],
        ] {
            let output = isotherm(folder, next);
            assert!(
                output.status.success(),
                "{name}, {next:?}: {}",
                said(&output)
            );
        }
        let again = said(&import(folder, name, &[]));
        assert!(again.contains("--force"), "{again}");
        assert!(import(folder, name, &["--force"]).status.success());
    }
}

#[test]
fn what_no_profile_can_be_made_of_is_refused_and_leaves_none() {
    let folder = tempfile::tempdir().expect("a directory");
    let own = std::env::current_exe().expect("a path");
    let own = own.to_str().expect("a path");
    for (name, more, what) in [
        ("accesses.csv", &[][..], "isotherm simulate"),
        (
            "memprof.profraw",
            &[],
            "name the program that wrote it with --program",
        ),
        ("memprof.profraw", &["--program", own], "its build-id is"),
        ("memprof.profraw", &["--sites", own], "--program"),
        ("memprof.yaml", &["--program", own], "leave out --program"),
        ("bad/negative.memprof.yaml", &[], "TotalAccessCount"),
        ("nothing", &[], "cannot be read"),
    ] {
        let output = import(folder.path(), name, more);
        assert!(!output.status.success(), "{name} was taken");
        assert!(said(&output).contains(what), "{name}: {}", said(&output));
        assert!(!folder.path().join("app.iso").exists(), "{name}");
    }
}
