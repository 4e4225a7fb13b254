//! A module is named after its content; a name that fits any content collects any content, and `mod.rs` names none.

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
        if let Some((folder, _)) = file.path.rsplit_once("/mod.rs")
            && folder.contains("/src/")
        {
            let message = format!("a module's file is beside its folder; name it {folder}.rs");
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

    #[test]
    fn a_module_file_in_its_own_folder_is_reported_except_that_of_a_test() {
        let files = [
            ("crates/a/src/b/mod.rs", ""),
            ("crates/a/tests/support/mod.rs", ""),
            ("crates/a/src/b.rs", ""),
        ];
        let findings = check(&Repository::of(&files));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.ends_with("name it crates/a/src/b.rs"));
    }
}
