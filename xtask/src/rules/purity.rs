//! The crates that only compute have no files, network, clock, threads, processes or unsafe code: their results
//! depend only on their arguments, so that a recorded profile, a test and a live program get the same answer.

use crate::finding::Finding;
use crate::repository::Repository;
use crate::tokens;

/// The crates that must be pure.
const PURE: &[&str] = &["decode", "model", "plan-text", "policy", "pipeline", "sim"];

/// The paths that they must not name. `std::time` itself is here because an import of the module hides which of
/// its items are used; `std::time::Duration` is a plain value and allowed.
const FORBIDDEN: &[&str] = &[
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
];
const FORBIDDEN_AS_A_WHOLE: &str = "std::time";

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.rust_sources() {
        let Some(name) = file.crate_name().filter(|name| PURE.contains(name)) else {
            continue;
        };
        if file.path == format!("crates/{name}/src/lib.rs") && !forbids_unsafe(&source.tree) {
            let message = format!("`{name}` is a pure crate; put #![forbid(unsafe_code)] here");
            findings.push(Finding::new(&file.path, 1, message));
        }
        if file.is_test_code() {
            continue;
        }
        for path in tokens::paths(&source.tokens) {
            if is_forbidden(&path.what) && !source.is_test_line(path.line) {
                let message = format!(
                    "`{name}` is a pure crate and must not use {}; take the value as an argument, \
                     or put the reading behind a port that `observe` or `act` implements",
                    path.what
                );
                findings.push(Finding::new(&file.path, path.line, message));
            }
        }
    }
    findings
}

fn is_forbidden(path: &str) -> bool {
    let below = |root: &&str| {
        path.strip_prefix(*root)
            .is_some_and(|rest| rest.starts_with("::"))
    };
    path == FORBIDDEN_AS_A_WHOLE || FORBIDDEN.contains(&path) || FORBIDDEN.iter().any(below)
}

/// `#![forbid(unsafe_code)]` among the file's attributes.
fn forbids_unsafe(tree: &syn::File) -> bool {
    tree.attrs.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            list.path.is_ident("forbid") && list.tokens.to_string().contains("unsafe_code")
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<Finding> {
        check(&Repository::of(&[(path, text)]))
    }

    #[test]
    fn reading_a_file_or_a_clock_in_a_pure_crate_is_reported() {
        let text =
            "use std::{fs, time::{Duration, Instant}};\nfn f() { std::thread::yield_now(); }";
        let lines: Vec<usize> = findings("crates/policy/src/knapsack.rs", text)
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [1, 1, 2]);
    }

    #[test]
    fn importing_the_whole_clock_module_is_reported_and_a_duration_is_not() {
        assert_eq!(findings("crates/model/src/a.rs", "use std::time;").len(), 1);
        assert_eq!(
            findings("crates/model/src/a.rs", "use std::time::*;").len(),
            1
        );
        assert_eq!(
            findings("crates/model/src/a.rs", "use std::time::Duration;"),
            []
        );
    }

    #[test]
    fn tests_of_a_pure_crate_and_other_crates_may_read_files() {
        let in_test = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        assert_eq!(findings("crates/policy/src/a.rs", in_test), []);
        assert_eq!(
            findings("crates/policy/tests/golden.rs", "use std::fs;"),
            []
        );
        assert_eq!(findings("crates/observe/src/a.rs", "use std::fs;"), []);
    }

    #[test]
    fn a_pure_crate_that_does_not_forbid_unsafe_code_is_reported() {
        assert_eq!(
            findings("crates/pipeline/src/lib.rs", "#![deny(unsafe_code)]").len(),
            1
        );
        assert_eq!(
            findings("crates/pipeline/src/lib.rs", "#![forbid(unsafe_code)]"),
            []
        );
    }
}
