//! `isotherm explain`: why a site is where a plan puts it.

use anyhow::{Context, Result};
use isotherm_model::explain::explain;

use crate::cli::ExplainArgs;
use crate::notes::print;

/// Prints the explanation.
///
/// # Errors
/// The plan cannot be read; no site, or several, answer to the name.
pub(crate) fn run(args: &ExplainArgs) -> Result<()> {
    let plan = super::read_plan(&args.plan)?;
    let text = explain(&plan, &args.site).with_context(|| args.plan.display().to_string())?;
    print(&format!("{}\n", text.trim_end()))
}
