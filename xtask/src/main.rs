//! The house rules of this repository, as a check that fails.
//!
//! ```text
//! cargo run -p xtask -- check
//! ```
//!
//! A rule is a function from [`repository::Repository`], a value, to a list of findings; so each is
//! tested with an invented repository that breaks it. Only `repository` reads files or runs
//! programs. What rustfmt and clippy can check is left to them.

mod finding;
mod repository;
mod rules;
mod rust_source;
mod tokens;

use std::process::ExitCode;

use repository::Repository;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments != ["check"] {
        eprintln!("usage: cargo run -p xtask -- check");
        return ExitCode::from(2);
    }
    match Repository::load() {
        Ok(repository) => report(&repository),
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn report(repository: &Repository) -> ExitCode {
    let findings = rules::check(repository);
    for finding in &findings {
        println!("{finding}");
    }
    let files = repository.files.len();
    match findings.len() {
        0 => {
            println!(
                "house rules: {} rules, {files} files, nothing found",
                rules::ALL.len()
            );
            ExitCode::SUCCESS
        }
        count => {
            println!("house rules: {count} findings in {files} files");
            ExitCode::FAILURE
        }
    }
}
