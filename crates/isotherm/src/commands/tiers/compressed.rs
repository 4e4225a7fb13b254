//! `isotherm tiers --make-compressed` sets up compressed memory (zram), and `--remove-compressed` removes it.

use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_act::zram::{self, SetupStep};
use isotherm_console::{Console, print};
use isotherm_model::units::Bytes;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli_tiers::CompressedMemory;
use crate::interrupt::Interrupt;

/// The smallest area; `mkswap` refuses less than ten pages.
const AT_LEAST: Bytes = Bytes(1 << 20);

/// Sets up or removes compressed memory, or prints the steps. Returns the exit status for a signal; the set-up that it interrupts is
/// undone.
///
/// # Errors
/// A step that failed; what was done before it is undone.
pub(super) fn run(
    args: &CompressedMemory,
    recorded: Option<&Path>,
    console: Console,
) -> Result<Option<ExitStatus>> {
    if recorded.is_some() && !args.dry_run {
        bail!("--root shows another machine, and only this one can be changed; add --dry-run");
    }
    let root = recorded.unwrap_or(Path::new("/"));
    match args.make_compressed {
        Some(size) => make(args, root, size, console),
        None => remove(args, root, console),
    }
}

fn make(
    args: &CompressedMemory,
    root: &Path,
    size: Bytes,
    console: Console,
) -> Result<Option<ExitStatus>> {
    if size < AT_LEAST {
        bail!("--make-compressed {size}: a swap area has at least {AT_LEAST}");
    }
    let steps = zram::set_up(root, size, args.compressor.as_deref())?;
    if args.dry_run {
        let steps: Vec<SetupStep> = steps.into_iter().map(|(step, _)| step).collect();
        print(&text(&steps))?;
        return Ok(None);
    }
    let interrupt = Interrupt::catch(&[SIGINT, SIGTERM])?;
    zram::carry_out(root, &steps)?;
    if let Some(status) = interrupt.status() {
        take(root, &zram::removal(root)?)?;
        console.warn("interrupted; nothing stays set up");
        return Ok(Some(status));
    }
    console.info(&format!(
        "pages of up to {size} can leave memory now; `isotherm tiers --remove-compressed` undoes it"
    ));
    console.next("isotherm tiers --measure");
    Ok(None)
}

fn remove(args: &CompressedMemory, root: &Path, console: Console) -> Result<Option<ExitStatus>> {
    let steps = zram::removal(root)?;
    if args.dry_run {
        print(&text(&steps))?;
        return Ok(None);
    }
    take(root, &steps)?;
    console.info("removed; its pages are back in memory");
    Ok(None)
}

fn take(root: &Path, steps: &[SetupStep]) -> Result<()> {
    for step in steps {
        zram::perform(root, step)?;
    }
    Ok(())
}

/// The steps, one a line.
fn text(steps: &[SetupStep]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}
