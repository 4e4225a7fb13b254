//! `isotherm diff` prints how heat, sizes and times differ between two profiles, and returns status 3 if a condition of `--fail-if` holds.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_pipeline::site_pairs;
use isotherm_report::difference::ProfileDifference;

use crate::cli_diff::DiffArgs;
use isotherm_console::Console;

/// Exit status where a condition of `--fail-if` holds.
pub(crate) const CONDITION_HOLDS: i32 = 3;

/// Prints the difference. Returns the exit status of the command if a condition holds.
///
/// # Errors
/// A profile cannot be read, or the profiles cannot tell whether a condition holds.
pub(crate) fn run(args: &DiffArgs, console: Console) -> Result<Option<ExitStatus>> {
    let (before, _) = super::read_profile(&args.before, console)?;
    let (after, _) = super::read_profile(&args.after, console)?;
    let pairs = site_pairs(&before, &after);
    let names = [&args.before, &args.after].map(|path| path.display().to_string());
    let difference = ProfileDifference::new((&before, &after), &pairs, (&names[0], &names[1]))
        .judged(&args.fail_if);
    super::print_report(args.json, &difference, || {
        difference.text(isotherm_console::terminal_width())
    })?;
    let mut results = difference.conditions.iter();
    if let Some(unknown) = results.clone().find(|result| result.holds.is_none()) {
        bail!("--fail-if '{}': {}", unknown.condition, unknown.reason);
    }
    let holds = results.any(|result| result.holds == Some(true));
    // The status of a process that exits is in the second byte of what `wait` returns.
    Ok(holds.then(|| ExitStatus::from_raw(CONDITION_HOLDS << 8)))
}
