//! Findings that are accepted, each by one line of a list. An entry that no longer occurs is a
//! finding itself, so the list can only shrink.
//!
//! ```text
//! [import_circles]
//! # A comment.
//! crates/a/src/b.rs -> crates/a/src/c.rs: why this import stays
//! ```

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::repository::Repository;

/// The list. An entry is in the section of its rule and may end in `: ` and a reason.
const LIST: &str = "xtask/accepted.txt";

/// The accepted findings of one rule, by key, each with its line in the list.
pub(crate) type Accepted = BTreeMap<String, usize>;

/// The entries of one section.
pub(crate) fn of_rule(repository: &Repository, rule: &str) -> Accepted {
    let text = repository
        .file(LIST)
        .and_then(|file| file.text.as_deref())
        .unwrap_or_default();
    let mut section = "";
    let mut accepted = Accepted::new();
    for (index, line) in text.lines().enumerate() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if section == rule && !line.is_empty() && !line.starts_with('#') {
            let key = line.split(": ").next().unwrap_or(line);
            accepted.insert(key.to_owned(), index + 1);
        }
    }
    accepted
}

/// An entry that accepts nothing.
pub(crate) fn stale(key: &str, line: usize) -> Finding {
    let message = format!("`{key}` no longer occurs; remove this line");
    Finding::new(LIST, line, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read_from_its_section_without_its_reason() {
        let list = "# All.\n\n[one]\nA\nB: a reason: long\n\n[two]\n# Part.\nC\n";
        let repository = Repository::of(&[(LIST, list)]);
        let keys = |rule| Vec::from_iter(of_rule(&repository, rule));
        assert_eq!(keys("one"), [("A".to_owned(), 4), ("B".to_owned(), 5)]);
        assert_eq!(keys("two"), [("C".to_owned(), 9)]);
        assert_eq!(keys("three"), []);
    }
}
