//! One name, one type: no two public types of the crates have the same name, so that a name says
//! what it is wherever it is read.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::repository::Repository;
use crate::tokens;

/// A name that several crates may declare: the errors of a crate are its `Error`, as in the standard library,
/// and the crate's name is written before it.
const CONVENTIONAL: &[&str] = &["Error"];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, places) in public_types(repository) {
        if places.len() == 1 || CONVENTIONAL.contains(&name.as_str()) {
            continue;
        }
        let (path, line) = &places[0];
        let others: Vec<String> = places[1..]
            .iter()
            .map(|(path, line)| format!("{path}:{line}"))
            .collect();
        let message = format!(
            "the public type `{name}` has the same name as the one in {}; give each its own name",
            others.join(", ")
        );
        findings.push(Finding::new(path, *line, message));
    }
    findings
}

/// The public types of the crates by name, each with its files and lines.
fn public_types(repository: &Repository) -> BTreeMap<String, Vec<(String, usize)>> {
    let mut types: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    let sources = repository
        .rust_sources()
        .filter(|(file, _)| file.crate_name().is_some() && !file.is_test_code());
    for (file, source) in sources {
        for spot in tokens::public_types(&source.tokens) {
            if !source.is_test_line(spot.line) {
                let places = types.entry(spot.what).or_default();
                places.push((file.path.clone(), spot.line));
            }
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repository::of(files))
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn two_public_types_of_one_name_are_reported_with_both_places() {
        let found = messages(&[
            ("crates/a/src/lib.rs", "pub struct Batch;"),
            ("crates/b/src/c.rs", "\npub type Batch = u8;"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/a/src/lib.rs:1: the public type `Batch`"));
        assert!(found[0].contains("crates/b/src/c.rs:2"), "{found:?}");
    }

    #[test]
    fn narrower_types_re_exports_tests_and_errors_may_share_a_name() {
        let found = messages(&[
            ("crates/a/src/lib.rs", "pub struct Batch; pub enum Error {}"),
            (
                "crates/b/src/c.rs",
                "pub(crate) struct Batch; pub struct Error;",
            ),
            ("crates/b/src/d.rs", "pub use a::Batch;"),
            (
                "crates/b/src/e.rs",
                "#[cfg(test)]\nmod tests {\n    pub struct Batch;\n}\n",
            ),
            ("crates/b/tests/f.rs", "pub struct Batch;"),
            ("tests/vm/src/lib.rs", "pub struct Batch;"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
