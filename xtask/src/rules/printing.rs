//! A library never prints and never exits: it returns, and the program decides what to show.

use crate::finding::Finding;
use crate::repository::{Repository, RepositoryFile};
use crate::tokens;

/// The crate that is a program, and may do both.
const PROGRAM: &str = "isotherm";
const PRINTING: &[&str] = &["dbg", "eprint", "eprintln", "print", "println"];
const EXITING: &[&str] = &["process::abort", "process::exit"];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository
        .rust_sources()
        .filter(|(file, _)| is_library(file))
    {
        let mut report = |line: usize, what: String| {
            if !source.is_test_line(line) {
                let message = format!("a library must not use {what}; return a value or an error");
                findings.push(Finding::new(&file.path, line, message));
            }
        };
        for call in tokens::macro_calls(&source.tokens) {
            if PRINTING.contains(&call.what.as_str()) {
                report(call.line, format!("{}!", call.what));
            }
        }
        for path in tokens::paths(&source.tokens) {
            if EXITING.iter().any(|exit| path.what.ends_with(exit)) {
                report(path.line, path.what);
            }
        }
    }
    findings
}

/// Build scripts talk to cargo by printing; programs beside a library talk to people.
fn is_library(file: &RepositoryFile) -> bool {
    file.crate_name().is_some_and(|name| name != PROGRAM)
        && !file.is_test_code()
        && !file.path.contains("/src/bin/")
        && file.name() != "build.rs"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    const TEXT: &str = "fn f() {\n    println!(\"x\");\n    std::process::exit(1);\n}\n";

    #[test]
    fn a_library_that_prints_or_exits_is_reported() {
        assert_eq!(lines("crates/report/src/text.rs", TEXT), [2, 3]);
    }

    #[test]
    fn the_program_tests_and_build_scripts_may_print() {
        assert_eq!(lines("crates/isotherm/src/main.rs", TEXT), [0; 0]);
        assert_eq!(lines("crates/report/tests/page.rs", TEXT), [0; 0]);
        assert_eq!(lines("crates/report/build.rs", TEXT), [0; 0]);
        assert_eq!(
            lines(
                "crates/report/src/a.rs",
                &format!("#[cfg(test)]\nmod tests {{\n{TEXT}}}")
            ),
            [0; 0]
        );
    }
}
