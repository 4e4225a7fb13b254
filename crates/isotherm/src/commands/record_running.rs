//! `isotherm record --pid` profiles a process that runs already, until the process ends, a signal arrives or a given time is over.

use anyhow::{Result, bail};
use isotherm_act::dry_run::DryRun;
use isotherm_console::Console;
use isotherm_pipeline::Step;
use isotherm_profile::FinishOutcome;

use super::create_profile;
use super::record::{Totals, announce};
use crate::attached::{Attached, AttachedEnd};
use crate::cli::RecordArgs;
use crate::observed_run::{EndedRun, ObservedRun};
use crate::recording;
use crate::running_process::RunningProcess;

/// Records a process. It runs on as before.
///
/// # Errors
/// The process cannot be recorded, the profile cannot be begun or finished.
pub(crate) fn run(args: &RecordArgs, pid: u32, console: Console) -> Result<()> {
    recording::check(&args.observing)?;
    let process = RunningProcess::find(pid)?;
    let observing = &recording::with_sources_for(&process, &args.observing, console)?;
    let meta = recording::meta(&process.words, observing, false);
    let observer = recording::attach_running(&process, observing)?;
    let writer = create_profile(&args.output, &meta, args.force)?;
    let shown = process.shown();
    let sites = with_sites(&process);
    let attached = Attached::new(process.handle, args.attaching.span)?;
    console.info(&format!("recording process {shown}{sites}; Ctrl-C ends it"));
    let step = Step::new(observer, DryRun, Some(writer), &meta, None);
    let (start, root) = (|| Ok(attached), process.root);
    let run = ObservedRun::start(start, root, step, observing.epoch, console)?;
    let mut totals = Totals::default();
    let EndedRun {
        program: end,
        sites,
        profile,
    } = run.complete(|report, _| totals.add(&report.segment))?;
    if profile? != Some(FinishOutcome::New) {
        bail!("process {shown}: ended before anything of it was recorded");
    }
    console.info(&match end {
        AttachedEnd::Process => format!("process {shown} ended"),
        AttachedEnd::Time | AttachedEnd::Signal => format!("process {shown} runs on"),
    });
    announce(args, &totals, &sites, &meta, console);
    Ok(())
}

/// The sites that will be known, as the end of a message.
fn with_sites(process: &RunningProcess) -> &'static str {
    match process.session {
        Some(_) => " with its allocation sites",
        None => {
            " by its variables and mappings: it runs without Isotherm, so its heap has no sites"
        }
    }
}
