//! `isotherm doctor`: the features that work on this machine, and the needs of the others.

use std::path::Path;

use anyhow::Result;
use isotherm_observe::doctor::{Examination, FeatureState, Finding, Ranked, examine, sample_price};
use isotherm_observe::probe::KernelProbe;
use isotherm_report::table::{left, render};

use crate::cli::DoctorArgs;
use isotherm_console::{Console, print};

/// Prints the findings.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(args: &DoctorArgs, console: Console) -> Result<()> {
    let mut examination = examine(Path::new("/"));
    examination.findings.push(sample_price(&KernelProbe));
    if args.json {
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
        FeatureState::Available => "available",
        FeatureState::Degraded { .. } => "degraded",
        FeatureState::Missing { .. } => "missing",
    }
}

fn findings(examination: &Examination) -> String {
    let row = |finding: &Finding| {
        let words = match &finding.state {
            FeatureState::Available => finding.detail.clone(),
            FeatureState::Degraded { why, remedy } | FeatureState::Missing { why, remedy } => {
                format!("{why}; {remedy}")
            }
        };
        vec![
            finding.feature.to_owned(),
            word(&finding.state).to_owned(),
            words,
        ]
    };
    let rows: Vec<_> = examination.findings.iter().map(row).collect();
    render(
        &[left("feature"), left("state"), left("finding, and remedy")],
        &rows,
    )
}

fn ranking(examination: &Examination) -> String {
    let chosen = examination.chosen();
    let row = |ranked: &Ranked| {
        let state = match (chosen == Some(ranked.source), ranked.usable) {
            (true, _) => "used by default",
            (false, true) => "usable",
            (false, false) => "not usable",
        };
        vec![
            ranked.source.name().to_owned(),
            state.to_owned(),
            ranked.note.clone(),
        ]
    };
    let rows: Vec<_> = examination.ranking.iter().map(row).collect();
    render(
        &[left("profile source"), left("state"), left("note")],
        &rows,
    )
}

fn to_json(examination: &Examination) -> serde_json::Value {
    let finding = |finding: &Finding| {
        let (why, remedy) = match &finding.state {
            FeatureState::Available => (None, None),
            FeatureState::Degraded { why, remedy } | FeatureState::Missing { why, remedy } => {
                (Some(why), Some(remedy))
            }
        };
        serde_json::json!({
            "feature": finding.feature,
            "state": word(&finding.state),
            "detail": finding.detail,
            "why": why,
            "remedy": remedy,
        })
    };
    let chosen = examination.chosen();
    let source = |ranked: &Ranked| {
        serde_json::json!({
            "source": ranked.source.name(),
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
