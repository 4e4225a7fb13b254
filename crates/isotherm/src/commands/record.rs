//! `isotherm record`: profiles a program.

use std::process::ExitStatus;

use anyhow::Result;
use isotherm_act::configuration::Configuration;
use isotherm_act::wrap::DryRun;
use isotherm_model::batch::SourceReport;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::footprint::ResidentSums;
use isotherm_model::profile::{Meta, Segment};
use isotherm_model::site::Site;
use isotherm_model::words::{counted, grouped};
use isotherm_pipeline::Step;
use isotherm_profile::FinishOutcome;

use crate::cli::RecordArgs;
use crate::launch::{self, Output, Running};
use crate::recording::{self, Diagnostics};
use crate::session_summary::SessionSummary;
use crate::site_names::Naming;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

/// Records, and returns the program's exit status; a failure if it succeeded and its profile could not
/// be written.
///
/// # Errors
/// The program cannot be started or watched, the profile cannot be begun.
pub(crate) fn run(args: &RecordArgs, console: Console) -> Result<ExitStatus> {
    let words = &args.program.words;
    recording::check(&args.observing)?;
    let observing = &recording::with_sources(&args.observing, words, console)?;
    let configuration = recording::for_sources(Configuration::profile(observing.depth), observing);
    let ready = launch::prepare(words, &configuration, Output::Ours)?;
    let observer = recording::attach(&ready, observing)?;
    let meta = recording::meta(words, observing, false);
    let writer = super::create_profile(&args.output, &meta, args.force)?;
    let mut step = Step::new(observer, DryRun, writer, &meta, None);
    let mut naming = Naming::start()?;
    let (session, mut running) = ready.start()?;

    let mut diagnostics = Diagnostics::default();
    let mut totals = Totals::default();
    let hear = |report, last| {
        let segment = diagnostics.hear(report, last, console)?;
        totals.add(&segment);
        Some(segment)
    };
    let never = |_: &Running| false;
    let ended = recording::watch(
        &mut step,
        &mut running,
        observing.epoch,
        &mut naming,
        never,
        hear,
    )?;
    let status = match ended {
        Some(status) => status,
        None => running.until_end()?,
    };
    launch::warn_of(&SessionSummary::without_sites(&session), console);
    let progress = console.progress("naming the sites");
    let sites = recording::named(&mut step, naming);
    progress.finish_and_clear();
    let finished = step.recorder.finish(launch::ending(status), &sites);
    let shown = args.output.display();
    match finished {
        Err(error) => {
            let error = diagnostics.at_the_end(error, &args.output);
            return Ok(launch::ended(status, [Err(error)], console));
        }
        Ok(FinishOutcome::Former) => {
            recording::warn_of_former(&args.output, console);
            return Ok(status);
        }
        Ok(FinishOutcome::New) => {}
    }
    console.info(&totals.in_words(&sites, &meta, &shown.to_string()));
    if totals.on_sites + totals.elsewhere == 0 {
        console.warn(
            "no access was observed, so this profile cannot separate hot from cold data; a longer run, a higher \
             --frequency or another --source may (see `isotherm doctor`)",
        );
    }
    console.next(&format!(
        "isotherm report {}",
        shell_quoting::file(&args.output)
    ));
    Ok(status)
}

/// Sums over the recording, as every other command computes them from the profile.
#[derive(Debug, Default)]
struct Totals {
    epochs: usize,
    on_sites: u64,
    elsewhere: u64,
    resident: ResidentSums,
    sources: Vec<SourceReport>,
}

impl Totals {
    fn add(&mut self, segment: &Segment) {
        self.epochs += 1;
        for heat in &segment.heat {
            let sum = match heat.site.is_placeable() {
                true => &mut self.on_sites,
                false => &mut self.elsewhere,
            };
            *sum = sum.saturating_add(heat.accesses.0);
        }
        self.resident.add(&segment.resident);
        if !segment.sources.is_empty() {
            self.sources.clone_from(&segment.sources);
        }
    }

    fn in_words(&self, sites: &[Site], meta: &Meta, path: &str) -> String {
        let unit = CountUnit::of(&self.sources, meta.cache_filter.is_some());
        let placeable = sites.iter().filter(|site| site.id.is_placeable()).count();
        format!(
            "recorded {} with a footprint of {}, {} on them and {} elsewhere, in {}, to {path}",
            counted(placeable, "site"),
            self.resident.footprint(sites),
            unit.counted(self.on_sites),
            grouped(self.elsewhere),
            counted(self.epochs, "epoch")
        )
    }
}
