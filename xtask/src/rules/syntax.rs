//! Every Rust file parses: the other rules cannot check one that does not.

use crate::finding::Finding;
use crate::repository::Repository;

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &repository.files {
        if let Some(Err(error)) = &file.rust {
            let message = format!("is not valid Rust ({error}); no rule can look inside it");
            findings.push(Finding::new(&file.path, 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_parse_is_reported() {
        let repository = Repository::of(&[("crates/a/src/lib.rs", "fn ("), ("b.rs", "fn b() {}")]);
        let findings = check(&repository);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/a/src/lib.rs");
    }
}
