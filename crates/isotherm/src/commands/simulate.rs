//! `isotherm simulate` replays a profile, a trace or a generated trace on a modelled machine under each policy, beside first touch and the
//! oracle as bounds, and prints hits, time and energy.

use std::path::Path;

use anyhow::{Context, Result, bail};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::footprint::Footprint;
use isotherm_model::units::Capacity;
use isotherm_pipeline::CountWorth;
use isotherm_report::simulation::{SCHEMA_VERSION, SimulatedCapacity, SimulatedPolicy, Simulation};
use isotherm_sim::generate::{self, GeneratorSettings};
use isotherm_sim::{
    AtCapacity, EpochLength, HALVINGS, Machine, Monitor, MonitorSource, PolicyResult,
    SimulationReport, SimulationRequest, Workload,
};

use crate::cli::{SIMULATED_POWER, SIMULATED_TIERS, SimulateArgs};
use crate::cli_tiers::TiersChoice;
use crate::input::{self, EPOCHS, PAGE, Replayable};
use crate::output;
use crate::tiers_choice;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

/// Default share of the footprint that is fast, as in `isotherm plan`.
const DEFAULT_SHARE: Capacity = Capacity::Share(0.25);

/// Replays and prints.
///
/// # Errors
/// The input cannot be read or replayed, a policy is unknown or needs what the input lacks, the plot
/// cannot be written.
pub(crate) fn run(args: &SimulateArgs, console: Console) -> Result<()> {
    refuse_pictures(args.plot.as_deref())?;
    if let Some(plot) = &args.plot {
        super::keep_inputs(&args.input, plot, "--plot")?;
    }
    let Replayable {
        workload,
        counted,
        worth,
    } = workload(args, console)?;
    let (machine, words, capacity) = machine(args, &workload, console)?;
    let mut request = SimulationRequest::new(&workload);
    request.machine = machine;
    let pair = args.power.pair();
    request.energy = args.power.only().unwrap_or(&pair);
    request.devices = args.devices;
    if args.devices.is_some() && request.energy.devices(PAGE, None).is_none() {
        bail!(
            "--devices: the power model {} has no devices; add --power ddr4",
            args.power
        );
    }
    request.capacities = match args.sweep {
        true => HALVINGS.to_vec(),
        false => vec![args.fast.unwrap_or(capacity)],
    };
    request.monitor = Monitor {
        source: args.source,
        ..Monitor::default()
    };
    let (accesses_per_count, note) = accesses_per_count(args, worth, &machine);
    request.accesses_per_count = accesses_per_count;
    if !args.policies.is_empty() {
        request.policies.clone_from(&args.policies);
    }
    let progress = console.progress("replaying");
    let report = isotherm_sim::simulate(&request)?;
    progress.finish_and_clear();
    let mut simulation = simulation(&request, args, &report);
    simulation.counted = counted;
    simulation.machine = words;
    simulation.notes.extend(note);
    if let Some(path) = &args.plot {
        output::write(path, simulation.html().as_bytes())?;
    }
    super::print_report(args.json, &simulation, || simulation.text())?;
    say_next(args, console);
    Ok(())
}

/// A browser would read a page named `.svg` as a picture, and show an error.
fn refuse_pictures(plot: Option<&Path>) -> Result<()> {
    let Some(path) = plot.filter(|path| path.extension().is_some_and(|word| word == "svg")) else {
        return Ok(());
    };
    let page = path.with_extension("html");
    bail!(
        "{}: --plot writes a page for a browser, not a picture; name it {}",
        path.display(),
        page.display()
    );
}

/// The trace or profile to replay, from a file or a generator.
fn workload(args: &SimulateArgs, console: Console) -> Result<Replayable> {
    let Some(name) = &args.generate else {
        let path = args
            .input
            .as_deref()
            .context("there is nothing to replay")?;
        return input::workload(path, &args.reading, console);
    };
    if let Some(format) = args.reading.format {
        bail!(
            "{}: a generated trace has no format; leave it out",
            format.option().trim_start()
        );
    }
    let settings = GeneratorSettings {
        seed: args.seed,
        footprint: args.footprint,
        accesses: args.accesses,
        ..GeneratorSettings::default()
    };
    let accesses = generate::by_name(name, settings).with_context(|| {
        let known: Vec<_> = generate::names().collect();
        format!(
            "there is no generator \"{name}\"; there are {}",
            known.join(", ")
        )
    })?;
    let epoch = match args.reading.epoch {
        Some(length) => EpochLength::Time(length),
        None => EpochLength::Accesses(args.accesses.div_ceil(EPOCHS)),
    };
    let workload = Workload::of_trace(accesses, args.reading.page.unwrap_or(PAGE), epoch);
    Ok(Replayable {
        workload: workload.with_context(|| name.clone())?,
        counted: CountUnit::Accesses,
        worth: CountWorth::OneAccess,
    })
}

/// Accesses that one counted access stands for, with a note for the reader. A sample of the timer stands for the accesses that the slow
/// tier serves in its interval: the lowest estimate, so that moves are judged with caution.
fn accesses_per_count(
    args: &SimulateArgs,
    worth: CountWorth,
    machine: &Machine,
) -> (u64, Option<String>) {
    match (args.accesses_per_sample, worth) {
        (Some(accesses), _) => (accesses, None),
        (None, CountWorth::OneAccess) => (1, None),
        (None, CountWorth::Time(interval)) => {
            let served = interval.0.saturating_mul(machine.overlap.max(1));
            let accesses = (served / machine.slow.read.0.max(1)).max(1);
            let note = format!(
                "a recorded access is a sample of the timer, one each {interval}, and stands for \
                 {accesses}, the number that the slow tier serves in that time; \
                 --accesses-per-sample sets another number"
            );
            (accesses, Some(note))
        }
        (None, CountWorth::Unknown) => {
            let note = "a recorded access is a sample of an unknown number of accesses, and \
                        counts as one: times are too short and moves look too expensive; give \
                        --accesses-per-sample";
            (1, Some(note.to_owned()))
        }
    }
}

/// The modelled machine, as values and as text, and the default capacity of its fast tier.
fn machine(
    args: &SimulateArgs,
    workload: &Workload,
    console: Console,
) -> Result<(Machine, String, Capacity)> {
    if let Some(machine) = Machine::preset(&args.tiers) {
        let words = format!("{} ({})", args.tiers, costs(&machine));
        return Ok((machine, words, DEFAULT_SHARE));
    }
    let choice = TiersChoice::named(&args.tiers);
    let tiers = tiers_choice::resolve(&choice, Some(workload.footprint()), console).context(
        "--tiers names none of cxl, nvm, hbm and dimms, nor tiers of another kind that can be modelled",
    )?;
    let machine = Machine::of_tiers(&tiers);
    let names: Vec<&str> = tiers.all().iter().map(|tier| tier.name.as_str()).collect();
    let words = format!("{} ({})", names.join(" beside "), costs(&machine));
    Ok((machine, words, Capacity::Bytes(tiers.all()[0].capacity)))
}

fn costs(machine: &Machine) -> String {
    format!(
        "fast {}, slow {}, {} to move 4 KiB",
        machine.fast.read, machine.slow.read, machine.move_page
    )
}

/// The report's values, each policy between the bounds.
fn simulation(
    request: &SimulationRequest<'_>,
    args: &SimulateArgs,
    report: &SimulationReport,
) -> Simulation {
    let file = args.input.as_ref().map(|path| path.display().to_string());
    Simulation {
        schema_version: SCHEMA_VERSION,
        input: file.or_else(|| args.generate.clone()).unwrap_or_default(),
        seed: args.generate.as_ref().map(|_| args.seed),
        machine: String::new(),
        power: request.energy.words(),
        accesses_per_count: request.accesses_per_count,
        source: report.source.word().to_owned(),
        page_bytes: report.page.0,
        footprint_bytes: report.footprint.0.0,
        counted: CountUnit::Unknown,
        epochs: report.epochs as u64,
        accesses: report.accesses,
        left_out: report.left_out,
        all_fast_ns: report.all_fast.0,
        all_slow_ns: report.all_slow.0,
        notes: notes_of(report),
        capacities: report
            .capacities
            .iter()
            .map(|at| capacity(at, report.footprint))
            .collect(),
    }
}

/// Notes that limit the meaning of the figures.
fn notes_of(report: &SimulationReport) -> Vec<String> {
    let mut notes = Vec::new();
    if report.epochs < 2 {
        notes.push(
            "there is one epoch, so a policy that learns from the one before has nothing to learn \
             from; choose a shorter --epoch"
                .to_owned(),
        );
    }
    if report.capacities.iter().any(|at| at.pages == 0) {
        notes.push("a capacity is smaller than a page and holds nothing".to_owned());
    }
    notes
}

fn capacity(at: &AtCapacity, Footprint(footprint): Footprint) -> SimulatedCapacity {
    let bounds = (at.first_touch.hits, at.oracle.hits);
    let bound = |result: &PolicyResult, name: &str| SimulatedPolicy {
        policy: name.to_owned(),
        is_bound: true,
        gap_closed: None,
        ..policy(result, bounds)
    };
    let mut policies = vec![bound(&at.first_touch, "first touch")];
    policies.extend(at.interleaved.iter().map(|result| policy(result, bounds)));
    policies.extend(at.policies.iter().map(|result| policy(result, bounds)));
    policies.push(bound(&at.oracle, "oracle"));
    if let Some(interleaved) = &at.interleaved {
        let baseline = interleaved.energy.joules();
        for policy in &mut policies {
            let energy = policy.energy_pj as f64 / 1e12;
            policy.energy_of_interleaved = (baseline > 0.0).then(|| energy / baseline);
        }
    }
    SimulatedCapacity {
        fast_bytes: at.fast.0,
        share_of_footprint: at.fast.0 as f64 / footprint.0.max(1) as f64,
        policies,
    }
}

/// One policy; `bounds` are the hits of first touch and of the oracle.
fn policy(result: &PolicyResult, bounds: (u64, u64)) -> SimulatedPolicy {
    let (first, oracle) = bounds;
    let gap = |hits: u64| (hits as f64 - first as f64) / (oracle as f64 - first as f64);
    SimulatedPolicy {
        policy: result.policy.clone(),
        is_bound: false,
        hit_rate: result.hit_rate(),
        hits: result.hits,
        time_ns: result.time.0,
        energy_pj: u64::try_from(result.energy.0).unwrap_or(u64::MAX),
        moved_bytes: result.moved.0,
        fast_used_bytes: result.fast_used.0,
        gap_closed: (oracle > first).then(|| gap(result.hits)),
        energy_of_interleaved: None,
    }
}

fn say_next(args: &SimulateArgs, console: Console) {
    let next = match args.input.as_deref().filter(|path| path.is_dir()) {
        Some(profile) if args.sweep => {
            format!("isotherm plan {} --fast 25%", shell_quoting::file(profile))
        }
        _ if args.sweep => format!("isotherm simulate {} --fast 25%", same_replay(args)),
        _ => format!(
            "isotherm simulate {} --sweep --plot sweep.html",
            same_replay(args)
        ),
    };
    console.next(&next);
}

/// The input and the flags that select the replay and the machine, without those for
/// capacity and output.
fn same_replay(args: &SimulateArgs) -> String {
    let mut words = match (&args.input, &args.generate) {
        (Some(path), _) => shell_quoting::file(path),
        (None, name) => format!(
            "--generate {} --seed {} --footprint {} --accesses {}",
            shell_quoting::word(name.as_deref().unwrap_or_default()),
            args.seed,
            args.footprint.exact(),
            args.accesses
        ),
    };
    words += &args.reading.options();
    if args.tiers != SIMULATED_TIERS {
        words += &format!(" --tiers {}", shell_quoting::word(&args.tiers));
    }
    if args.source != MonitorSource::Exact {
        words += &format!(" --source {}", args.source.word());
    }
    if let Some(accesses) = args.accesses_per_sample {
        words += &format!(" --accesses-per-sample {accesses}");
    }
    if args.power.to_string() != SIMULATED_POWER {
        words += &format!(" --power {}", args.power);
    }
    if let Some(devices) = args.devices {
        words += &format!(" --devices {devices}");
    }
    for policy in &args.policies {
        words += &format!(" --policy {}", shell_quoting::word(policy));
    }
    words
}
