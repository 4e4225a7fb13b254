//! The table of crates in `ARCHITECTURE.md` matches the check: the same crates, with the same words under "may
//! use".

use std::collections::BTreeSet;

use super::dependencies;
use crate::finding::Finding;
use crate::repository::Repository;

const PAGE: &str = "ARCHITECTURE.md";
const HEADER: &[&str] = &["crate", "holds", "may use"];

/// One row: a crate and the page's list of crates that it may use.
struct Row {
    line: usize,
    name: String,
    may_use: BTreeSet<String>,
}

pub(crate) fn check(repository: &Repository) -> Vec<Finding> {
    let Some(text) = repository.file(PAGE).and_then(|file| file.text.as_deref()) else {
        return vec![Finding::new(
            PAGE,
            1,
            "is missing; it holds the table of the crates",
        )];
    };
    let rows = table_rows(text);
    if rows.is_empty() {
        let message =
            "has no table `| crate | holds | may use |`; it shows what the check enforces";
        return vec![Finding::new(PAGE, 1, message)];
    }
    let mut findings: Vec<Finding> = rows.iter().filter_map(check_row).collect();
    for package in repository
        .packages
        .iter()
        .filter(|p| p.manifest.starts_with("crates/"))
    {
        if !rows.iter().any(|row| row.name == package.name) {
            let message = format!("the table lacks the crate `{}`; add its row", package.name);
            findings.push(Finding::new(PAGE, rows[0].line, message));
        }
    }
    for row in &rows {
        if !repository
            .packages
            .iter()
            .any(|package| package.name == row.name)
        {
            let message = format!(
                "the table names `{}`, which is no crate; remove it",
                row.name
            );
            findings.push(Finding::new(PAGE, row.line, message));
        }
    }
    findings
}

/// Whether a row allows the same crates as the check. A crate unknown to the check is reported elsewhere.
fn check_row(row: &Row) -> Option<Finding> {
    let enforced: BTreeSet<String> = dependencies::allowed(&row.name)?
        .iter()
        .map(|&name| name.to_owned())
        .collect();
    if row.may_use == enforced {
        return None;
    }
    let message = format!(
        "`{}` may use {}, but the table says {}; make them agree (xtask/src/rules/dependencies.rs)",
        row.name,
        listed(&enforced),
        listed(&row.may_use)
    );
    Some(Finding::new(PAGE, row.line, message))
}

fn listed(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "nothing".to_owned(),
        false => names
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The rows below the header line, up to the first line that is not a table row.
fn table_rows(text: &str) -> Vec<Row> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, cells(line)));
    lines
        .skip_while(|(_, cells)| cells != HEADER)
        .skip(2)
        .take_while(|(_, cells)| cells.len() == HEADER.len())
        .filter_map(|(line, cells)| {
            let name = code_spans(cells[0]).into_iter().next()?;
            Some(Row {
                line,
                name,
                may_use: code_spans(cells[2]),
            })
        })
        .collect()
}

fn cells(line: &str) -> Vec<&str> {
    match line
        .trim()
        .strip_prefix('|')
        .and_then(|rest| rest.strip_suffix('|'))
    {
        Some(inner) => inner.split('|').map(str::trim).collect(),
        None => Vec::new(),
    }
}

/// The words between backticks: every second piece.
fn code_spans(cell: &str) -> BTreeSet<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::Package;

    fn repository(rows: &str, packages: &[&str]) -> Repository {
        let page =
            format!("# Crates\n\n| crate | holds | may use |\n|---|---|---|\n{rows}\nEnd.\n");
        let mut repository = Repository::of(&[(PAGE, &page)]);
        for name in packages {
            repository.packages.push(Package {
                name: (*name).to_owned(),
                manifest: format!("crates/{name}/Cargo.toml"),
                uses: Vec::new(),
            });
        }
        repository
    }

    const MODEL: &str = "| `model` | values | nothing |\n";

    #[test]
    fn a_table_that_agrees_passes() {
        let rows = format!("{MODEL}| `policy` | plans | `model` |\n");
        assert_eq!(check(&repository(&rows, &["model", "policy"])), []);
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_reported() {
        let findings = check(&repository(MODEL, &["model", "policy"]));
        assert!(
            findings[0].message.contains("lacks the crate `policy`"),
            "{findings:?}"
        );
        let findings = check(&repository(
            &format!("{MODEL}| `abi` | x | nothing |\n"),
            &["model"],
        ));
        assert_eq!(findings[0].line, 6);
        assert!(
            findings[0].message.contains("`abi`, which is no crate"),
            "{findings:?}"
        );
    }

    #[test]
    fn a_row_that_allows_more_than_the_check_is_reported() {
        let rows = format!("{MODEL}| `policy` | plans | `model`, `sys` |\n");
        let findings = check(&repository(&rows, &["model", "policy"]));
        assert_eq!(findings.len(), 1);
        let message = &findings[0].message;
        assert!(message.starts_with("`policy` may use model, but the table says model, sys"));
    }

    #[test]
    fn a_page_without_the_table_is_reported() {
        assert_eq!(check(&Repository::of(&[(PAGE, "# Crates\n")])).len(), 1);
        assert_eq!(check(&Repository::of(&[])).len(), 1);
    }
}
