//! `isotherm sensitivity` measures how much longer a program takes with all data slow than with all data fast (its sensitivity), and how
//! much of that each of its most useful data objects saves if it alone is fast (its benefit); beside it prints both as predicted from a
//! profile, with `--predict` these alone. It records the program where no profile is named, and stores the times for `isotherm colocate` on
//! request.

mod placements;

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, bail};
use clap::{Args as _, FromArgMatches as _};
use isotherm_console::{Console, shell_quoting};
use isotherm_model::plan::Weight;
use isotherm_model::profile::Profile;
use isotherm_model::sensitivity_runs::TierPair;
use isotherm_model::site::SiteKind;
use isotherm_model::tier::Tiers;
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_observe::probe::KernelProbe;
use isotherm_pipeline::{SiteChunks, predicted_runs};
use isotherm_policy::sharing::MeasuredProgram;
use isotherm_report::Report;
use isotherm_report::sensitivity::{MeasuredBenefit, ObjectSensitivity, SensitivityTable};

use super::record::record;
use crate::cli::{Observing, RecordArgs};
use crate::cli_attaching::Attaching;
use crate::cli_isolation::Isolating;
use crate::cli_sensitivity::SensitivityArgs;
use crate::cli_tiers::TiersChoice;
use crate::launch;
use crate::sensitivity::{self, DataObject, ObjectRuns};
use crate::timed_runs::{DifferingOutput, RunResults, TimedRuns};
use crate::{output, tiers_choice};
use placements::Placements;

/// Version of the JSON form.
const SCHEMA_VERSION: u32 = 1;

/// The program, as its profile shows it.
struct Subject {
    profile: Profile,
    tiers: Tiers,
    /// The runs that the profile predicts.
    predicted: Option<MeasuredProgram>,
    /// The objects that are timed alone in fast memory.
    objects: Vec<DataObject>,
    /// The objects beyond `--objects`, which are not timed.
    left_out: Vec<DataObject>,
}

/// Measures, predicts and prints. Returns the exit status for the signal that interrupted it, if any; it then prints the complete rounds,
/// or the predictions alone if no round is complete.
///
/// # Errors
/// An unreadable profile, one without data objects or of another program, tiers of one kind, a program that fails, one that runs into the
/// limit with all data slow or with all data fast, and with --predict a profile that predicts nothing.
pub(crate) fn run(args: &SensitivityArgs, console: Console) -> Result<Option<ExitStatus>> {
    // Nothing is run if its result could not be stored.
    if let Some(plot) = &args.plot {
        super::keep_inputs(&args.profile, plot, "--plot")?;
        output::check(plot)?;
    }
    if args.cache.is_some() && args.predict && args.profile.is_some() {
        bail!(
            "--cache: is of runs of the program, and with --predict and --profile there is none; record the profile again with it"
        );
    }
    let profile = match read_or_record(args, console)? {
        ControlFlow::Continue(profile) => profile,
        ControlFlow::Break(interrupted) => return Ok(Some(interrupted)),
    };
    let subject = Subject::new(args, profile, console)?;
    prepare_output(args, &subject.profile, console)?;
    let mut table = subject.table(args);
    let end = match args.predict {
        true => MeasurementEnd::default(),
        false => subject.measure(args, &mut table, console)?,
    };
    super::print_report(args.json, &table, || table.text())?;
    if let Some(path) = &args.plot {
        super::write_text(path, &table.html())?;
        console.info(&format!("open {} in a browser", path.display()));
    }
    if let Some(stopped) = end.stopped {
        bail!("{stopped}; give it less to do, or a longer --time-limit");
    }
    console.next(&next(args));
    Ok(end.interrupted)
}

/// Why a measurement ended early.
#[derive(Debug, Default)]
struct MeasurementEnd {
    /// The exit status for the signal that interrupted it.
    interrupted: Option<ExitStatus>,
    /// The program ran into the limit with all data slow or with all data fast, in a sentence.
    stopped: Option<String>,
}

/// The profile that was named, or one of a run that is recorded now; the exit status for the signal that interrupted this run.
fn read_or_record(
    args: &SensitivityArgs,
    console: Console,
) -> Result<ControlFlow<ExitStatus, Profile>> {
    if let Some(path) = &args.profile {
        let (profile, _) = super::read_profile(path, console)?;
        super::warn_of_emulation(path, &profile, console);
        if profile
            .sites
            .iter()
            .any(|site| site.kind == SiteKind::Region)
        {
            bail!(
                "{}: is of a process that ran already, whose mappings no run can place; leave --profile out to record the program",
                path.display()
            );
        }
        return Ok(ControlFlow::Continue(profile));
    }
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let output = File::create(directory.path().join("output"));
    let output = output.context("the program's output cannot be kept")?;
    let beside = || directory.path().join("app.iso");
    let path = args.output.clone().unwrap_or_else(beside);
    let recording = RecordArgs {
        output: path.clone(),
        force: args.force,
        observing: Observing {
            cache: args.cache,
            ..observing()?
        },
        allocation_interval: Bytes::ZERO,
        without_agent: true,
        isolating: Isolating::default(),
        attaching: Attaching::default(),
        words: args.words.clone(),
    };
    let progress = console.progress("recording the program");
    let kept = (output.into(), args.time_limit);
    let recorded = record(&recording, kept, Console::new(true));
    progress.finish_and_clear();
    let recorded = recorded?;
    if let Some(interrupted) = recorded.interruption() {
        return Ok(ControlFlow::Break(interrupted));
    }
    if let Some(limit) = recorded.exceeded {
        console.warn(&format!(
            "the recorded run did not end within {limit} and was ended; predictions are of this time"
        ));
    } else if !recorded.status.success() {
        bail!(
            "the recorded run ended with {}, so there is nothing to measure",
            recorded.status
        );
    }
    let (profile, _) = super::read_profile(&path, console)?;
    Ok(ControlFlow::Continue(profile))
}

/// Makes sure, before anything is timed, that --output is a profile to which the times can be added: a copy of a named profile.
fn prepare_output(args: &SensitivityArgs, profile: &Profile, console: Console) -> Result<()> {
    let Some(output) = &args.output else {
        return Ok(());
    };
    if let Some(named) = &args.profile
        && !super::is_same_file(named, output)
    {
        super::write_profile(output, profile, args.force, console)?;
    }
    Ok(isotherm_profile::check_addition(output)?)
}

/// Adds the timed runs to the profile at a path.
fn store(path: &Path, subject: &Subject, runs: &ObjectRuns, console: Console) -> Result<()> {
    let runs = runs.on(TierPair::of(&subject.tiers));
    isotherm_profile::add_sensitivity(path, &subject.profile, &runs)?;
    console.info(&format!(
        "added the times of {} on {} to {}",
        counted(runs.rounds(), "round"),
        runs.tiers,
        path.display()
    ));
    Ok(())
}

/// How the program is recorded: by the timer, which alone tells times, else as `isotherm record` does.
fn observing() -> Result<Observing> {
    let command = Observing::augment_args(clap::Command::new("record"));
    let matches = command.try_get_matches_from(["record", "--source", "timer"])?;
    Ok(Observing::from_arg_matches(&matches)?)
}

impl Subject {
    fn new(args: &SensitivityArgs, profile: Profile, console: Console) -> Result<Self> {
        if sensitivity::objects(&profile, None).is_empty() {
            bail!(
                "the profile has no data object with memory, so nothing can be alone fast; was the program stopped at once?"
            );
        }
        let tiers = tiers(args, &profile, console)?;
        let predicted = match predicted(&profile, &tiers) {
            Ok(predicted) => Some(predicted),
            Err(error) if args.predict => return Err(error),
            Err(error) => {
                console.warn(&format!("nothing is predicted: {error:#}"));
                None
            }
        };
        let mut objects = sensitivity::objects(&profile, predicted.as_ref());
        if objects.len() == 1 {
            console.info("the program has one data object: alone fast is the same as all fast");
        }
        let left_out = objects.split_off(objects.len().min(args.objects as usize));
        Ok(Self {
            profile,
            tiers,
            predicted,
            objects,
            left_out,
        })
    }

    /// Times all placements, and adds the complete rounds to what is printed and to the profile at --output.
    fn measure(
        &self,
        args: &SensitivityArgs,
        table: &mut SensitivityTable,
        console: Console,
    ) -> Result<MeasurementEnd> {
        let mut results = self.time(args, console)?;
        let end = MeasurementEnd {
            interrupted: results.interrupted,
            stopped: results.stopped.take(),
        };
        if results.keep_whole_rounds(args.rounds, console) == 0 {
            return Ok(end);
        }
        table.outputs_differ = results.outputs_differ;
        let objects = table.objects.iter_mut().enumerate();
        objects.for_each(|(number, object)| {
            // Number 0 is the placement with all data slow.
            object.exceeded_limit = results.exceeded.contains(&(number + 1));
        });
        let runs = self.object_runs(results);
        add_measured(table, &runs)?;
        if let Some(path) = &args.output {
            store(path, self, &runs, console)?;
        }
        Ok(end)
    }

    /// The table to print, without timed runs.
    fn table(&self, args: &SensitivityArgs) -> SensitivityTable {
        let of_site = |site| sensitivity::benefit(self.predicted.as_ref()?, site);
        let report = Report::new(&self.profile, None);
        let rows = &report.summary().sites;
        let object = |object: &DataObject| {
            let row = rows.iter().find(|row| row.id == object.site);
            ObjectSensitivity {
                site: object.site.to_string(),
                object: row.map_or(String::new(), |row| row.location.clone()),
                kind: row.map_or("", |row| row.kind),
                size_bytes: object.size.0,
                measured: None,
                exceeded_limit: false,
                predicted: of_site(object.site),
            }
        };
        let left_out = self.left_out.iter();
        let benefit_left_out = left_out.filter_map(|object| Some(of_site(object.site)?.benefit));
        let factors = self.tiers.slow_factors();
        let command = match args.words.is_empty() {
            true => self.profile.meta.command.clone(),
            false => shell_quoting::as_text(&args.words),
        };
        SensitivityTable {
            schema_version: SCHEMA_VERSION,
            command,
            tiers: args.tiers.clone(),
            emulated: self.tiers.emulates(),
            latency_factor: factors.map(|factors| factors.latency),
            bandwidth_factor: factors.map(|factors| factors.bandwidth),
            footprint_bytes: self.profile.footprint().0.0,
            measured: None,
            time_limit: args.time_limit,
            predicted: self.predicted.as_ref().map(sensitivity::program),
            objects: self.objects.iter().map(object).collect(),
            objects_left_out: self.left_out.len(),
            benefit_left_out: self.predicted.as_ref().map(|_| benefit_left_out.sum()),
            outputs_differ: false,
        }
    }

    fn time(&self, args: &SensitivityArgs, console: Console) -> Result<RunResults> {
        if let Some(why) = tiers_choice::problem(&self.tiers, &KernelProbe) {
            console.warn(&why);
        }
        let program = launch::program(&args.words)?;
        let table = self.table(args);
        let names = table.objects.into_iter().map(|object| object.object);
        let objects: Vec<_> = self.objects.iter().copied().zip(names).collect();
        let tiers = (&self.tiers, self.cache(args)?);
        let placements = Placements::new(&self.profile, tiers, &objects, &program, console);
        console.info(&format!(
            "timing {}, {} each",
            counted(placements.timed.len(), "placement"),
            counted(args.rounds, "round")
        ));
        let runs = TimedRuns {
            words: &args.words,
            placements: &placements.timed,
            rounds: args.rounds,
            differing: DifferingOutput::by_flag(args.check_output),
            limit: args.time_limit,
        };
        runs.run(console, |number, ended| placements.check(number, ended))
    }

    /// The size of the caches for the timed runs.
    ///
    /// # Errors
    /// A size is given for the timed runs alone, and these tiers assume no caches.
    fn cache(&self, args: &SensitivityArgs) -> Result<Option<Bytes>> {
        let cache = tiers_choice::cache(args.cache, &self.tiers);
        if args.profile.is_none() {
            // The recorded run assumes caches on any tiers.
            return Ok(cache.unwrap_or_default());
        }
        cache
    }

    /// The timed runs, by the objects that have some.
    fn object_runs(&self, results: RunResults) -> ObjectRuns {
        let mut times = results.times.into_iter();
        let all_slow = times.next().unwrap_or_default();
        let alone = self.objects.iter().copied().zip(times.by_ref());
        let alone = alone.filter(|(_, times)| !times.is_empty()).collect();
        let all_fast = times.next().unwrap_or_default();
        ObjectRuns {
            all_slow,
            all_fast,
            alone,
        }
    }
}

/// Adds the timed runs to what is printed, and sorts the objects by their measured benefit.
fn add_measured(table: &mut SensitivityTable, runs: &ObjectRuns) -> Result<()> {
    let (measured, benefits) = runs.figures()?;
    table.measured = Some(measured);
    for (site, benefit) in benefits {
        let site = site.to_string();
        let mut objects = table.objects.iter_mut();
        if let Some(object) = objects.find(|object| object.site == site) {
            object.measured = Some(benefit);
        }
    }
    let by_benefit = |benefit: &MeasuredBenefit| benefit.of_medians.benefit;
    table.objects.sort_by(|a, b| {
        let [a, b] = [a, b].map(|it| it.measured.as_ref().map_or(0.0, by_benefit));
        b.total_cmp(&a)
    });
    Ok(())
}

/// The fastest tier and the slowest.
fn tiers(args: &SensitivityArgs, profile: &Profile, console: Console) -> Result<Tiers> {
    let choice = TiersChoice::named(&args.tiers);
    let footprint = profile.footprint();
    let tiers = tiers_choice::resolve(&choice, Some(footprint), console)?;
    let [fast, .., slow] = tiers.all() else {
        bail!(
            "--tiers {}: there is one tier, and two are compared",
            args.tiers
        );
    };
    if !args.predict && !fast.is_emulated() && fast.capacity < footprint.0 {
        bail!(
            "the fast tier \"{}\" holds {}, and the program has {footprint}, so all of it cannot be fast; --predict needs no room, or run a \
             smaller input",
            fast.name,
            fast.capacity
        );
    }
    Ok(Tiers::new(vec![fast.clone(), slow.clone()])?)
}

fn predicted(profile: &Profile, tiers: &Tiers) -> Result<MeasuredProgram> {
    let factors = tiers.slow_factors().context(
        "the tiers do not say how much slower the slow one is; `isotherm tiers --measure` finds it, or name emulated:cxl",
    )?;
    sensitivity::check_samples(profile)?;
    Ok(predicted_runs(
        "program",
        profile,
        &SiteChunks::whole_sites(),
        factors,
        Weight::PeakRss,
    )?)
}

/// The next useful command: a share of fast memory for this program and others, by profiles that tell times.
fn next(args: &SensitivityArgs) -> String {
    let profile: Option<&PathBuf> = args.output.as_ref().or(args.profile.as_ref());
    match profile {
        Some(profile) => {
            let profile = shell_quoting::file(profile);
            // Measured times hold for their tiers only.
            let tiers = match args.output {
                Some(_) => format!("--tiers {} ", shell_quoting::word(&args.tiers)),
                None => String::new(),
            };
            format!("isotherm colocate {profile} {tiers}--fast 25%")
        }
        None => {
            let program = shell_quoting::line(&shell_quoting::as_text(&args.words));
            format!("isotherm record --source timer -o app.iso -- {program}")
        }
    }
}
