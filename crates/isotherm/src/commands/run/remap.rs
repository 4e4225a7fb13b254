//! `run` carries out `isotherm run --remap`: it keeps the hot data of a program on as few memory devices as its bandwidth and, with
//! `--device-capacity`, its size need. The devices are the emulated pair: its fast tier stands for the first one, its slow tier for all
//! others. `read_model` and `device_count` serve runs with `--java`, too.
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
use isotherm_model::tier::Tiers;
use isotherm_model::units::Bytes;
use isotherm_pipeline::{DeviceCount, Remapping, StepReport};
use isotherm_policy::energy::{BandwidthModel, RemapSettings};

use super::device_changes::DeviceChanges;
use super::prepared_run::{PreparedRun, conclude};
use crate::bandwidth_file;
use crate::cli::RunArgs;
use crate::observed_run::ObservedStep;
use crate::tiers_choice::{self, ShareBase};

/// The remapping of one run, and what it did.
struct RemapRun {
    remapping: Remapping,
    executor: Box<dyn RangeExecutor>,
    changes: DeviceChanges,
    requested: Bytes,
}

/// Runs the program with the bandwidth model of this file.
///
/// # Errors
/// The model cannot be read, the tiers are not emulated by time, and as a run without a plan.
pub(super) fn run(args: &RunArgs, model: &Path, console: Console) -> Result<ExitStatus> {
    let model = read_model(model)?;
    let tiers = tiers_choice::for_run(&args.tiers, ShareBase::Machine, console)?;
    let count = device_count(model, args.device_capacity, &tiers)?;
    let prepared = PreparedRun::new(args, &tiers, &[], console)?;
    let sessions = prepared.ready.session.path().to_owned();
    let mut remap = RemapRun {
        remapping: Remapping::new(count),
        executor: match args.dry_run {
            true => Box::new(DryRun),
            false => Box::new(PageRequestWriter::new(sessions)),
        },
        changes: DeviceChanges::default(),
        requested: Bytes::ZERO,
    };
    let run = prepared.begin(DryRun, None, console)?;
    let ended = run.complete(|report, step| remap.note(report, step))?;
    let said = ended
        .program
        .in_words("remapped", &tiers, &remap.in_words());
    console.info(&said);
    let mut figures = remap.changes.to_json(remap.remapping.devices());
    figures["requested_bytes"] = remap.requested.0.into();
    Ok(conclude(args, ended, ("remap", true, figures), console))
}

/// The bandwidth model in this file.
///
/// # Errors
/// The file cannot be read, or is no model.
pub(super) fn read_model(path: &Path) -> Result<BandwidthModel> {
    bandwidth_file::read(path).context("--remap")
}

/// The devices of hot data by this model.
///
/// # Errors
/// The tiers are not emulated by time.
pub(super) fn device_count(
    model: BandwidthModel,
    capacity: Option<Bytes>,
    tiers: &Tiers,
) -> Result<DeviceCount> {
    check(tiers)?;
    Ok(DeviceCount::new(model, RemapSettings::default(), capacity))
}

/// Refuses tiers whose pages cannot be moved by request, or whose bytes are not counted.
fn check(tiers: &Tiers) -> Result<()> {
    if matches!(tiers.emulation(), Some(Emulation::Time(_))) {
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
        self.changes.note(decision.devices);
        let moved = decision.actions.iter().map(|action| action.range.bytes);
        self.requested += moved.sum::<Bytes>();
        // Moves that are not made show in the bandwidth of the next samples.
        self.executor.execute(&decision.actions);
    }

    fn in_words(&self) -> String {
        let changes = self.changes.in_words(self.remapping.devices());
        format!("{changes}, {} asked to move", self.requested)
    }
}
