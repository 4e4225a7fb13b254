//! Checks the house rules of this repository, and fails where one is broken.
//!
//! ```text
//! cargo run -p xtask -- check
//! ```
//!
//! A rule is a function from [`repository::Repository`], a value, to a list of findings, so a test can pass it
//! an invented repository that breaks it. Only `repository` reads files or runs programs. Checks that rustfmt
//! and clippy can do are left to them.

mod finding;
mod modules;
mod repository;
mod rules;
mod rust_source;
mod tokens;

use std::io::{self, Write as _};
use std::process::ExitCode;

use repository::Repository;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["check"] {
        let _ = writeln!(io::stderr(), "usage: cargo run -p xtask -- check");
        return ExitCode::from(2);
    }
    match Repository::load() {
        Ok(repository) => report(&repository),
        Err(error) => {
            let _ = writeln!(io::stderr(), "xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn report(repository: &Repository) -> ExitCode {
    let findings = rules::check(repository);
    let files = repository.files.len();
    let (verdict, status) = match findings.len() {
        0 => {
            let rules = rules::ALL.len();
            let verdict = format!("house rules: {rules} rules, {files} files, nothing found");
            (verdict, ExitCode::SUCCESS)
        }
        count => {
            let verdict = format!("house rules: {count} findings in {files} files");
            (verdict, ExitCode::FAILURE)
        }
    };
    let lines = findings.iter().map(ToString::to_string).chain([verdict]);
    for line in lines {
        // The exit status reports the result even where the output cannot be written.
        let _ = writeln!(io::stdout(), "{line}");
    }
    status
}
