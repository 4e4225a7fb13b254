//! `isotherm tiers --measure`.

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use isotherm_observe::tiers::measure::{MeasureError, Measurement, Settings, Step, measure};
use isotherm_observe::tiers::{self, TiersFile, View};

use super::show::Shown;
use crate::cli::TiersArgs;
use crate::commands::is_standard_output;
use crate::hint;
use crate::notes::{Notes, print};
use crate::output;

/// Where the tiers go if no file is named.
const DEFAULT_FILE: &str = "tiers.toml";

/// Measures, writes the file, and shows what was found. Returns the signal that broke it off.
///
/// # Errors
/// The file cannot be written; nothing can be measured.
pub(super) fn run(args: &TiersArgs, view: View, notes: Notes) -> Result<Option<ExitStatus>> {
    let path = file(args)?;
    let root = Path::new("/");
    // A view from nowhere is refused before minutes are spent, too.
    tiers::examine(root, view)?;
    let interrupt = Interrupt::catch()?;
    let found = match watched(root, &interrupt, notes) {
        Ok(found) => found,
        Err(MeasureError::Interrupted) => {
            notes.warn("interrupted; nothing was written");
            return Ok(Some(interrupt.status()));
        }
        Err(error) => return Err(error.into()),
    };
    let detected = tiers::examine_measured(root, &found.pairs, view)?;
    let file = TiersFile {
        tiers: detected.tiers.clone(),
        measured: found.pairs.clone(),
    };
    let is_printed = is_standard_output(&path);
    if is_printed {
        print(&tiers::print(&file))?;
    } else {
        output::write(&path, tiers::print(&file).as_bytes())?;
    }
    let shown = Shown {
        measured: found.pairs,
        notes: found.notes.into_iter().chain(detected.notes).collect(),
        cost: Some((found.elapsed, found.memory)),
        tiers: detected.tiers,
        nodes: detected.nodes,
    };
    if cfg!(debug_assertions) {
        notes.warn("this program was built without optimisation, so the figures are too low");
    }
    if is_printed {
        return Ok(None);
    }
    super::print_shown(&shown, args.json)?;
    notes.say(&format!("written to {}", path.display()));
    notes.next(&match shown.tiers.all().len() {
        1 => "isotherm run --tiers emulated -- ./app (one kind of memory is no choice)".to_owned(),
        _ => format!("isotherm run --tiers {} -- ./app", hint::file(&path)),
    });
    Ok(None)
}

/// Where to write, tried before minutes are spent. A file that was named is replaced, the default
/// one is not: nobody asked for that.
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
fn watched(root: &Path, interrupt: &Interrupt, notes: Notes) -> Result<Measurement, MeasureError> {
    let bar = notes.steps(0);
    let mut watch = |step: Step| {
        bar.set_length(step.total as u64);
        bar.set_position(step.done as u64);
        let what = match step.threads {
            None => "latency".to_owned(),
            Some(1) => "bandwidth, 1 thread".to_owned(),
            Some(threads) => format!("bandwidth, {threads} threads"),
        };
        let (cpus, memory) = (step.cpu_node, step.memory_node);
        bar.set_message(format!("node {cpus} to node {memory}: {what}"));
        match interrupt.came() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let found = measure(root, Settings::default(), &mut watch);
    bar.finish_and_clear();
    match found {
        // An interrupt after the last step still means: write nothing.
        Ok(_) if interrupt.came() => Err(MeasureError::Interrupted),
        found => found,
    }
}

/// Signals that break a measurement off. The first lets it end at the next step, so that the
/// terminal is left in order; a second one ends the program at once.
struct Interrupt {
    came: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    fn catch() -> Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let came = Arc::new(AtomicBool::new(false));
        let number = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            let registered =
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&came))
                    .and_then(|_| {
                        let number = Arc::clone(&number);
                        signal_hook::flag::register_usize(signal, number, signal as usize)
                    })
                    .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&came)));
            registered.context("cannot catch signals")?;
        }
        Ok(Self {
            came,
            signal: number,
        })
    }

    fn came(&self) -> bool {
        self.came.load(Ordering::Relaxed)
    }

    /// How a program ends that did not catch the signal.
    fn status(&self) -> ExitStatus {
        ExitStatus::from_raw(self.signal.load(Ordering::Relaxed) as i32)
    }
}
