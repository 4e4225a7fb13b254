//! `isotherm doctor` lists the features that work on this machine and the remedies for the others, and ranks the sources of profiles.

use std::path::Path;

use anyhow::Result;
use isotherm_observe::doctor::{Examination, FeatureState, Finding, Ranked, examine, sample_cost};
use isotherm_observe::probe::KernelProbe;
use isotherm_report::table::DataTable;

use crate::java;
use crate::python;
use isotherm_console::{Console, print};

/// Prints the findings.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(json: bool, console: Console) -> Result<()> {
    let mut examination = examine(Path::new("/"));
    let further = [
        ("price of a timer sample", sample_cost(&KernelProbe)),
        ("Java programs", java::support()),
        ("Python programs", python::support()),
    ];
    let finding = |(feature, state)| Finding { feature, state };
    examination.findings.extend(further.map(finding));
    if json {
        return print(&format!("{:#}\n", to_json(&examination)));
    }
    print(&format!(
        "{}\n{}",
        findings(&examination),
        ranking(&examination)
    ))?;
    console.next("isotherm record -o app.iso -- PROGRAM");
    Ok(())
}

const fn word(state: &FeatureState) -> &'static str {
    match state {
        FeatureState::Available(_) => "available",
        FeatureState::Degraded { .. } => "degraded",
        FeatureState::Missing { .. } => "missing",
    }
}

fn findings(examination: &Examination) -> String {
    let words = |finding: &Finding| match &finding.state {
        FeatureState::Available(detail) => detail.clone(),
        FeatureState::Degraded { why, remedy } | FeatureState::Missing { why, remedy } => {
            format!("{why}; {remedy}")
        }
    };
    DataTable::of(&examination.findings)
        .left("feature", |finding| finding.feature)
        .left("state", |finding| word(&finding.state))
        .left("finding, and remedy", words)
        .render()
}

fn ranking(examination: &Examination) -> String {
    let chosen = examination.chosen();
    let state = move |ranked: &Ranked| match (chosen == Some(ranked.source), ranked.usable) {
        (true, _) => "used by default",
        (false, true) => "usable",
        (false, false) => "not usable",
    };
    DataTable::of(&examination.ranking)
        .left("profile source", |ranked| ranked.source.word())
        .left("state", state)
        .left("note", |ranked| ranked.note.clone())
        .render()
}

fn to_json(examination: &Examination) -> serde_json::Value {
    let finding = |finding: &Finding| {
        let (why, remedy) = match &finding.state {
            FeatureState::Available(_) => (None, None),
            FeatureState::Degraded { why, remedy } | FeatureState::Missing { why, remedy } => {
                (Some(why), Some(remedy))
            }
        };
        serde_json::json!({
            "feature": finding.feature,
            "state": word(&finding.state),
            "detail": finding.state.detail(),
            "why": why,
            "remedy": remedy,
        })
    };
    let chosen = examination.chosen();
    let source = |ranked: &Ranked| {
        serde_json::json!({
            "source": ranked.source.word(),
            "usable": ranked.usable,
            "used_by_default": chosen == Some(ranked.source),
            "note": ranked.note,
        })
    };
    serde_json::json!({
        "findings": examination.findings.iter().map(finding).collect::<Vec<_>>(),
        "sources": examination.ranking.iter().map(source).collect::<Vec<_>>(),
    })
}
