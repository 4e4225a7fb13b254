//! Tests that `make install` copies what was built, and does nothing else.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use object::Object;
use tempfile::TempDir;

/// Runs `make install` of a build in a directory, with an apt that leaves a note when it is run.
fn install(directory: &TempDir) -> Output {
    let commands = directory.path().join("commands");
    std::fs::create_dir_all(&commands).unwrap();
    for name in ["apt-get", "sudo", "cargo"] {
        let file = commands.join(name);
        std::fs::write(&file, "#!/bin/sh\ntouch \"$NOTE\"\nexit 1\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    Command::new("make")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .args(["--no-print-directory", "install", "PREFIX=/opt"])
        .arg(format!("DESTDIR={}", directory.path().join("to").display()))
        .env("PATH", format!("{}:{path}", commands.display()))
        .env("NOTE", directory.path().join("note"))
        .env("CARGO_TARGET_DIR", directory.path().join("built"))
        .output()
        .expect("make")
}

#[test]
fn install_without_a_build_says_what_to_run_and_runs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = install(&directory);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("run `make build` first"), "{said}");
    assert!(!directory.path().join("note").exists());
    assert!(!directory.path().join("to").exists());
}

#[test]
fn install_copies_stripped_files_that_work_and_runs_no_package_manager() {
    let directory = tempfile::tempdir().unwrap();
    let release = directory.path().join("built/release");
    std::fs::create_dir_all(&release).unwrap();
    let own = Path::new(env!("CARGO_BIN_EXE_isotherm"));
    for file in [own.to_owned(), own.with_file_name("libisotherm.so")] {
        // In a process of its own: what this one had open for writing another test's child could hold open, and
        // the kernel runs no file that is.
        let copied = Command::new("cp").arg(&file).arg(&release).status();
        assert!(copied.unwrap().success(), "{}", file.display());
    }
    let output = install(&directory);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!directory.path().join("note").exists());
    let to = directory.path().join("to/opt");
    for name in ["bin/isotherm", "lib/libisotherm.so"] {
        let bytes = std::fs::read(to.join(name)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        for symbols in [".symtab", ".debug_info", ".debug_line"] {
            assert!(
                file.section_by_name(symbols).is_none(),
                "{name} has {symbols}"
            );
        }
    }
    let recorded = Command::new(to.join("bin/isotherm"))
        .args(["record", "-o"])
        .arg(directory.path().join("app.iso"))
        .args(["--", "true"])
        .output()
        .expect("the installed program starts");
    assert!(
        recorded.status.success(),
        "{}",
        String::from_utf8_lossy(&recorded.stderr)
    );
    assert!(to.join("share/man/man1/isotherm-record.1").exists());
}
