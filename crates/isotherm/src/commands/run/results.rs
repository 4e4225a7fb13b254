//! What a run leaves and what it says at its end.

use anyhow::Result;
use isotherm_console::{Console, shell_quoting};

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
