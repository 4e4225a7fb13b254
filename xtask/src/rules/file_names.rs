//! A module is named after its content; a name that fits any content collects any content.

use crate::finding::Finding;
use crate::repository::Repository;

const EMPTY_NAMES: &[&str] = &[
    "common",
    "helper",
    "helpers",
    "manager",
    "misc",
    "util",
    "utilities",
    "utils",
];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in repository
        .files
        .iter()
        .filter(|file| file.path.ends_with(".rs"))
    {
        let parts = file.path.trim_end_matches(".rs").split('/');
        for part in parts.filter(|part| EMPTY_NAMES.contains(part)) {
            let message =
                format!("`{part}` describes no content; name the module after its content");
            findings.push(Finding::new(&file.path, 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_of_a_file_or_a_directory_is_reported() {
        let files = [
            ("crates/a/src/util.rs", ""),
            ("crates/a/tests/common/mod.rs", ""),
            ("crates/a/src/utility_curve.rs", ""),
        ];
        assert_eq!(check(&Repository::of(&files)).len(), 2);
    }
}
