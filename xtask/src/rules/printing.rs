//! A library never prints and never exits: it returns, and the program decides what to show. And no output may panic, as
//! the macros of the standard library do where the output is a full device or a closed pipe: that would end a program
//! that is only watched, or a daemon.

use crate::finding::Finding;
use crate::repository::{Repository, RepositoryFile};
use crate::tokens::{self, Spot};

/// The crate of the program, which may exit.
const PROGRAM: &str = "isotherm";
const PRINTING: &[&str] = &["dbg", "eprint", "eprintln", "print", "println"];
const EXITING: &[&str] = &["process::abort", "process::exit"];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.rust_sources().filter(|(file, _)| is_ours(file)) {
        let mut report = |spots: Vec<Spot<String>>, message: &dyn Fn(&str) -> Option<String>| {
            for spot in spots.iter().filter(|it| !source.is_test_line(it.line)) {
                let message = message(&spot.what);
                findings.extend(message.map(|it| Finding::new(&file.path, spot.line, it)));
            }
        };
        let help = match is_library(file) {
            true => "return a value or an error",
            false => "write and handle the error, as notes.rs does",
        };
        report(tokens::macro_calls(&source.tokens), &|what| {
            let prints = PRINTING.contains(&what);
            prints.then(|| format!("{what}! panics where its output fails; {help}"))
        });
        report(tokens::unwrapped_writes(&source.tokens), &|what| {
            Some(format!(
                "{what} panics where the write fails; handle the error"
            ))
        });
        report(tokens::paths(&source.tokens), &|what| {
            let exits = is_library(file) && EXITING.iter().any(|exit| what.ends_with(exit));
            exits.then(|| format!("a library must not use {what}; return a value or an error"))
        });
    }
    findings
}

/// Build scripts report to cargo on standard output, and end the build on an error.
fn is_ours(file: &RepositoryFile) -> bool {
    !file.is_test_code() && file.name() != "build.rs"
}

/// Programs beside a library print for people.
fn is_library(file: &RepositoryFile) -> bool {
    file.crate_name().is_some_and(|name| name != PROGRAM) && !file.path.contains("/src/bin/")
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
    fn a_program_that_prints_by_a_macro_that_panics_is_reported_and_may_exit() {
        for path in [
            "crates/isotherm/src/main.rs",
            "crates/report/src/bin/page.rs",
            "xtask/src/main.rs",
            "tests/movement/src/main.rs",
            "fuzz/src/bin/seeds.rs",
        ] {
            assert_eq!(lines(path, TEXT), [2], "{path}");
        }
        for name in PRINTING {
            let text = format!("fn f() {{ vec![{name}!(\"x\")]; }}");
            assert_eq!(lines("crates/isotherm/src/a.rs", &text), [1], "{name}");
        }
    }

    #[test]
    fn a_write_that_is_unwrapped_is_reported_and_one_that_is_handled_is_not() {
        let path = "crates/isotherm/src/a.rs";
        for wrong in [
            "fn f() { writeln!(out, \"x\").unwrap(); }",
            "fn f() { write!(out, \"x\").expect(\"writes\"); }",
            "fn f() { out.write_all(b\"x\").unwrap(); }",
            "fn f() { out.flush().unwrap(); }",
        ] {
            assert_eq!(lines(path, wrong), [1], "{wrong}");
        }
        for right in [
            "fn f() { let _ = writeln!(out, \"x\"); }",
            "fn f() -> io::Result<()> { out.write_all(b\"x\")?; out.flush() }",
            "fn f() { read.lock().unwrap(); }",
        ] {
            assert_eq!(lines(path, right), [0; 0], "{right}");
        }
    }

    #[test]
    fn tests_and_build_scripts_may_print() {
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
