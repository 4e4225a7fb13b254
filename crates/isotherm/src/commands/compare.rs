//! `isotherm compare` times one program in four placements (guided by a plan, all slow, first touch, all fast), and prints the times and
//! the share of the gap between first touch and all fast that the plan closes. It refuses a plan that places nothing of the program, unless
//! the plan leaves all data to first touch.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_act::configuration::Configuration;
use isotherm_model::plan::Plan;
use isotherm_model::port::SitePolicy;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Nanos;
use isotherm_model::variant_words;
use isotherm_model::words::counted;
use isotherm_policy::FirstTouch;
use isotherm_report::comparison::Comparison;
use isotherm_report::parts::{self, split_sites};
use isotherm_report::times::Times;

use super::run::{covered, warn_if_foreign};
use crate::cli::CompareArgs;
use crate::fit::{self, Fitted};
use crate::launch::{self, EndedProgram};
use crate::session_summary::recorded_sites;
use crate::static_data::{self, StaticPlacement};
use crate::tiers_choice;
use crate::timed_runs::{DifferingOutput, RunResults, TimedPlacement, TimedRuns, without_limit};
use isotherm_console::shell_quoting;
use isotherm_console::{Console, print};

/// Columns of the lines about parts.
const COLUMNS: usize = 100;

variant_words! {
    /// The placements in the order of the runs of a round: a plan that matches no site is detected after the first run.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Placement {
        Guided = "guided",
        AllSlow = "all slow",
        FirstTouch = "first touch",
        AllFast = "all fast",
    }
}

impl Placement {
    /// Its name in JSON.
    fn key(self) -> String {
        self.word().replace(' ', "_")
    }

    /// The runtime's configuration. Only the guided run places single sites: the other placements send all data to one tier, and first
    /// touch spills when the fast tier is full.
    fn configuration(self, plan: &Plan, static_data: &StaticData) -> Configuration {
        let all_in = |tier| Configuration {
            static_tier: static_data.is_placed.then_some(tier),
            ..Configuration::all_in(plan, tier)
        };
        match self {
            Self::AllSlow => all_in(plan.tiers.slowest()),
            Self::FirstTouch => all_in(TierIndex::FASTEST),
            Self::Guided => static_data
                .placement
                .guided(plan, &static_data.program, None),
            Self::AllFast => Configuration {
                tiers: Some(without_limit(&plan.tiers)),
                ..all_in(TierIndex::FASTEST)
            },
        }
    }
}

/// How the placements treat the static data of the program.
struct StaticData {
    /// The placement of static data in the guided runs.
    placement: StaticPlacement,
    /// Whether static data is placed at all: by the plan, or because a flag says where.
    is_placed: bool,
    /// The program's file.
    program: PathBuf,
}

/// The times of a placement; `None` where no run of it is counted.
fn times(runs: &RunResults, placement: Placement) -> Option<Times> {
    Times::of(&runs.times[placement as usize])
}

/// Runs and prints the comparison. Returns the exit status for the signal that interrupted it, if any; it then prints the complete rounds.
///
/// # Errors
/// A plan that cannot be read or matches no site, a program that fails, and with --check-output a run whose
/// output differs.
pub(crate) fn run(args: &CompareArgs, console: Console) -> Result<Option<ExitStatus>> {
    let program = launch::program(&args.program.words)?;
    let fitted = fit::fitted(&super::read_plan(&args.plan)?, &program);
    fitted.say(console);
    let plan = &fitted.plan;
    let placement = args.static_data.unwrap_or_default();
    let static_data = StaticData {
        placement,
        is_placed: placement != StaticPlacement::Plan || static_data::is_planned(plan),
        program,
    };
    let mut runs = time_all(args, (&fitted, &static_data), console)?;
    let interrupted = runs.interrupted;
    if runs.keep_whole_rounds(args.rounds, console) == 0 && interrupted.is_some() {
        return Ok(interrupted);
    }
    // The command that is run may differ from that of the plan.
    let command = shell_quoting::as_text(&args.program.words);
    print(&shown(plan, &command, &runs, args.json))?;
    console.next(&format!(
        "isotherm explain {} SITE",
        shell_quoting::file(&args.plan)
    ));
    Ok(interrupted)
}

/// Times every placement in turn, and checks after the first guided run that the plan fits.
fn time_all(
    args: &CompareArgs,
    (fitted, static_data): (&Fitted, &StaticData),
    console: Console,
) -> Result<RunResults> {
    let cache = tiers_choice::cache(args.cache, &fitted.plan.tiers)?;
    let placements = Placement::ALL.map(|placement| TimedPlacement {
        name: placement.word().to_owned(),
        configuration: Configuration {
            cache,
            ..placement.configuration(&fitted.plan, static_data)
        },
        is_bound: false,
    });
    let runs = TimedRuns {
        words: &args.program.words,
        placements: &placements,
        rounds: args.rounds,
        differing: DifferingOutput::by_flag(args.check_output),
        limit: None,
    };
    runs.run(console, |number, ended| match Placement::ALL[number] {
        Placement::Guided => check_fit(args, fitted, ended, console),
        _ => Ok(()),
    })
}

/// Whether `isotherm plan` left all data to first touch: nothing had a value, or any choice would have been slower.
fn is_left_to_first_touch(plan: &Plan) -> bool {
    let no_value = plan.standing.total == 0 && plan.default_tier == TierIndex::FASTEST;
    plan.assignments.is_empty() && (no_value || plan.policy == FirstTouch.name())
}

/// Refuses a guided run in which the runtime was off: it places nothing, and what the program allocated is unknown.
///
/// # Errors
/// The runtime was off in every process of the program.
fn check_worked(args: &CompareArgs, ended: &EndedProgram, console: Console) -> Result<()> {
    if ended.summary.worked() {
        return Ok(());
    }
    launch::warn_of(&ended.summary, console);
    bail!(
        "{}: there is nothing to compare: the guided run ran without Isotherm, for the reason above, so nothing was placed",
        args.plan.display()
    )
}

/// Refuses a plan of which the program allocated no site: its guided runs would be the same as without a plan. A plan
/// that [leaves all to first touch](is_left_to_first_touch) is accepted.
///
/// # Errors
/// No site of the plan was allocated, or the program ran without the runtime.
fn check_fit(
    args: &CompareArgs,
    fitted: &Fitted,
    ended: &EndedProgram,
    console: Console,
) -> Result<()> {
    let plan = &fitted.original;
    if is_left_to_first_touch(plan) {
        console.info("the plan leaves all data to first touch: guided runs are the same");
        return Ok(());
    }
    check_worked(args, ended, console)?;
    let seen = covered(fitted, &recorded_sites(&ended.session));
    if !plan.assignments.is_empty() && !seen.is_foreign() {
        warn_if_foreign(plan, &seen, console);
        return Ok(());
    }
    let command = shell_quoting::line(&shell_quoting::as_text(&args.program.words));
    let made = match seen.only_in_plan.len() {
        0 => "it names no site".to_owned(),
        1 => "its one site was not made by this program".to_owned(),
        sites => format!("none of its {sites} sites was made by this program"),
    };
    bail!(
        "{}: there is nothing to compare: {made}, so a guided run places everything by default. The plan is of \
         `{}`, or of another build; make one of this program: isotherm record -o app.iso -- {command}, then isotherm plan \
         app.iso",
        args.plan.display(),
        plan.command.join(" ")
    )
}

/// The modelled time of a run in which as much of its value is fast as the fractional bound allows,
/// interpolated between all slow and all fast.
fn bound(plan: &Plan, slow: Nanos, fast: Nanos) -> Nanos {
    let standing = &plan.standing;
    let share = if standing.total == 0 {
        1.0
    } else {
        standing.bound as f64 / standing.total as f64
    };
    Nanos((slow.0 as f64 - (slow.0 as f64 - fast.0 as f64) * share).max(0.0) as u64)
}

fn comparison(plan: &Plan, runs: &RunResults) -> Comparison {
    let [slow, fast] = [Placement::AllSlow, Placement::AllFast].map(|it| times(runs, it));
    let bounds = slow.as_ref().zip(fast.as_ref());
    let bound = bounds.map(|(slow, fast)| bound(plan, slow.fastest(), fast.fastest()));
    Comparison {
        all_slow: slow,
        first_touch: times(runs, Placement::FirstTouch),
        guided: times(runs, Placement::Guided),
        all_fast: fast,
        bound,
        expected: plan.expected,
    }
}

/// The comparison as JSON: the time of every run in seconds, with medians, minima and maxima, the predicted times, the share of the gap
/// that the plan closed, and whether the program's outputs differed.
fn to_json(
    plan: &Plan,
    command: &[String],
    comparison: &Comparison,
    runs: &RunResults,
) -> serde_json::Value {
    let seconds = |nanos: Nanos| nanos.0 as f64 / 1e9;
    let all = Placement::ALL.map(|it| {
        let times = runs.times[it as usize].iter().copied();
        (it.word(), times.map(seconds).collect::<Vec<_>>())
    });
    let each = |figure: fn(&Times) -> Nanos| {
        let figure = |it| times(runs, it).map(|times| seconds(figure(&times)));
        BTreeMap::from(Placement::ALL.map(|it| (it.key(), figure(it))))
    };
    serde_json::json!({
        "command": command,
        "emulated": plan.tiers.emulates(),
        "valued": plan.valued(),
        "fast_bytes": plan.tiers.all()[0].capacity.0,
        "runs_seconds": BTreeMap::from(all),
        "median_seconds": each(|times| times.median()),
        "min_seconds": each(|times| times.fastest()),
        "max_seconds": each(|times| times.slowest()),
        "modelled_bound_seconds": comparison.bound.map(seconds),
        "expected_over_all_fast": plan.expected.map(|expected| serde_json::json!({
            "all_slow": expected.all_slow,
            "first_touch": expected.first_touch,
            "guided": expected.planned,
            "bound": expected.bound,
        })),
        "prediction_error": comparison.prediction_error(),
        "prediction_within_noise": comparison.prediction_within_noise(),
        "gap_closed": comparison.gap_closed(),
        "guided_within_noise_of_first_touch": comparison.guided_within_noise(),
        "first_touch_within_noise_of_all_fast": comparison.gap_within_noise(),
        "split_sites": split_sites(plan),
        "outputs_differ": runs.outputs_differ,
    })
}

fn shown(plan: &Plan, command: &[String], runs: &RunResults, json: bool) -> String {
    let comparison = comparison(plan, runs);
    if json {
        return format!("{:#}\n", to_json(plan, command, &comparison, runs));
    }
    let emulated = if plan.tiers.emulates() {
        " (emulated)"
    } else {
        ""
    };
    format!(
        "{}\nfast tier {}{emulated}; {}; the bound is modelled from the {}\n{}\n",
        command.join(" "),
        plan.tiers.all()[0].capacity,
        counted(runs.times[0].len(), "round"),
        plan.valued(),
        comparison.render().trim_end()
    ) + &parts(plan)
}

/// The sites that the plan places in parts, after an empty line; nothing without such sites.
fn parts(plan: &Plan) -> String {
    let sites = split_sites(plan);
    match sites.is_empty() {
        true => String::new(),
        false => format!("\n{}", parts::render(&sites, &plan.valued(), COLUMNS)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Placement, RunResults, StaticData, shown};
    use crate::static_data::StaticPlacement;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Nanos;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

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

    /// A program whose static data is placed nowhere.
    fn untouched() -> StaticData {
        StaticData {
            placement: StaticPlacement::Plan,
            is_placed: false,
            program: PathBuf::from("/nonexistent"),
        }
    }

    #[test]
    fn static_data_is_in_the_tier_of_each_bound_where_the_guided_runs_place_it() {
        let plan = isotherm_plan_text::read(PLAN).unwrap();
        let placed = StaticData {
            placement: StaticPlacement::Fast,
            is_placed: true,
            ..untouched()
        };
        let tiers = Placement::ALL.map(|it| it.configuration(&plan, &placed).static_tier);
        let (fast, slow) = (Some(TierIndex(0)), Some(TierIndex(1)));
        assert_eq!(tiers, [fast, slow, fast, fast]);
        let tiers = Placement::ALL.map(|it| it.configuration(&plan, &untouched()).static_tier);
        assert_eq!(tiers, [None; 4]);
    }

    #[test]
    fn the_bounds_know_neither_the_sites_of_the_plan_nor_their_callers() {
        let plan = isotherm_plan_text::read(PLAN).unwrap();
        let guided = Placement::Guided.configuration(&plan, &untouched());
        assert_eq!(guided.entries.len(), 1);
        assert_eq!(guided.callers.map(|callers| callers.len()), Some(1));
        for placement in Placement::ALL {
            if placement == Placement::Guided {
                continue;
            }
            let bound = placement.configuration(&plan, &untouched());
            assert_eq!(bound.entries, [], "{placement:?}");
            assert_eq!(bound.callers, Some(BTreeMap::new()), "{placement:?}");
        }
    }

    #[test]
    fn what_is_shown_is_named_by_the_command_that_ran() {
        let plan = isotherm_plan_text::read(PLAN).unwrap();
        let runs = runs([1_000_000_000; 3]);
        let command = ["other".to_owned(), "--size".to_owned()];
        for json in [false, true] {
            let shown = shown(&plan, &command, &runs, json);
            assert!(shown.contains("other") && !shown.contains("app"), "{shown}");
        }
    }

    fn runs(rounds: [u64; 3]) -> RunResults {
        RunResults {
            times: vec![rounds.map(Nanos).to_vec(); 4],
            ..RunResults::default()
        }
    }

    #[test]
    fn json_has_the_range_beside_the_median_and_says_what_is_noise() {
        let plan = isotherm_plan_text::read(PLAN).unwrap();
        let text = shown(
            &plan,
            &[],
            &runs([1, 2, 3].map(|seconds| seconds * 1_000_000_000)),
            true,
        );
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (key, seconds) in [
            ("min_seconds", 1.0),
            ("median_seconds", 2.0),
            ("max_seconds", 3.0),
        ] {
            for placement in Placement::ALL {
                assert_eq!(json[key][placement.key()], seconds, "{text}");
            }
        }
        assert_eq!(json["guided_within_noise_of_first_touch"], true, "{text}");
    }

    #[test]
    fn parts_of_sites_are_shown_beside_the_times() {
        let part = "part 0000000000000005 fast from 0B to 4KiB value 3 weight 4KiB\n";
        let site = "fast value 1 weight 4KiB caller 0000000000000007";
        let slow = site.replace("fast value 1 weight 4KiB", "slow value 4 weight 16KiB");
        let text = PLAN.replace(site, &slow) + part;
        let plan = isotherm_plan_text::read(&text).unwrap();
        let runs = runs([1_000_000_000; 3]);
        let json: serde_json::Value =
            serde_json::from_str(&shown(&plan, &[], &runs, true)).unwrap();
        let site = &json["split_sites"][0];
        assert_eq!(
            (&site["fast_bytes_share"], &site["fast_value_share"]),
            (&0.25.into(), &0.75.into())
        );
        assert_eq!(site["ranges"][0]["end_bytes"], 4096);
        let text = shown(&plan, &[], &runs, false);
        assert!(text.contains("1 site is placed in parts"), "{text}");
        let whole = isotherm_plan_text::read(PLAN).unwrap();
        let text = shown(&whole, &[], &runs, false);
        assert!(!text.contains("parts"), "{text}");
    }

    #[test]
    fn placements_are_numbered_as_they_run() {
        assert_eq!(
            Placement::ALL.map(|placement| placement as usize),
            [0, 1, 2, 3]
        );
    }
}
