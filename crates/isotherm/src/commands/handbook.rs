//! `isotherm completions` and `isotherm man`: made from the flag table, so they cannot drift.

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::{Cli, CompletionArgs, ManArgs};
use crate::notes::print;

/// Prints the completion script.
///
/// # Errors
/// Standard output is closed.
pub(crate) fn completions(args: &CompletionArgs) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "isotherm", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes one page a command.
///
/// # Errors
/// The directory cannot be made or written.
pub(crate) fn man(args: &ManArgs) -> Result<()> {
    let directory = &args.directory;
    let failed = || format!("{}: man pages cannot be written", directory.display());
    std::fs::create_dir_all(directory).with_context(failed)?;
    clap_mangen::generate_to(Cli::command(), directory).with_context(failed)
}
