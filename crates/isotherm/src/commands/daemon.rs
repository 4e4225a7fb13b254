//! `isotherm daemon`: watches the processes of this machine and keeps their hot memory fast.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::cli::DaemonArgs;
use crate::daemon::config::{COMMENTED, Config};
use crate::daemon::replay::{Recorded, run as replay};
use crate::daemon::service::{Options, run as serve};
use crate::notes::{Notes, print};

/// The configuration that is read where none is named, if it is there.
const CONFIG: &str = "/etc/isotherm/daemon.toml";

/// Runs the daemon in the foreground; systemd or a shell puts it elsewhere. Or has it watch a recording.
///
/// # Errors
/// As [`serve`] and [`replay`].
pub(crate) fn run(args: &DaemonArgs, notes: Notes) -> Result<()> {
    if args.print_config {
        return print(COMMENTED);
    }
    let there = || Path::new(CONFIG).exists().then(|| PathBuf::from(CONFIG));
    let config = args.config.clone().or_else(there);
    if let Some(file) = &args.replay {
        let recorded = Recorded {
            file: file.clone(),
            format: args.format,
            fast: args.fast,
            accesses_per_sample: args.accesses_per_sample,
            json: args.json,
        };
        return replay(&recorded, &Config::read(config.as_deref())?, notes);
    }
    let options = Options {
        config,
        dry_run: args.dry_run,
        once: args.once,
    };
    serve(options, notes)
}
