//! Lists the rules, one per file, and runs them all. A rule is a function from the repository to its violations.

mod dependencies;
mod file_names;
mod file_size;
mod import_circles;
mod layers;
mod lengths;
mod local_paths;
mod mentions;
mod one_name;
mod printing;
mod purity;
mod syntax;
mod unfinished;
mod unrecorded_skips;
mod unsafe_code;

use crate::finding::Finding;
use crate::repository::Repository;

/// A rule: returns the violations in this repository.
pub(crate) type Rule = fn(&Repository) -> Vec<Finding>;

/// All rules. A new one is added here, and has a test with an example that breaks it.
pub(crate) const ALL: &[Rule] = &[
    syntax::check,
    dependencies::check,
    layers::check,
    import_circles::check,
    one_name::check,
    purity::check,
    printing::check,
    unsafe_code::check,
    lengths::check,
    unfinished::check,
    unrecorded_skips::check,
    file_names::check,
    file_size::check,
    local_paths::check,
    mentions::check,
];

/// The findings of all rules, in the order of the files.
pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings: Vec<Finding> = ALL.iter().flat_map(|rule| rule(repository)).collect();
    findings.sort();
    findings.dedup();
    findings
}
