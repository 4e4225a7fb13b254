//! A crate depends only on the crates that the table in `ARCHITECTURE.md` allows it: on `model`, and on few others.
//! This rule compares the table with the packages. `isotherm` joins the crates and is the only one whose tests may
//! use more, but for `skip`, which the tests of every crate may use.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::repository::{Package, Repository, Use};

const PAGE: &str = "ARCHITECTURE.md";
const HEADER: &[&str] = &["crate", "holds", "may use"];

/// Allowed for the tests of every crate: the record of tests that a machine cannot run.
const ANY_TEST_MAY_USE: &str = "skip";

/// One row of the table: its line, and the crates that may be used.
struct Row {
    line: usize,
    may_use: BTreeSet<String>,
}

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let page = repository.file(PAGE).and_then(|file| file.text.as_deref());
    let table = table(page.unwrap_or_default());
    if table.is_empty() {
        let message =
            "has no table `| crate | holds | may use |`, which says what each crate may use";
        return vec![Finding::new(PAGE, 1, message)];
    }
    let is_package = |name: &&String| {
        repository
            .packages
            .iter()
            .any(|package| package.name == **name)
    };
    let surplus = table
        .iter()
        .filter(|(name, _)| !is_package(name))
        .map(|(name, row)| {
            let message = format!("the table names `{name}`, which is no crate; remove it");
            Finding::new(PAGE, row.line, message)
        });
    let packages = repository.packages.iter();
    let wrong =
        packages.flat_map(|package| check_package(repository, package, table.get(&package.name)));
    surplus.chain(wrong).collect()
}

fn check_package(repository: &Repository, package: &Package, row: Option<&Row>) -> Vec<Finding> {
    let Some(Row { may_use, .. }) = row else {
        let message = format!(
            "the crate `{}` is not in the table of {PAGE}; add its row",
            package.name
        );
        return vec![Finding::new(&package.manifest, 1, message)];
    };
    let forbidden = |used: &&Use| {
        let wider_for_tests = used.kind.as_deref() == Some("dev")
            && (package.name == "isotherm" || used.name == ANY_TEST_MAY_USE);
        !may_use.contains(&used.name) && !wider_for_tests
    };
    let finding = |used: &Use| {
        let names: Vec<&str> = may_use.iter().map(String::as_str).collect();
        let may = match names.as_slice() {
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

/// The rows below the header line, by crate, up to the first line that is not a table row.
fn table(text: &str) -> BTreeMap<String, Row> {
    let lines = text.lines().map(cells).zip(1..);
    lines
        .skip_while(|(cells, _)| cells != HEADER)
        .skip(2)
        .take_while(|(cells, _)| cells.len() == HEADER.len())
        .filter_map(|(cells, line)| {
            let may_use = code_spans(cells[2]).collect();
            Some((code_spans(cells[0]).next()?, Row { line, may_use }))
        })
        .collect()
}

fn cells(line: &str) -> Vec<&str> {
    let inner = line
        .trim()
        .strip_prefix('|')
        .and_then(|rest| rest.strip_suffix('|'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').map(str::trim).collect())
}

/// The words between backticks: every second piece.
fn code_spans(cell: &str) -> impl Iterator<Item = String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# Crates\n\n| crate | holds | may use |\n|---|---|---|\n\
         | `model` | values | nothing |\n| `policy` | plans | `model` |\n\
         | `act` | moves | `model`, `abi`, `sys` |\n| `isotherm` | commands | `model` |\nEnd.\n";

    fn package(name: &str, uses: &[(&str, bool)]) -> Package {
        let uses = uses.iter().map(|&(name, for_tests)| Use {
            name: name.to_owned(),
            kind: for_tests.then(|| "dev".to_owned()),
            ..Use::default()
        });
        Package {
            name: name.to_owned(),
            manifest: format!("crates/{name}/Cargo.toml"),
            uses: uses.collect(),
        }
    }

    /// The crates of the table, of which one has these dependencies.
    fn with_package(name: &str, uses: &[(&str, bool)]) -> Repository {
        let manifest = format!("crates/{name}/Cargo.toml");
        let text = "[dependencies]\nisotherm-sys.workspace = true\n";
        let mut repository = Repository::of(&[(&manifest, text), (PAGE, TABLE)]);
        let others = ["model", "policy", "act", "isotherm"];
        let others = others.iter().filter(|other| **other != name);
        repository
            .packages
            .extend(others.map(|other| package(other, &[])));
        repository.packages.push(package(name, uses));
        repository
    }

    #[test]
    fn a_table_that_agrees_passes() {
        assert_eq!(check(&with_package("policy", &[("model", false)])), []);
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
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_reported() {
        let findings = check(&with_package("shortcut", &[]));
        assert!(
            findings[0]
                .message
                .contains("`shortcut` is not in the table")
        );
        let mut repository = with_package("policy", &[]);
        repository.packages.retain(|package| package.name != "act");
        let findings = check(&repository);
        assert_eq!(findings[0].line, 7);
        assert!(
            findings[0].message.contains("`act`, which is no crate"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_page_without_the_table_is_reported() {
        assert_eq!(check(&Repository::of(&[(PAGE, "# Crates\n")])).len(), 1);
        assert_eq!(check(&Repository::of(&[])).len(), 1);
    }
}
