//! An ignored test states its reason.

use syn::visit::Visit;

use crate::finding::Finding;
use crate::repository::Repository;

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.rust_sources() {
        let mut finder = BareIgnores::default();
        finder.visit_file(&source.tree);
        for line in finder.lines {
            let message = "this test is ignored without a reason; write #[ignore = \"why\"]";
            findings.push(Finding::new(&file.path, line, message));
        }
    }
    findings
}

#[derive(Default)]
struct BareIgnores {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for BareIgnores {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if matches!(attribute.meta, syn::Meta::Path(_)) && attribute.path().is_ident("ignore") {
            self.lines.push(attribute.pound_token.span.start().line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_ignore_is_reported_and_one_with_a_reason_is_not() {
        let text =
            "#[test]\n#[ignore]\nfn a() {}\n#[test]\n#[ignore = \"needs a PMU\"]\nfn b() {}\n";
        let findings = check(&Repository::of(&[("a.rs", text)]));
        assert_eq!(
            findings
                .iter()
                .map(|finding| finding.line)
                .collect::<Vec<_>>(),
            [2]
        );
    }
}
