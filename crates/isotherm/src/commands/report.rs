//! `isotherm report`: shows a profile.

use anyhow::Result;

use isotherm_pipeline::site_bandwidths;
use isotherm_report::Report;

use crate::cli::ReportArgs;
use isotherm_console::shell_quoting;
use isotherm_console::{Console, print};

/// Writes the page, or prints text or JSON; a named file receives these instead.
///
/// # Errors
/// The profile or plan cannot be read, the file cannot be written.
pub(crate) fn run(args: &ReportArgs, console: Console) -> Result<()> {
    let (profile, warnings) = super::read_profile(&args.profile, console)?;
    let plan = args.plan.as_deref().map(super::read_plan).transpose()?;
    let plan_name = args.plan.as_ref().map(|path| path.display().to_string());
    let report = Report::new(&profile, plan.as_ref())
        .named(&args.profile.display().to_string(), plan_name.as_deref())
        .with_bandwidths(&site_bandwidths(&profile))
        .with_notes(warnings);
    if args.text || args.json {
        let text = if args.json {
            report.json()
        } else {
            report.text(isotherm_console::terminal_width())
        };
        let text = format!("{}\n", text.trim_end());
        return match &args.output {
            Some(target) => super::write_text(target, &text),
            None => print(&text),
        };
    }
    let target = args
        .output
        .clone()
        .unwrap_or_else(|| super::beside(&args.profile, "html"));
    super::write_text(&target, &report.html())?;
    if !super::is_standard_output(&target) {
        console.info(&format!("open {} in a browser", target.display()));
    }
    if plan.is_none() {
        let profile = shell_quoting::file(&args.profile);
        console.next(&format!("isotherm plan {profile} --fast 25%"));
    }
    Ok(())
}
