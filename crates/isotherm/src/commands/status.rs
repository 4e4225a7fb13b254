//! `isotherm status`: what the daemon does, once.

use anyhow::Result;

use crate::cli::StatusArgs;
use crate::commands::terminal_width;
use crate::daemon::socket::{ask, ask_heat, ask_maps};
use crate::hint;
use crate::notes::{Notes, print};
use crate::output;

/// Asks the daemon and prints its answer.
///
/// # Errors
/// No daemon answers, or the page cannot be written.
pub(crate) fn run(args: &StatusArgs, notes: Notes) -> Result<()> {
    if args.heat || args.page.is_some() {
        return heat(args, notes);
    }
    if args.maps {
        return maps(args, notes);
    }
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
    notes.next(&format!("isotherm top{}", hint::socket(&args.socket)));
    Ok(())
}

/// Where memory lies.
fn maps(args: &StatusArgs, notes: Notes) -> Result<()> {
    let mut maps = ask_maps(&args.socket)?;
    if let Some(pid) = args.pid {
        maps.retain(pid);
        if maps.processes.is_empty() {
            anyhow::bail!(
                "process {pid} is not watched, or no epoch has ended since it is; `isotherm status` lists those that are"
            );
        }
    }
    if args.json {
        return print(&(maps.json_line() + "\n"));
    }
    print(&maps.text())?;
    let socket = hint::socket(&args.socket);
    notes.next(&format!("isotherm status{socket} --heat"));
    Ok(())
}

/// What was seen in the last epochs.
fn heat(args: &StatusArgs, notes: Notes) -> Result<()> {
    let map = ask_heat(&args.socket)?;
    if args.json {
        return print(&(map.json_line() + "\n"));
    }
    if args.heat {
        print(&map.text(terminal_width()))?;
    }
    let Some(path) = &args.page else {
        let socket = hint::socket(&args.socket);
        notes.next(&format!("isotherm status{socket} --page heat.html"));
        return Ok(());
    };
    let page = map.html().map_err(anyhow::Error::msg)?;
    output::write(path, page.as_bytes())?;
    notes.say(&format!("open {} in a browser", path.display()));
    Ok(())
}
