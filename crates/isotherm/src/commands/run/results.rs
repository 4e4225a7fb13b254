//! What a run leaves and what it says at its end.

use anyhow::Result;
use isotherm_console::{Console, shell_quoting};
use isotherm_model::words::counted;
use isotherm_report::optimizations::OptimizationSummary;

use crate::cli::RunArgs;
use crate::output;

/// Writes the summary, if the flags name a file.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write_summary(args: &RunArgs, summary: &serde_json::Value) -> Result<()> {
    let Some(path) = &args.summary else {
        return Ok(());
    };
    output::write(path, format!("{summary:#}\n").as_bytes())
}

/// Says what to do next.
pub(super) fn say_next(args: &RunArgs, console: Console) {
    console.next(&match &args.output {
        Some(path) => format!("isotherm report {}", shell_quoting::file(path)),
        None => "isotherm record -o app.iso -- PROGRAM, to see what was hot".to_owned(),
    });
}

/// What was moved at the program's request; `None` where it asked for nothing.
pub(super) fn requested(done: &[OptimizationSummary]) -> Option<String> {
    let last = done.last()?;
    let count = counted(done.len(), "optimization");
    let last = last.in_words();
    Some(match done.len() {
        1 => format!("{count} at the program's request: {last}"),
        _ => format!("{count} at the program's request, the last {last}"),
    })
}
