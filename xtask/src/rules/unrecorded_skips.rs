//! A skipped test is recorded, so that `make test` can compare it with the list of tests that may be skipped: a
//! printed line is lost in the output of a test that passes.

use crate::finding::Finding;
use crate::repository::Repository;

/// The first words of an unrecorded skip message. In two halves, so that this file does not break its own rule.
const MARKS: &[&str] = &[concat!("\"skip", "ped: "), concat!("\"SK", "IP ")];
/// The crate that records, and prints too.
const RECORDER: &str = "tests/skip/";

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let has_mark = |line: &str| MARKS.iter().any(|mark| line.contains(mark));
    let lines = repository.lines().filter(|(.., line)| has_mark(line));
    let findings = lines.filter_map(|(file, number, _)| {
        let source = file.rust.as_ref()?.as_ref().ok()?;
        let is_test = file.is_test_code() || source.is_test_line(number);
        let message =
            "a test prints that it is skipped, but does not record it; use isotherm_skip::skip!";
        (is_test && !file.path.starts_with(RECORDER))
            .then(|| Finding::new(&file.path, number, message))
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_alone_are_reported_in_tests_and_the_macro_is_not() {
        let words = format!("fn t() {{\n    println!({}no nodes\");\n}}\n", MARKS[0]);
        let recorded = "fn t() {\n    isotherm_skip::skip!(\"no nodes\");\n}\n";
        let lines = |path: &str, text: &str| check(&Repository::of(&[(path, text)])).len();
        assert_eq!(lines("crates/a/tests/a.rs", &words), 1);
        assert_eq!(lines("crates/a/tests/a.rs", recorded), 0);
        assert_eq!(lines("crates/a/src/a.rs", &words), 0);
        assert_eq!(lines("tests/skip/src/lib.rs", &words), 0);
    }
}
