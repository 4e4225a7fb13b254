//! `isotherm status`: what the daemon does, once.

use anyhow::Result;

use crate::cli::StatusArgs;
use crate::commands::terminal_width;
use crate::daemon::socket::ask;
use crate::notes::{Notes, print};

/// Asks the daemon and prints its answer.
///
/// # Errors
/// No daemon answers.
pub(crate) fn run(args: &StatusArgs, notes: Notes) -> Result<()> {
    let mut answer = None;
    ask(&args.socket, "status", |status| {
        answer = Some(status);
        false
    })?;
    let Some(status) = answer else {
        anyhow::bail!(
            "{}: the daemon closed without an answer; ask again",
            args.socket.display()
        );
    };
    if args.json {
        return print(&(status.json_line() + "\n"));
    }
    print(&status.text(terminal_width()))?;
    notes.next("isotherm top");
    Ok(())
}
