//! No file names a directory that exists only on one developer's machine.

use crate::finding::Finding;
use crate::repository::Repository;

/// Roots of such directories, in two halves so that this file does not break its own rule.
const LOCAL: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];
/// Invented home directories, for examples and test data.
const INVENTED: &[&str] = &["me/", "someone/", "user/"];
/// Recorded machines and programs keep their original paths.
const RECORDED: &[&str] = &["tests/machines/", "tests/traces/"];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let is_recorded = |path: &str| RECORDED.iter().any(|root| path.starts_with(root));
    let findings = repository.lines().filter_map(|(file, number, line)| {
        let root = LOCAL.iter().find(|root| begins_a_path(line, root))?;
        let message = format!(
            "{root} is a directory of one machine; use a path relative to the repository, \
             an argument, or a temporary directory"
        );
        let is_ours = !file.is_foreign() && !is_recorded(&file.path);
        is_ours.then(|| Finding::new(&file.path, number, message))
    });
    findings.collect()
}

/// `/x/` without an invented name after it, and without a longer path, variable or address before it: not in
/// `tests/x/` or `$HOME/x/`.
fn begins_a_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let rest = &line[start + root.len()..];
        !before.is_some_and(|c| c.is_alphanumeric() || "_.-/})~*".contains(c))
            && !INVENTED.iter().any(|name| rest.starts_with(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_local_directory_is_reported() {
        for root in LOCAL {
            let text = format!("let path = \"{root}jane/file\";\n");
            assert_eq!(
                check(&Repository::of(&[("crates/a/src/a.rs", &text)])).len(),
                1,
                "{root}"
            );
        }
    }

    #[test]
    fn longer_paths_invented_ones_and_recorded_machines_are_not_reported() {
        let text = format!("\"{}me/bfs.cc\"\n", LOCAL[1]);
        assert_eq!(check(&Repository::of(&[("crates/a/src/a.rs", &text)])), []);
        let text = format!("see tests{}a\n", LOCAL[0]);
        assert_eq!(check(&Repository::of(&[("docs/a.md", &text)])), []);
        let text = format!("7f00-7f10 r-xp {}jane/app\n", LOCAL[1]);
        assert_eq!(
            check(&Repository::of(&[("tests/machines/one/maps", &text)])),
            []
        );
    }
}
