//! Tests the proof in its shortest form: no word is lost, and a move that loses writes is caught.

use std::process::{Command, Output};

/// Runs the program in its own folder.
fn movement(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_movement"));
    command
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .args(arguments);
    let output = command.output().expect("the program runs");
    println!("{}", String::from_utf8_lossy(&output.stdout));
    println!("{}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn nothing_is_lost_while_everything_moves() {
    let output = movement(&["stress", "--seconds", "3"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("seed "));
    assert!(said.contains("lost or torn words 0"));
}

#[test]
fn a_move_that_loses_writes_is_caught() {
    let output = movement(&["stress", "--canary", "--seconds", "60"]);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("caught"));
}
