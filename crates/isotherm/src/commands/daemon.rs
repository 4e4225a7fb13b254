//! `isotherm daemon`: watches the processes of this machine and keeps their hot memory fast.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cli::DaemonArgs;
use crate::daemon::config::COMMENTED;
use crate::daemon::service::{Options, run as serve};
use crate::notes::{Notes, print};

/// The configuration that is read where none is named, if it is there.
const CONFIG: &str = "/etc/isotherm/daemon.toml";

/// Runs the daemon in the foreground; systemd or a shell puts it elsewhere.
///
/// # Errors
/// As [`serve`].
pub(crate) fn run(args: &DaemonArgs, notes: Notes) -> Result<()> {
    if args.print_config {
        return print(COMMENTED);
    }
    let there = || Path::new(CONFIG).exists().then(|| PathBuf::from(CONFIG));
    let options = Options {
        config: args.config.clone().or_else(there),
        dry_run: args.dry_run,
        once: args.once,
    };
    serve(options, notes)
}
