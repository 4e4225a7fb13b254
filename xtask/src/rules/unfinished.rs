//! Committed code is finished: no reminders. Clippy reports the macros of stubs.

use crate::finding::Finding;
use crate::repository::Repository;

/// Words that mark unfinished work. In two halves, so that this file does not break its own rule.
const MARKS: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let lines = repository.lines().filter(|(file, ..)| !file.is_foreign());
    let findings = lines.filter_map(|(file, number, line)| {
        let mark = MARKS.iter().find(|mark| has_word(line, mark))?;
        let message = format!("{mark} marks unfinished work; finish it, or open an issue");
        Some(Finding::new(&file.path, number, message))
    });
    findings.collect()
}

/// The word with no letter, digit or underscore beside it: the template of mktemp is not a mark.
fn has_word(line: &str, word: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_inner) && !after.is_some_and(is_inner)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mark_is_reported_in_any_text_file() {
        for mark in MARKS {
            let text = format!("fine\n// {mark}: later\n");
            for path in ["crates/a/src/a.rs", "docs/page.md", "demo/run"] {
                let findings = check(&Repository::of(&[(path, &text)]));
                assert_eq!(findings.len(), 1, "{mark} in {path}");
                assert_eq!(findings[0].line, 2);
            }
        }
    }

    #[test]
    fn a_mark_inside_another_word_is_none() {
        let text = format!("mktemp -d /tmp/a.{m}{m}\n", m = MARKS[2]);
        assert_eq!(check(&Repository::of(&[("setup/a", &text)])), []);
    }

    #[test]
    fn somebody_elses_file_may_hold_marks() {
        let text = format!("// {}: theirs\n", MARKS[0]);
        assert_eq!(
            check(&Repository::of(&[("crates/report/assets/plot.js", &text)])),
            []
        );
    }
}
