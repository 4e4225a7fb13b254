//! A clone stays small: no large file is tracked. A script or a package manager supplies large files.

use crate::finding::Finding;
use crate::repository::{Repository, RepositoryFile};

/// The largest file that may be tracked, in bytes.
const LIMIT: u64 = 1 << 20;

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let too_large = |file: &&RepositoryFile| file.bytes > LIMIT && !file.is_foreign();
    let finding = |file: &RepositoryFile| {
        let message = format!(
            "has {} bytes, and {LIMIT} is the limit; make it by a script, or compress it",
            file.bytes
        );
        Finding::new(&file.path, 1, message)
    };
    repository
        .files
        .iter()
        .filter(too_large)
        .map(finding)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_one_mebibyte_is_reported_unless_it_is_an_asset_of_the_page() {
        let large = "x".repeat((1 << 20) + 1);
        let files = [
            ("tests/traces/a.csv", large.as_str()),
            ("crates/report/assets/plot.js", large.as_str()),
            ("tests/traces/b.csv", &large[..1 << 20]),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "tests/traces/a.csv");
    }
}
