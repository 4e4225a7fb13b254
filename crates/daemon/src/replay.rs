//! `isotherm daemon --replay`: runs the accesses of a recording, epoch by epoch, through the daemon's own decision step, which counts each
//! move as made, and prints the moves of each epoch and the last status, or as JSON the status of each epoch.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use isotherm_model::tier::{Tier, TierKind, Tiers};
use isotherm_model::units::{Bytes, Capacity};
use isotherm_pipeline::EpochReport;
use isotherm_report::json_line::JsonLine;
use isotherm_report::watch_status::Status;
use isotherm_report::words::percent;
use isotherm_trace::{Cut, Format, Grain, Replay};

use crate::config::Config;
use crate::dry_run::DryRun;
use crate::machine_tiers::MachineTiers;
use crate::service::{limits, step};
use crate::status::StatusBuilder;
use isotherm_console::{Console, print, terminal_width};

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The recording.
    pub file: PathBuf,
    /// Its format; None to detect it from the content.
    pub format: Option<Format>,
    /// Size of fast memory, in place of `memory.fast`.
    pub fast: Option<Capacity>,
    /// Accesses for which a sample stands.
    pub accesses_per_sample: u64,
    /// Print each range that would have been moved.
    pub verbose: bool,
    /// Print a line of JSON an epoch instead of text.
    pub json: bool,
}

/// Replays a recording and prints the output of a dry run: the moves of each epoch, and the status of
/// the last one.
///
/// # Errors
/// The configuration or the recording cannot be read, or is not valid, or the policy needs the loads of the tiers.
pub fn run(recorded: &Recorded, config: &Config, console: Console) -> Result<()> {
    if config.balances() {
        bail!(
            "policy = \"balance\": each move answers what the move before it changed, and a recording never changes; name another policy, or \
             run a program by it: isotherm run --policy balance"
        );
    }
    let cut = Cut {
        unit: config.memory.unit.0,
        epoch: config.epoch.0,
        capacity: Bytes::ZERO,
    };
    let progress = console.progress("reading the recording");
    // A share refers to all accessed memory, which is known at the end only.
    let mut whole = open(recorded, cut)?;
    for seen in &mut whole {
        seen?;
    }
    let footprint = whole.footprint();
    let capacity = recorded.fast.unwrap_or(config.memory.fast.0).of(footprint);
    let places = MachineTiers::imagined(imagined(capacity, footprint)?);
    config.check_floors(capacity)?;
    let mut step = step(true, config, &places);
    let mut status_builder = StatusBuilder::new(Status {
        dry_run: true,
        policy: config.policy.clone(),
        ..Status::default()
    });
    progress.set_message("replaying");
    let limits = limits(config, recorded.accesses_per_sample)?;
    let mut epochs = open(recorded, Cut { capacity, ..cut })?.peekable();
    while let Some(seen) = epochs.next() {
        if let Some(Ok(next)) = epochs.peek().filter(|_| config.foresees()) {
            step.set_next_epoch(next.accesses.clone());
        }
        let mut dry_run = DryRun::new(places.dry_target(), recorded.verbose);
        let report = step.run(&seen?, &limits, &mut dry_run);
        status_builder.take(&report, places.tiers.all());
        progress.suspend(|| match recorded.json {
            true => print(&format!("{}\n", status_builder.status.json_line())),
            false => print(&(heading(&report) + &dry_run.lines())),
        })?;
    }
    progress.finish_and_clear();
    let mut status = status_builder.status;
    status.notes.push(sentence(&status));
    if whole.is_sampled() && recorded.accesses_per_sample == 1 {
        let taken_for_one = "each sample counted as one access, so moves look too expensive; \
                             --accesses-per-sample gives the number of accesses";
        status.notes.push(taken_for_one.to_owned());
    }
    if !recorded.json {
        print(&status.text(terminal_width()))?;
    }
    Ok(())
}

/// Opens the recording from its start.
fn open(recorded: &Recorded, cut: Cut) -> Result<Replay> {
    let path = &recorded.file;
    let grain = Grain {
        epoch: cut.epoch,
        chunk: cut.unit,
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let trace = isotherm_trace::open(path, recorded.format, grain)?;
    Ok(Replay::new(trace, &name, cut))
}

/// The two tiers that the replay assumes.
fn imagined(fast: Bytes, footprint: Bytes) -> Result<Tiers> {
    let tier = |name, capacity| {
        let kind = TierKind::Nodes(Vec::new());
        Tier::unmeasured(name, kind, capacity, "imagined for a recording")
    };
    Tiers::new(vec![tier("fast", fast), tier("slow", footprint)]).context("the imagined tiers")
}

/// The line above the moves of an epoch.
fn heading(report: &EpochReport) -> String {
    let known = report
        .hit_rate()
        .map_or_else(|| "unknown".to_owned(), percent);
    format!("epoch {}: hit rate {known}\n", report.epoch.0)
}

/// The share of all accesses that fast memory would have served, in a sentence.
fn sentence(status: &Status) -> String {
    let seen = status.accesses_seen.iter();
    let fast: f64 = seen.clone().map(|seen| seen.fast as f64).sum();
    let slow: f64 = seen.map(|seen| seen.slow as f64).sum();
    format!(
        "a recording was replayed: of all its accesses {} would have been served by fast memory",
        percent(fast / (fast + slow).max(1.0))
    )
}
