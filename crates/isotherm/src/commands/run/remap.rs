//! `isotherm run --remap`: keeps the hot data of a program on as many memory devices of an emulated machine as its bandwidth needs.
//!
//! ```text
//! LiveRun --Batch, Segment, extents--> Remapping --RangeAction--> PageRequestWriter --session file--> runtime
//! ```

use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context, Result, bail};
use isotherm_act::dry_run::DryRun;
use isotherm_act::movement::page_requests::PageRequestWriter;
use isotherm_console::Console;
use isotherm_model::emulation::Emulation;
use isotherm_model::port::RangeExecutor;
use isotherm_model::tier::{TierKind, Tiers};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_pipeline::{AddedDevices, RemapSample, Remapping, Step, StepReport};
use isotherm_policy::energy::{Remap, RemapSettings};
use serde_json::{Value, json};

use super::prepared_run::{PreparedRun, conclude};
use crate::bandwidth_file;
use crate::cli::RunArgs;
use crate::launch::EndedProgram;
use crate::observed_run::{EndedRun, FollowUntil, ObservedRun, ObservedStep};
use crate::session_summary::recorded_sites;
use crate::tiers_choice;

/// The remapping of one run, and what it did.
struct RemapRun {
    remapping: Remapping,
    executor: Box<dyn RangeExecutor>,
    samples: Vec<RemapSample>,
    added: Vec<AddedDevices>,
    requested: Bytes,
}

/// Runs the program with the bandwidth model of this file.
///
/// # Errors
/// The model cannot be read, the tiers are not emulated by time, and as a run without a plan.
pub(super) fn run(args: &RunArgs, model: &Path, console: Console) -> Result<ExitStatus> {
    let model = bandwidth_file::read(model).context("--remap")?;
    let tiers = tiers_choice::for_run(&args.tiers, console)?;
    check(&tiers)?;
    let PreparedRun {
        observing,
        ready,
        observer,
        meta,
        profile,
    } = PreparedRun::new(args, &tiers, &[], console)?;
    let sessions = ready.session.path().to_owned();
    let mut remap = RemapRun {
        remapping: Remapping::new(model, RemapSettings::default(), args.device_capacity),
        executor: match args.dry_run {
            true => Box::new(DryRun),
            false => Box::new(PageRequestWriter::new(sessions)),
        },
        samples: Vec::new(),
        added: Vec::new(),
        requested: Bytes::ZERO,
    };
    let step = Step::new(observer, DryRun, profile, &meta, None);
    let mut run = ObservedRun::start(ready, step, observing.epoch, console)?;
    run.follow(
        FollowUntil::End,
        &mut |report: &StepReport<_>, step: &mut ObservedStep<_>| remap.note(report, step),
    )?;
    let EndedRun {
        program, profile, ..
    } = run.finish()?;
    console.info(&remap.in_words(&program, &tiers));
    let summary = remap.summary(&program);
    Ok(conclude(args, &program, profile, summary, console))
}

/// Refuses tiers whose pages cannot be moved by request, or whose bytes are not counted.
fn check(tiers: &Tiers) -> Result<()> {
    let is_timed = |kind: &TierKind| matches!(kind, TierKind::EmulatedSlow(Emulation::Time(_)));
    if tiers.all().iter().any(|tier| is_timed(&tier.kind)) {
        return Ok(());
    }
    bail!(
        "--remap: the fast tier of a machine that is emulated by time stands for the first memory device, and the slow tier for the \
         others; add --tiers emulated:L:1,B:1,fast-limit:1GiB/s,limit:3GiB/s with the bandwidths of your devices"
    )
}

impl RemapRun {
    fn note<F>(&mut self, report: &StepReport<F>, step: &ObservedStep<DryRun>) {
        let extents = step.attribution().extents();
        let decision = self
            .remapping
            .decide(&report.batch, &report.segment, extents);
        self.samples.extend(decision.sample);
        self.added.extend(decision.added);
        let moved = decision.actions.iter().map(|action| action.range.bytes);
        self.requested += moved.sum::<Bytes>();
        // What is not obeyed shows in the bandwidth of the next samples.
        self.executor.execute(&decision.actions);
    }

    fn remaps(&self) -> impl Iterator<Item = &RemapSample> {
        let samples = self.samples.iter();
        samples.filter(|sample| sample.remap != Remap::Stay)
    }

    fn in_words(&self, program: &EndedProgram, tiers: &Tiers) -> String {
        let took = program.summary.took("remapped", program.took, tiers);
        if !program.summary.worked() {
            return took;
        }
        let is_undo = |sample: &&RemapSample| matches!(sample.remap, Remap::Undo { .. });
        let (undone, remaps) = (self.remaps().filter(is_undo).count(), self.remaps().count());
        let added = match self.added.len() {
            0 => String::new(),
            times => format!(", devices added {} for its size", counted(times, "time")),
        };
        format!(
            "{took}: {} ({undone} undone){added}, hot data on {} at the end, {} asked to move",
            counted(remaps, "remap"),
            counted(self.remapping.devices(), "device"),
            self.requested
        )
    }

    fn summary(&self, program: &EndedProgram) -> Value {
        let worked = program.summary.worked();
        json!({
            "mode": "remap",
            "placed": worked,
            "emulated": worked,
            "seconds": program.took.0 as f64 / 1e9,
            "devices": self.remapping.devices(),
            "samples": self.samples.iter().map(|sample| sample.bandwidth).collect::<Vec<_>>(),
            "remaps": self.remaps().map(remap_json).collect::<Vec<_>>(),
            "added": self.added.iter().map(added_json).collect::<Vec<_>>(),
            "requested_bytes": self.requested.0,
            "runtime": program.summary.to_json(recorded_sites(&program.session).len()),
        })
    }
}

fn added_json(added: &AddedDevices) -> Value {
    json!({
        "seconds": added.at.0 as f64 / 1e9,
        "hot_bytes": added.hot.0,
        "from_devices": added.from,
        "to_devices": added.to,
    })
}

fn remap_json(sample: &RemapSample) -> Value {
    let (from, to, is_undo) = match sample.remap {
        Remap::Stay => (0, 0, false),
        Remap::To { from, to } => (from, to, false),
        Remap::Undo { from, to } => (from, to, true),
    };
    json!({
        "seconds": sample.at.0 as f64 / 1e9,
        "bytes_per_second": sample.bandwidth,
        "from_devices": from,
        "to_devices": to,
        "undo": is_undo,
    })
}
