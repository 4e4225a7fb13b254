//! `isotherm status` prints the state of the daemon once, as text or JSON: its tiers, processes, moves and sources, the tiers of memory
//! ranges (`--maps`), or the heat (`--heat`), which `--page` writes as HTML for a browser.

use anyhow::Result;

use crate::cli::StatusArgs;
use crate::output;
use isotherm_console::shell_quoting;
use isotherm_console::terminal_width;
use isotherm_console::{Console, print};
use isotherm_daemon::socket::ask;
use isotherm_report::json_line::JsonLine;
use isotherm_report::watch_heat::HeatMap;
use isotherm_report::watch_maps::Maps;
use isotherm_report::watch_status::Status;

/// Queries the daemon and prints its answer.
///
/// # Errors
/// No daemon answers, or the page cannot be written.
pub(crate) fn run(args: &StatusArgs, console: Console) -> Result<()> {
    if args.heat || args.page.is_some() {
        return heat(args, console);
    }
    if args.maps {
        return maps(args, console);
    }
    let status: Status = ask(&args.socket)?;
    if args.json {
        return print(&(status.json_line() + "\n"));
    }
    print(&status.text(terminal_width()))?;
    console.next(&format!(
        "isotherm top{}",
        shell_quoting::socket(&args.socket)
    ));
    Ok(())
}

/// The tiers of memory ranges.
fn maps(args: &StatusArgs, console: Console) -> Result<()> {
    let mut maps: Maps = ask(&args.socket)?;
    if let Some(pid) = args.pid {
        maps.retain(pid);
        if maps.processes.is_empty() {
            anyhow::bail!(
                "process {pid} is not watched, or its first epoch has not ended; `isotherm status` lists the watched processes"
            );
        }
    }
    if args.json {
        return print(&(maps.json_line() + "\n"));
    }
    print(&maps.text())?;
    let socket = shell_quoting::socket(&args.socket);
    console.next(&format!("isotherm status{socket} --heat"));
    Ok(())
}

/// The accesses of the last epochs.
fn heat(args: &StatusArgs, console: Console) -> Result<()> {
    let map: HeatMap = ask(&args.socket)?;
    if args.json {
        return print(&(map.json_line() + "\n"));
    }
    if args.heat {
        print(&map.text(terminal_width()))?;
    }
    let Some(path) = &args.page else {
        let socket = shell_quoting::socket(&args.socket);
        console.next(&format!("isotherm status{socket} --page heat.html"));
        return Ok(());
    };
    output::write(path, map.html().as_bytes())?;
    console.info(&format!("open {} in a browser", path.display()));
    Ok(())
}
