//! Unsafe code is limited to three crates. The workspace denies it and clippy demands the SAFETY argument of each
//! use; this rule keeps other crates from lifting the denial.

use crate::finding::Finding;
use crate::repository::Repository;

/// The crates that may hold unsafe code: the kernel interface, the shared records, and the allocator inside
/// other programs.
const MAY_BE_UNSAFE: &[&str] = &["abi", "sys", "runtime"];

/// The attributes that lift the denial of the workspace.
const LIFTED: &[&str] = &[
    "allow(unsafe_code",
    "expect(unsafe_code",
    "warn(unsafe_code",
];

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in repository.texts() {
        let Some(name) = file
            .crate_name()
            .filter(|name| !MAY_BE_UNSAFE.contains(name))
        else {
            continue;
        };
        for (index, line) in text.lines().enumerate() {
            if LIFTED.iter().any(|lifted| line.contains(lifted)) {
                let homes = MAY_BE_UNSAFE.join(", ");
                let message =
                    format!("`{name}` must not hold unsafe code; put a safe wrapper into {homes}");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str) -> Vec<usize> {
        let text = "//! Title.\n#![allow(unsafe_code)]\n";
        let findings = check(&Repository::of(&[(path, text)]));
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unsafe_code_is_allowed_in_its_crates_only() {
        assert_eq!(lines("crates/observe/src/a.rs"), [2]);
        assert_eq!(lines("crates/observe/tests/a.rs"), [2]);
        assert_eq!(lines("crates/sys/src/lib.rs"), [0; 0]);
    }
}
