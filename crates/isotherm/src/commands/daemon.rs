//! `isotherm daemon` starts the daemon, which keeps the hot memory of this machine's processes fast, restores what a killed one left
//! changed, replays a recording through the daemon's decisions, or prints the commented default configuration.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use isotherm_console::shell_quoting;

use crate::cli::DaemonArgs;
use crate::input::InputFormat;
use isotherm_console::{Console, print};
use isotherm_daemon::config::{COMMENTED, Config};
use isotherm_daemon::replay::{Recorded, run as replay};
use isotherm_daemon::service::{Options, run as serve};

/// The default configuration file, read if it exists.
const CONFIG: &str = "/etc/isotherm/daemon.toml";

/// Runs the daemon in the foreground (systemd or a shell puts it in the background), or on a recording.
///
/// # Errors
/// As [`serve`] and [`replay`].
pub(crate) fn run(args: &DaemonArgs, console: Console) -> Result<()> {
    if args.print_config {
        return print(COMMENTED);
    }
    let there = || Path::new(CONFIG).exists().then(|| PathBuf::from(CONFIG));
    let config = args.config.clone().or_else(there);
    if let Some(file) = &args.replay {
        let format = match args.format {
            None => None,
            Some(InputFormat::Other(format)) => Some(format),
            Some(InputFormat::Profile) => bail!(
                "{}: a profile has sums by site, which the daemon cannot use; `isotherm simulate` \
                 replays it",
                file.display()
            ),
        };
        let recorded = Recorded {
            file: file.clone(),
            format,
            fast: args.fast,
            accesses_per_sample: args.accesses_per_sample,
            verbose: args.verbose,
            json: args.json,
        };
        replay(&recorded, &Config::read(config.as_deref())?, console)?;
        console.next(&format!(
            "isotherm simulate {}{}",
            shell_quoting::file(file),
            args.format.map(InputFormat::option).unwrap_or_default()
        ));
        return Ok(());
    }
    let options = Options {
        config,
        dry_run: args.dry_run,
        verbose: args.verbose,
        once: args.once,
        restore: args.restore,
    };
    serve(options, console)
}
