//! Unsafe code is limited to three crates, and each use has a SAFETY argument.

use crate::finding::Finding;
use crate::repository::Repository;
use crate::tokens::{self, Unsafe};

/// The crates that may hold unsafe code: the kernel interface, the shared records, and the allocator inside
/// other programs.
const MAY_BE_UNSAFE: &[&str] = &["abi", "sys", "runtime"];

/// How far above the word `unsafe` its argument may end. More than one line, because a statement
/// may begin a few lines before the word.
const REACH: usize = 3;

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in repository.rust_sources() {
        let Some(name) = file.crate_name() else {
            continue;
        };
        let lines: Vec<&str> = file.text.as_deref().unwrap_or_default().lines().collect();
        for spot in tokens::unsafe_uses(&source.tokens) {
            let message = if !MAY_BE_UNSAFE.contains(&name) {
                let homes = MAY_BE_UNSAFE.join(", ");
                format!("`{name}` must not hold unsafe code; put a safe wrapper into {homes}")
            } else if spot.what == Unsafe::Claim && !has_argument(&lines, spot.line) {
                format!(
                    "this unsafe code lacks its argument; write // SAFETY: why it is needed and \
                     sound, in a comment that ends at most {REACH} lines above"
                )
            } else {
                continue;
            };
            findings.push(Finding::new(&file.path, spot.line, message));
        }
    }
    findings
}

/// Whether a comment with `SAFETY:` is on the line, or ends within reach above it.
fn has_argument(lines: &[&str], line: usize) -> bool {
    let index = line - 1;
    let comment = |at: usize| lines[at].trim_start().starts_with("//");
    if lines
        .get(index)
        .is_some_and(|text| text.contains("// SAFETY:"))
    {
        return true;
    }
    let Some(end) = (index.saturating_sub(REACH)..index)
        .rev()
        .find(|&at| comment(at))
    else {
        return false;
    };
    (0..=end)
        .rev()
        .take_while(|&at| comment(at))
        .any(|at| lines[at].contains("// SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Repository::of(&[(path, text)]))
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn unsafe_code_outside_its_crates_is_reported_with_or_without_argument() {
        let text =
            "fn f() {\n    // SAFETY: none needed.\n    unsafe { g() }\n}\nunsafe fn h() {}\n";
        assert_eq!(lines("crates/observe/src/a.rs", text), [3, 5]);
    }

    #[test]
    fn a_claim_without_an_argument_is_reported() {
        assert_eq!(
            lines("crates/sys/src/a.rs", "fn f() {\n    unsafe { g() }\n}\n"),
            [2]
        );
        let far = "// SAFETY: too far away.\nfn f() {\n    a();\n    b();\n    unsafe { g() }\n}\n";
        assert_eq!(lines("crates/sys/src/a.rs", far), [5]);
        assert_eq!(
            lines("crates/sys/src/a.rs", "unsafe impl Send for S {}\n"),
            [1]
        );
    }

    #[test]
    fn a_long_argument_that_ends_within_reach_is_enough() {
        let text = "fn f() {\n    // SAFETY: one,\n    // two,\n    // three,\n    // four.\n    \
                    let x =\n        unsafe { g() };\n}\n";
        assert_eq!(lines("crates/runtime/src/a.rs", text), [0; 0]);
    }

    #[test]
    fn a_declaration_passes_the_duty_on_and_needs_no_argument() {
        assert_eq!(
            lines("crates/abi/src/a.rs", "pub unsafe fn f() {}\n"),
            [0; 0]
        );
    }
}
