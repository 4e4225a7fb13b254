//! `isotherm compare`: one program under four placements in turn, so that a guided run is seen
//! between its bounds.

use std::fs::File;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_act::configuration::Configuration;
use isotherm_model::plan::Plan;
use isotherm_model::tier::{Tier, TierIndex, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_report::comparison::Comparison;

use super::run::{covered, warn_if_foreign};
use crate::aftermath::Aftermath;
use crate::cli::CompareArgs;
use crate::fit::{self, Fitted};
use crate::hint;
use crate::launch::{self, Output};
use crate::notes::{Notes, print};

/// The placements, slowest first by expectation.
const PLACEMENTS: [Placement; 4] = [
    Placement::AllSlow,
    Placement::FirstTouch,
    Placement::Guided,
    Placement::AllFast,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    AllSlow,
    FirstTouch,
    Guided,
    AllFast,
}

impl Placement {
    const fn name(self) -> &'static str {
        match self {
            Self::AllSlow => "all slow",
            Self::FirstTouch => "first touch",
            Self::Guided => "guided",
            Self::AllFast => "all fast",
        }
    }

    /// How the runtime is told. The bounds name no site: everything goes one way, and first touch
    /// spills when the fast tier is full.
    fn configuration(self, plan: &Plan) -> Configuration {
        match self {
            Self::AllSlow => Configuration::all_in(plan, plan.tiers.slowest()),
            Self::FirstTouch => Configuration::all_in(plan, TierIndex::FASTEST),
            Self::Guided => Configuration::guided(plan),
            Self::AllFast => Configuration {
                tiers: Some(without_limit(&plan.tiers)),
                ..Configuration::all_in(plan, TierIndex::FASTEST)
            },
        }
    }
}

/// The same tiers with an unbounded emulated fast tier. The kernel bounds real ones.
fn without_limit(tiers: &Tiers) -> Tiers {
    let lifted = |tier: &Tier| match tier.kind {
        TierKind::EmulatedFast => Tier {
            capacity: Bytes(u64::MAX),
            ..tier.clone()
        },
        TierKind::EmulatedSlow(_) | TierKind::Nodes(_) => tier.clone(),
    };
    let all = tiers.all().iter().map(lifted).collect();
    Tiers::new(all).unwrap_or_else(|_| tiers.clone())
}

/// Runs and prints the comparison. Returns the signal by which it was interrupted, if it was: what whole
/// rounds there are is printed then.
///
/// # Errors
/// A plan that cannot be read, a program that fails, a run whose output differs.
pub(crate) fn run(args: &CompareArgs, notes: Notes) -> Result<Option<ExitStatus>> {
    let fitted = fit::fitted(
        &super::read_plan(&args.plan)?,
        &launch::program(&args.program.words)?,
    );
    fitted.say(notes);
    let plan = &fitted.plan;
    let mut times = vec![Vec::new(); PLACEMENTS.len()];
    let interrupted = time_all(args, &fitted, &mut times, notes)?;
    if interrupted.is_some() {
        let whole = times.iter().map(Vec::len).min().unwrap_or(0);
        times.iter_mut().for_each(|times| times.truncate(whole));
        notes.warn(&format!(
            "interrupted after {whole} of {} rounds",
            args.rounds
        ));
        if whole == 0 {
            return Ok(interrupted);
        }
    }
    print(&shown(plan, &command(args), &times, args.json))?;
    notes.next(&format!("isotherm explain {} SITE", hint::file(&args.plan)));
    Ok(interrupted)
}

/// The command that is run, which need not be the one that the plan was made for.
fn command(args: &CompareArgs) -> Vec<String> {
    let words = args.program.words.iter();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Times every placement in turn, round by round; until the signal that is returned.
fn time_all(
    args: &CompareArgs,
    fitted: &Fitted,
    times: &mut [Vec<Duration>],
    notes: Notes,
) -> Result<Option<ExitStatus>> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let mut expected: Option<Vec<u8>> = None;
    let progress = notes.progress("running");
    for round in 0..args.rounds {
        for (index, placement) in PLACEMENTS.iter().enumerate() {
            progress.set_message(format!(
                "round {} of {}: {}",
                round + 1,
                args.rounds,
                placement.name()
            ));
            let path = directory.path().join("output");
            let configuration = placement.configuration(&fitted.plan);
            let (took, aftermath) = match time_one(args, &configuration, &path, placement.name())? {
                Run::Whole(took, aftermath) => (took, aftermath),
                Run::Interrupted(status) => {
                    progress.finish_and_clear();
                    return Ok(Some(status));
                }
            };
            if round == 0 && *placement == Placement::Guided {
                progress.suspend(|| {
                    warn_if_foreign(&fitted.original, &covered(fitted, &aftermath), notes)
                });
            }
            times[index].push(took);
            let output = std::fs::read(&path).context("the program's output cannot be read")?;
            match &expected {
                None => expected = Some(output),
                Some(first) if *first == output => {}
                Some(_) => bail!(
                    "round {}, {}: the program's output differs from its first run, so its times \
                     cannot be compared; leave times and other changing text out of its output",
                    round + 1,
                    placement.name()
                ),
            }
        }
    }
    progress.finish_and_clear();
    Ok(None)
}

/// What became of one run.
enum Run {
    /// How long it took, and what the runtime left behind.
    Whole(Duration, Aftermath),
    /// Somebody wanted it and us to end.
    Interrupted(ExitStatus),
}

fn time_one(
    args: &CompareArgs,
    configuration: &Configuration,
    output: &std::path::Path,
    name: &str,
) -> Result<Run> {
    let file = File::create(output).context("the program's output cannot be kept")?;
    let ready = launch::prepare(&args.program.words, configuration, Output::File(file))?;
    let (session, mut running) = ready.start()?;
    let status = running.until_end()?;
    let took = running.elapsed();
    if let Some(signal) = running.interrupted() {
        // A program that takes it well and ends by itself is no reason to go on.
        return Ok(Run::Interrupted(match status.success() {
            true => signal,
            false => status,
        }));
    }
    let aftermath = Aftermath::read(&session);
    if let Some((pid, why)) = aftermath.off.first_key_value() {
        bail!("in the {name} run Isotherm was off in process {pid}: {why}");
    }
    if !status.success() {
        bail!("the {name} run ended with {status}; its time cannot be compared");
    }
    Ok(Run::Whole(took, aftermath))
}

fn median(times: &[Duration]) -> Nanos {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let nanos = |at: usize| sorted[at].as_nanos() as u64;
    if sorted.len() % 2 == 1 {
        Nanos(nanos(middle))
    } else {
        Nanos(u64::midpoint(nanos(middle - 1), nanos(middle)))
    }
}

/// What a run would take if as much of its value were fast as the fractional bound allows, in
/// proportion between all slow and all fast.
fn bound(plan: &Plan, slow: Nanos, fast: Nanos) -> Nanos {
    let standing = &plan.standing;
    let share = if standing.total == 0 {
        1.0
    } else {
        standing.bound as f64 / standing.total as f64
    };
    Nanos((slow.0 as f64 - (slow.0 as f64 - fast.0 as f64) * share).max(0.0) as u64)
}

fn comparison(plan: &Plan, command: &[String], times: &[Vec<Duration>]) -> Comparison {
    let of = |placement| {
        let index = PLACEMENTS.iter().position(|known| *known == placement)?;
        Some(median(&times[index]))
    };
    let (slow, fast) = (of(Placement::AllSlow), of(Placement::AllFast));
    Comparison {
        workload: command.join(" "),
        all_slow: slow,
        first_touch: of(Placement::FirstTouch),
        guided: of(Placement::Guided),
        all_fast: fast,
        bound: slow.zip(fast).map(|(slow, fast)| bound(plan, slow, fast)),
    }
}

/// The table as JSON: every run's time in seconds, the medians, the gap that guiding closed.
fn to_json(
    plan: &Plan,
    command: &[String],
    comparison: &Comparison,
    times: &[Vec<Duration>],
) -> serde_json::Value {
    let seconds = |nanos: Option<Nanos>| nanos.map(|nanos| nanos.0 as f64 / 1e9);
    let runs: serde_json::Map<String, serde_json::Value> = PLACEMENTS
        .iter()
        .zip(times)
        .map(|(placement, times)| {
            let times: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
            (placement.name().to_owned(), times.into())
        })
        .collect();
    serde_json::json!({
        "command": command,
        "emulated": plan.tiers.emulates(),
        "fast_bytes": plan.tiers.all()[0].capacity.0,
        "runs_seconds": runs,
        "median_seconds": {
            "all_slow": seconds(comparison.all_slow),
            "first_touch": seconds(comparison.first_touch),
            "guided": seconds(comparison.guided),
            "all_fast": seconds(comparison.all_fast),
        },
        "modelled_bound_seconds": seconds(comparison.bound),
        "gap_closed": comparison.gap_closed(),
    })
}

fn shown(plan: &Plan, command: &[String], times: &[Vec<Duration>], json: bool) -> String {
    let comparison = comparison(plan, command, times);
    if json {
        return format!("{:#}\n", to_json(plan, command, &comparison, times));
    }
    let emulated = if plan.tiers.emulates() {
        " (emulated)"
    } else {
        ""
    };
    format!(
        "{}\nfast tier {}{emulated}, medians of {} rounds; the bound is modelled\n{}\n",
        command.join(" "),
        plan.tiers.all()[0].capacity,
        times[0].len(),
        comparison.render().trim_end()
    )
}

#[cfg(test)]
mod tests {
    use super::{PLACEMENTS, Placement, median, shown};
    use isotherm_model::plan_text;
    use isotherm_model::units::Nanos;
    use std::collections::BTreeMap;
    use std::time::Duration;

    const PLAN: &str = "isotherm-plan 1
policy thermos
value accesses
weight peak-rss
depth 4
command app
tier fast emulated-fast capacity 64MiB placement preferred
tier slow emulated-slow capacity 8GiB placement preferred period 20ms access 1us hot 1us migrate 1us
default slow
standing planned 0 first-touch 0 bound 0 total 0
site 0000000000000005 fast value 1 weight 4KiB caller 0000000000000007
";

    #[test]
    fn the_bounds_know_neither_the_sites_of_the_plan_nor_their_callers() {
        let plan = plan_text::read(PLAN).unwrap();
        let guided = Placement::Guided.configuration(&plan);
        assert_eq!(guided.entries.len(), 1);
        assert_eq!(guided.callers.map(|callers| callers.len()), Some(1));
        for placement in PLACEMENTS {
            if placement == Placement::Guided {
                continue;
            }
            let bound = placement.configuration(&plan);
            assert_eq!(bound.entries, [], "{placement:?}");
            assert_eq!(bound.callers, Some(BTreeMap::new()), "{placement:?}");
        }
    }

    #[test]
    fn what_is_shown_is_named_by_the_command_that_ran() {
        let plan = plan_text::read(PLAN).unwrap();
        let times = vec![vec![Duration::from_secs(1)]; PLACEMENTS.len()];
        let command = ["other".to_owned(), "--size".to_owned()];
        for json in [false, true] {
            let shown = shown(&plan, &command, &times, json);
            assert!(shown.contains("other") && !shown.contains("app"), "{shown}");
        }
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let times = [4, 1, 3, 2].map(Duration::from_nanos);
        assert_eq!(median(&times[..3]), Nanos(3));
        assert_eq!(median(&times), Nanos(2));
    }
}
