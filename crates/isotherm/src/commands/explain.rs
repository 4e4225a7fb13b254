//! `isotherm explain`: the reason for a plan's decision about a site.

use anyhow::{Context, Result};
use isotherm_model::explain::explain;
use isotherm_model::plan::Plan;
use isotherm_report::words::clip;

use crate::cli::ExplainArgs;
use isotherm_console::print;

/// Prints the explanation.
///
/// # Errors
/// The plan cannot be read; no site, or several, match the name.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let plan = on_one_line(super::read_plan(&args.plan)?);
    let text = explain(&plan, &args.site).with_context(|| args.plan.display().to_string())?;
    print(&format!("{}\n", text.trim_end()))
}

/// The plan with its texts on one line each, so that none of them can imitate a line of the explanation.
fn on_one_line(mut plan: Plan) -> Plan {
    let clean = |text: &mut String| *text = clip(text, usize::MAX);
    for site in &mut plan.assignments {
        clean(&mut site.label);
        clean(&mut site.reason);
    }
    clean(&mut plan.policy);
    plan
}
