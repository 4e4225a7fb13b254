//! `isotherm tiers --measure` measures the nodes of this machine (latency, bandwidth, latency under load) and the costs of its swap, and
//! writes a tiers file of the nodes.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_topology::View;
use isotherm_topology::measure::{
    MeasureError, MeasureSettings, MeasureStep, MeasuredFigure, Measurement, PageOutError, measure,
    page_out,
};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::show::Shown;
use crate::cli_tiers::TiersArgs;
use crate::commands::{is_standard_output, write_text};
use crate::interrupt::Interrupt;
use crate::output;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

/// The default output file.
const DEFAULT_FILE: &str = "tiers.toml";

/// Measures, writes the file, and shows the result. Returns the exit status for the signal that interrupted it, if any.
///
/// # Errors
/// The file cannot be written; no node can be measured.
pub(super) fn run(args: &TiersArgs, view: View, console: Console) -> Result<Option<ExitStatus>> {
    let path = file(args)?;
    let root = Path::new("/");
    // A view from an unknown node is refused before the measurement, which takes minutes.
    isotherm_topology::examine(root, view)?;
    let interrupt = Interrupt::catch(&[SIGINT, SIGTERM])?;
    let found = match watched(root, &interrupt, console) {
        Ok(found) => found,
        Err(MeasureError::Interrupted) => {
            console.warn("interrupted; nothing was written");
            return Ok(interrupt.status());
        }
        Err(error) => return Err(error.into()),
    };
    let swap = isotherm_topology::swap(root);
    let (costs, why_not) = match page_out(root) {
        Ok(costs) => (Some(costs), None),
        Err(PageOutError::NoSwap) => (None, None),
        Err(error) => (None, Some(format!("swap was not measured: {error}"))),
    };
    let detected = isotherm_topology::examine_measured(root, &found.pairs, view)?;
    let mut shown = Shown {
        measured: found.pairs,
        cost: Some((found.elapsed, found.memory)),
        ..Shown::detected(detected, (swap, costs))
    };
    shown.notes.splice(..0, found.notes);
    shown.notes.extend(why_not);
    write_text(&path, &isotherm_topology::print(&shown.file()))?;
    if cfg!(debug_assertions) {
        console.warn("this program was built without optimisation, so the figures are too low");
    }
    if is_standard_output(&path) {
        return Ok(None);
    }
    shown.print(args.json)?;
    console.info(&format!("written to {}", path.display()));
    console.next(&match shown.tiers.all().len() {
        1 => "isotherm run --tiers emulated -- ./app (one kind of memory is no choice)".to_owned(),
        _ => format!(
            "isotherm run --tiers {} -- ./app",
            shell_quoting::file(&path)
        ),
    });
    Ok(None)
}

/// The output path, tested before the measurement, which takes minutes. A named file is replaced, the default
/// one is not, because the user did not request it.
fn file(args: &TiersArgs) -> Result<PathBuf> {
    let path = match &args.output {
        Some(path) => path.clone(),
        None if Path::new(DEFAULT_FILE).exists() => {
            bail!(
                "{DEFAULT_FILE} is already there; `-o {DEFAULT_FILE}` replaces it, or name another"
            )
        }
        None => PathBuf::from(DEFAULT_FILE),
    };
    if is_standard_output(&path) {
        return Ok(path);
    }
    output::check(&path)?;
    Ok(path)
}

/// Measures with a bar on a terminal.
fn watched(
    root: &Path,
    interrupt: &Interrupt,
    console: Console,
) -> Result<Measurement, MeasureError> {
    let bar = console.steps(0);
    let mut watch = |step: MeasureStep| {
        bar.set_length(step.total as u64);
        bar.set_position(step.done as u64);
        let what = match step.figure {
            MeasuredFigure::Latency => "latency".to_owned(),
            MeasuredFigure::Bandwidth(1) => "bandwidth, 1 thread".to_owned(),
            MeasuredFigure::Bandwidth(threads) => format!("bandwidth, {threads} threads"),
            MeasuredFigure::LoadedLatency => "latency under load".to_owned(),
        };
        let (cpus, memory) = (step.cpu_node, step.memory_node);
        bar.set_message(format!("node {cpus} to node {memory}: {what}"));
        match interrupt.status().is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let found = measure(root, MeasureSettings::default(), &mut watch);
    bar.finish_and_clear();
    match found {
        // After an interrupt no file is written, even after the last step.
        Ok(_) if interrupt.status().is_some() => Err(MeasureError::Interrupted),
        found => found,
    }
}
