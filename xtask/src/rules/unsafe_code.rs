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
    let lifts = |line: &str| LIFTED.iter().any(|lifted| line.contains(lifted));
    let lines = repository.lines().filter(|(.., line)| lifts(line));
    let findings = lines.filter_map(|(file, number, _)| {
        let name = file.crate_name();
        let name = name.filter(|name| !MAY_BE_UNSAFE.contains(name))?;
        let homes = MAY_BE_UNSAFE.join(", ");
        let message =
            format!("`{name}` must not hold unsafe code; put a safe wrapper into {homes}");
        Some(Finding::new(&file.path, number, message))
    });
    findings.collect()
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
