//! The star rule: a crate depends on `model` and never on its neighbour. `ARCHITECTURE.md` gives the reason and
//! shows the same table; `dependency_table` compares the two.

use crate::finding::Finding;
use crate::repository::{Package, Repository, Use};

/// The packages of ours that each package may use. `isotherm` joins them and is the only one whose tests may
/// use more; `runtime` is loaded into other programs and linked to none.
pub(crate) const MAY_USE: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("model", &[]),
    ("policy", &["model"]),
    ("pipeline", &["model", "policy"]),
    ("sim", &["model", "policy", "pipeline"]),
    ("sys", &[]),
    ("topology", &["model", "sys"]),
    ("symbols", &["model", "abi", "sys"]),
    ("observe", &["model", "abi", "sys", "symbols", "topology"]),
    ("act", &["model", "abi", "sys"]),
    ("profile", &["model", "sys"]),
    ("report", &["model"]),
    ("trace", &["model", "sys"]),
    ("runtime", &["abi", "sys"]),
    ("console", &["report"]),
    (
        "daemon",
        &[
            "model", "policy", "pipeline", "sys", "topology", "observe", "act", "report", "trace",
            "console",
        ],
    ),
    (
        "isotherm",
        &[
            "abi", "model", "policy", "pipeline", "sys", "symbols", "topology", "observe", "act",
            "profile", "report", "sim", "trace", "console", "daemon",
        ],
    ),
    ("movement", &["act", "model", "observe", "sys"]),
    // The test stand: its tests run our programs in the guest.
    ("vm", &["model", "sys", "act", "observe"]),
    ("skip", &[]),
    ("xtask", &[]),
];

/// Allowed for the tests of every crate: the record of tests that a machine cannot run.
const ANY_TEST_MAY_USE: &str = "skip";

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    repository
        .packages
        .iter()
        .flat_map(|package| check_package(repository, package))
        .collect()
}

/// The names that a package may use; none for a package that is not in the table.
pub(crate) fn allowed(package: &str) -> Option<&'static [&'static str]> {
    MAY_USE
        .iter()
        .find(|(name, _)| *name == package)
        .map(|(_, uses)| *uses)
}

fn check_package(repository: &Repository, package: &Package) -> Vec<Finding> {
    let Some(allowed) = allowed(&package.name) else {
        let message = format!(
            "the crate `{}` is not in the table of what a crate may use; add it to \
             xtask/src/rules/dependencies.rs and ARCHITECTURE.md",
            package.name
        );
        return vec![Finding::new(&package.manifest, 1, message)];
    };
    let forbidden = |used: &&Use| {
        let wider_for_tests =
            used.for_tests && (package.name == "isotherm" || used.name == ANY_TEST_MAY_USE);
        !allowed.contains(&used.name.as_str()) && !wider_for_tests
    };
    let finding = |used: &Use| {
        let may = match allowed {
            [] => "nothing of ours".to_owned(),
            names => names.join(", "),
        };
        let message = format!(
            "`{}` must not depend on `{}`; it may use {may}. Move what both need into `model`, or \
             the step that joins them into `pipeline` or `isotherm`",
            package.name, used.name
        );
        let line = dependency_line(repository, package, &used.name);
        Finding::new(&package.manifest, line, message)
    };
    package.uses.iter().filter(forbidden).map(finding).collect()
}

fn dependency_line(repository: &Repository, package: &Package, used: &str) -> usize {
    let text = repository
        .file(&package.manifest)
        .and_then(|file| file.text.as_deref());
    let is_entry = |line: &str| line.trim_start().starts_with(&format!("isotherm-{used}"));
    text.and_then(|text| text.lines().position(is_entry))
        .map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_package(name: &str, uses: &[(&str, bool)]) -> Repository {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text = "[dependencies]\nisotherm-sys.workspace = true\n";
        let mut repository = Repository::of(&[(&manifest, text)]);
        let uses = uses
            .iter()
            .map(|&(name, for_tests)| Use {
                name: name.to_owned(),
                for_tests,
            })
            .collect();
        repository.packages.push(Package {
            name: name.to_owned(),
            manifest,
            uses,
        });
        repository
    }

    #[test]
    fn a_stage_that_uses_its_neighbour_is_reported_with_both_names_and_what_it_may_use() {
        let findings = check(&with_package("policy", &[("model", false), ("sys", false)]));
        assert_eq!(findings.len(), 1);
        let text = findings[0].to_string();
        assert!(text.starts_with("crates/policy/Cargo.toml:2: "), "{text}");
        assert!(
            text.contains("`policy` must not depend on `sys`; it may use model."),
            "{text}"
        );
    }

    #[test]
    fn tests_of_a_stage_are_bound_by_the_same_rule() {
        assert_eq!(check(&with_package("act", &[("observe", true)])).len(), 1);
    }

    #[test]
    fn only_the_tests_of_the_command_line_may_use_the_runtime() {
        assert_eq!(check(&with_package("isotherm", &[("runtime", true)])), []);
        assert_eq!(
            check(&with_package("isotherm", &[("runtime", false)])).len(),
            1
        );
    }

    #[test]
    fn an_unknown_crate_is_reported() {
        let findings = check(&with_package("shortcut", &[]));
        assert!(
            findings[0]
                .message
                .contains("`shortcut` is not in the table")
        );
    }
}
