//! `isotherm record` runs a program, writes a profile of it and prints a summary. `record` does so for other commands, too; `Totals` and
//! `announce` make the summary, also of `isotherm record --pid`.

use std::process::{ExitStatus, Stdio};

use anyhow::Result;
use isotherm_act::configuration::Configuration;
use isotherm_act::dry_run::DryRun;
use isotherm_model::batch::{JAVA_HEAP, SourceReport};
use isotherm_model::footprint::ResidentSums;
use isotherm_model::profile::{Meta, Segment};
use isotherm_model::site::Site;
use isotherm_model::units::Nanos;
use isotherm_model::words::{counted, grouped};
use isotherm_pipeline::Step;
use isotherm_profile::FinishOutcome;
use isotherm_sys::file_root::FileRoot;

use crate::cli::RecordArgs;
use crate::java::{self, AgentSettings};
use crate::launch::{self, EndedProgram};
use crate::observed_run::{EndedRun, ObservedRun};
use crate::python;
use crate::recording;
use crate::session_directory::SessionDirectory;
use crate::static_data;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

/// Records, and returns the program's exit status; a failure if it succeeded and its profile could not
/// be written.
///
/// # Errors
/// The program cannot be started or watched, the profile cannot be begun.
pub(crate) fn run(args: &RecordArgs, console: Console) -> Result<ExitStatus> {
    record(args, (Stdio::inherit(), None), console).map(|recorded| recorded.status)
}

/// Records as [`run`] does, with the program's standard output in `output`, for `limit` at most. Returns the program with that exit status.
///
/// # Errors
/// As [`run`].
pub(super) fn record(
    args: &RecordArgs,
    (output, limit): (Stdio, Option<Nanos>),
    console: Console,
) -> Result<EndedProgram> {
    let words = &args.words;
    recording::check(&args.observing)?;
    let observing = &recording::with_sources(&args.observing, words, console)?;
    let mut configuration =
        recording::for_sources(Configuration::profile(observing.depth), observing);
    configuration.statics = static_data::of_program(&launch::program(words)?);
    let places_sites = args.without_agent || args.isolating.isolate.is_some();
    let is_java = !places_sites && java::is_java(words);
    let agent = AgentSettings::of(observing, args.allocation_interval);
    let with_agent = is_java.then(|| java::with_agent(words, agent, console));
    let started = with_agent.as_deref().unwrap_or(words);
    if let Some(why) = python::unread(words) {
        console.warn(&why);
    }
    let session = SessionDirectory::new()?;
    let ready = launch::prepare(session, started, &configuration, output)?.within(limit);
    let observer = recording::attach(&ready, observing, &[]);
    let meta = recording::meta(words, observing, false);
    let writer = super::create_profile(&args.output, &meta, args.force)?;
    let step = Step::new(observer, DryRun, Some(writer), &meta, None);
    let (start, root) = (|| ready.start(), FileRoot::default());
    let run = ObservedRun::start(start, root, step, observing.epoch, console)?;
    let mut totals = Totals::default();
    let EndedRun {
        mut program,
        sites,
        profile,
    } = run.complete(|report, _| totals.add(&report.segment))?;
    let status = program.status;
    if !status.success() {
        let name = words.first().map(|name| name.to_string_lossy());
        console.warn(&format!("{} ended with {status}", name.unwrap_or_default()));
    }
    match profile {
        Err(error) => {
            program.status = launch::ended(status, [Err(error)], console);
            return Ok(program);
        }
        Ok(Some(FinishOutcome::New)) => {}
        Ok(Some(FinishOutcome::Former) | None) => return Ok(program),
    }
    if is_java && !totals.has_agent() && started.len() > words.len() {
        console.warn(
            "the agent did nothing in this Java virtual machine, so the profile has no Java sites; it needs sampled \
             allocations (JDK 11 or later)",
        );
    }
    announce(args, &totals, &sites, &meta, console);
    Ok(program)
}

/// Says what was recorded, and the next command.
pub(super) fn announce(
    args: &RecordArgs,
    totals: &Totals,
    sites: &[Site],
    meta: &Meta,
    console: Console,
) {
    let shown = args.output.display();
    console.info(&totals.in_words(sites, meta, &shown.to_string()));
    if totals.on_sites + totals.elsewhere == 0 && totals.served > 0 {
        console.warn(
            "the caches served all that was sampled, by an estimate, so faster memory changes nothing; --cache says how \
             much cache is assumed",
        );
    } else if totals.on_sites + totals.elsewhere == 0 {
        console.warn(
            "no access was observed, so this profile cannot separate hot from cold data; a longer run, a higher \
             --frequency or another --source may (see `isotherm doctor`)",
        );
    }
    console.next(&format!(
        "isotherm report {}",
        shell_quoting::file(&args.output)
    ));
}

/// Sums over the recording, as every other command computes them from the profile.
#[derive(Debug, Default)]
pub(super) struct Totals {
    epochs: usize,
    on_sites: u64,
    elsewhere: u64,
    /// Served by caches, on sites and elsewhere.
    served: u64,
    resident: ResidentSums,
    sources: Vec<SourceReport>,
}

impl Totals {
    /// True where an agent in a Java virtual machine reported.
    fn has_agent(&self) -> bool {
        self.sources.iter().any(|source| source.name == JAVA_HEAP)
    }

    /// Adds an epoch.
    pub(super) fn add(&mut self, segment: &Segment) {
        self.epochs += 1;
        for heat in &segment.heat {
            let sum = match heat.site.is_placeable() {
                true => &mut self.on_sites,
                false => &mut self.elsewhere,
            };
            *sum = sum.saturating_add(heat.accesses.0);
            self.served = self.served.saturating_add(heat.served.0);
        }
        self.resident.add(&segment.resident);
        if !segment.sources.is_empty() {
            self.sources.clone_from(&segment.sources);
        }
    }

    fn in_words(&self, sites: &[Site], meta: &Meta, path: &str) -> String {
        let unit = SourceReport::common_unit(&self.sources, meta.cache_filter.is_some());
        let placeable = sites.iter().filter(|site| site.id.is_placeable()).count();
        let beside = match self.served {
            0 => String::new(),
            served => format!(", beside {} that caches served", grouped(served)),
        };
        format!(
            "recorded {} with a footprint of {}, {} on them and {} elsewhere{beside}, in {}, to {path}",
            counted(placeable, "site"),
            self.resident.footprint(sites),
            unit.counted(self.on_sites),
            grouped(self.elsewhere),
            counted(self.epochs, "epoch")
        )
    }
}
