//! `decide` finds the plan of `isotherm plan --slowdown`: that with the least fast memory by which the program is expected to be slower
//! than all fast by no more than a limit. It refuses, with the remedy, what has no prediction that depends on the size: a profile without
//! the time waiting for memory, tiers of unknown latencies, a policy that ignores `--fast`. The search is [`least_capacity`]: a page less
//! than it finds is not enough, but where a policy does worse with a little more memory, it may miss a still smaller size.
//!
//! For each size that it tries, the search makes the plan that `--fast` would make, and takes the time that the plan predicts.

use std::path::Path;

use anyhow::{Result, bail};
use isotherm_console::Console;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Plan, Value};
use isotherm_model::profile::Profile;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;
use isotherm_model::words::{percent, share};
use isotherm_policy::{PAGE, least_capacity};
use isotherm_report::fast_memory_need::{FastMemoryNeed, SCHEMA_VERSION, exact_percent};

use super::plan_input::{PlanInput, Planned, finished};
use super::site_values;
use crate::cli_plan::PlanArgs;
use crate::sharing::program_names;
use crate::tiers_choice;

/// Fast memory is tried in whole pages, by which plans weigh sites.
const STEP: Bytes = Bytes(PAGE);

/// The plan, which is to be written to `target`, and how much fast memory it needs.
///
/// # Errors
/// As for an ordinary plan; or nothing is predicted of these tiers and this profile, or no size of the fast tier is enough.
pub(super) fn decide(
    args: &PlanArgs,
    (limit, target): (f64, &Path),
    profile: &Profile,
    console: Console,
) -> Result<(Plan, FastMemoryNeed)> {
    crate::commands::warn_of_emulation(&args.profile, profile, console);
    let input = PlanInput::of(args, profile, console)?;
    check_predicted(&input)?;
    let tiers = input.coloured(console)?.tiers;
    let at = |capacity: Bytes| input.plan(&tiers.with_fast_capacity(capacity));
    let most = most(&input);
    let is_enough = |planned: &Planned| expected(planned).is_some_and(|time| time <= 1.0 + limit);
    let Some((fast, planned)) = least_capacity((most, STEP), &at, is_enough)? else {
        bail!(too_slow(&input, limit, most, &at(most)?));
    };
    let footprint = profile.footprint().0;
    let need = FastMemoryNeed {
        schema_version: SCHEMA_VERSION,
        program: program_names([args.profile.as_path()].into_iter()).concat(),
        policy: planned.plan.policy.clone(),
        emulated: tiers.emulates(),
        slowdown_limit: limit,
        expected_slowdown: expected(&planned).map_or(0.0, |time| time - 1.0),
        fast_bytes: fast.0,
        footprint_bytes: footprint.0,
        share_of_footprint: share(fast.0, footprint.0),
        plan: target.display().to_string(),
    };
    Ok((finished(planned, profile, console), need))
}

/// The time by this plan, over that of all fast.
fn expected(planned: &Planned) -> Option<f64> {
    planned.plan.expected.map(|times| times.planned)
}

/// The most fast memory that is tried: all sites at their peaks, each in whole pages, or the footprint where that is more; and no more
/// than `--fast` can be.
fn most(input: &PlanInput<'_>) -> Bytes {
    let whole_pages =
        |bytes: Bytes| Bytes(bytes.0.checked_next_multiple_of(PAGE).unwrap_or(bytes.0));
    let sites = input.items.iter().filter(|item| item.site.is_placeable());
    let sites: Bytes = sites.map(|item| whole_pages(item.weight)).sum();
    let all = sites.max(whole_pages(input.profile.footprint().0));
    all.min(tiers_choice::most_fast(&input.args.tiers, &input.tiers))
}

/// Refuses what has no prediction, or one that does not depend on `--fast`.
fn check_predicted(input: &PlanInput<'_>) -> Result<()> {
    let shown = input.args.profile.display();
    if input.policy.adds_devices() {
        bail!(
            "--slowdown: --policy {} chooses by the share of the accesses, whatever --fast is; name a policy that fills the fast tier, or \
             give --fast",
            input.policy.name()
        );
    }
    if input.tiers.all().len() == 1 {
        bail!(
            "--slowdown: these tiers are one, so nothing is slower than fast memory; name another, such as --tiers emulated:cxl"
        );
    }
    let counted = input.profile.counted();
    if counted != CountUnit::Time {
        bail!(
            "{shown}: --slowdown needs the time for which the program waited, and this profile holds {}, which tell none: record with \
             source `timer`",
            counted.units()
        );
    }
    if input.tiers.slow_factors().is_none() {
        bail!(no_factors(&input.tiers));
    }
    if has_limit(&input.tiers)
        && input.value != Value::SampledBandwidth
        && !site_values::has_bandwidths(input.profile)
    {
        bail!(
            "{shown}: --slowdown: these tiers have a limit of the bandwidth, and without the bandwidth of each site nothing is predicted \
             of it; measure them: {}; or take an estimate: --value sampled-bandwidth",
            site_values::isolating(input.profile)
        );
    }
    Ok(())
}

/// The reason why the tiers do not tell how much slower they are.
fn no_factors(tiers: &Tiers) -> &'static str {
    match tiers.emulates() {
        true => {
            "--slowdown: the page trap delays the first access to a page in a period, so that nothing is predicted from the time that the \
             program waits; name other tiers, such as --tiers emulated:cxl"
        }
        false => {
            "--slowdown: the latencies of these tiers are not known, so nothing is predicted; measure them: isotherm tiers --measure -o \
             tiers.toml; then --tiers tiers.toml"
        }
    }
}

/// Whether a bandwidth of the emulated pair is limited: the factors of streams know nothing of it.
fn has_limit(tiers: &Tiers) -> bool {
    let limit = |tier| tiers.bandwidth(tier).is_some();
    tiers.emulates() && (limit(TierIndex::FASTEST) || limit(tiers.slowest()))
}

/// The reason why no size of the fast tier is enough, from the plan with the most.
fn too_slow(input: &PlanInput<'_>, limit: f64, most: Bytes, planned: &Planned) -> String {
    let slower = expected(planned).map_or(0.0, |time| time - 1.0);
    let held = tiers_choice::most_fast(&input.args.tiers, &input.tiers);
    let why = match most < held {
        true => "more of it would serve no more",
        false => "there is no more of it",
    };
    format!(
        "--slowdown: by --policy {}, the program is expected to be {} slower than all fast even with {most} of fast memory, and {why}; \
         allow more than {}, or name another policy",
        input.args.policy,
        percent(slower),
        exact_percent(limit)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use isotherm_console::Console;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::plan::Plan;
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_policy::{ATMEM, PAGE, names};
    use isotherm_report::fast_memory_need::FastMemoryNeed;

    use super::super::plan_input::decide as of_size;
    use super::decide;
    use crate::cli::{Cli, Command};
    use crate::cli_plan::PlanArgs;

    /// Sites as kibibytes, samples beyond the caches of 10,000, and those of them in streams.
    const SITES: [(u64, u64, u64); 6] = [
        (4_096, 10, 0),
        (300, 900, 100),
        (1_024, 600, 600),
        (64, 40, 0),
        (8_192, 700, 200),
        (130, 0, 0),
    ];

    fn profile() -> Profile {
        let mut profile = Profile::new(Meta {
            command: vec!["./app".into()],
            sample_interval: Some(Nanos(1_000_000)),
            ..Meta::default()
        });
        profile.epochs = vec![EpochSpan {
            epoch: Epoch(0),
            span: Nanos(10_000_000_000),
        }];
        for (number, (kibibytes, samples, streamed)) in (11..).zip(SITES) {
            let id = SiteId(u64::from(number));
            profile.sites.push(Site {
                first_seen: number,
                peak_rss: Bytes(kibibytes << 10),
                peak_requested: Bytes((kibibytes << 10) - 100),
                ..Site::new(id, SiteKind::Mapping)
            });
            profile.heat.push(Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: id,
                address: 0,
                object: None,
                accesses: Accesses(samples),
                streamed: Accesses(streamed),
                served: Accesses(1),
            });
        }
        profile.sources = vec![SourceReport {
            taken: 10_000,
            usable: 9_000,
            ..SourceReport::new("timer", "")
        }];
        profile
    }

    fn parsed(flags: &[&str]) -> Result<PlanArgs, String> {
        let tiers = match flags.contains(&"--tiers") {
            true => &[][..],
            false => &["--tiers", "emulated:L:3,B:2"],
        };
        let words = ["isotherm", "plan", "runs/app.iso"];
        let words = words.iter().chain(tiers).chain(flags);
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Plan(args)) => Ok(args),
            Ok(_) => Err("another command".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn searched(profile: &Profile, flags: &[&str]) -> Result<(Plan, FastMemoryNeed), String> {
        let args = parsed(flags)?;
        let limit = args.slowdown.expect("a limit");
        let target = Path::new("app.plan");
        let found = decide(&args, (limit, target), profile, Console::new(true));
        found.map_err(|error| format!("{error:#}"))
    }

    /// The plan for this much fast memory.
    fn sized(fast: Bytes, flags: &[&str]) -> Plan {
        let fast = fast.exact();
        let args = parsed(&[flags, &["--fast", &fast]].concat()).expect("flags");
        of_size(&args, &profile(), Console::new(true)).expect("a plan")
    }

    fn time(plan: &Plan) -> f64 {
        plan.expected.expect("the timer sampled").planned
    }

    /// Whether a plan is found that is at most this many per cent slower. It is then the plan of `--fast` for its size; a page less is too
    /// slow.
    fn is_found(flags: &[&str], percent: i32) -> bool {
        let limit = format!("{percent}%");
        let all = [flags, &["--slowdown", &limit]].concat();
        let Ok((plan, need)) = searched(&profile(), &all) else {
            return false;
        };
        let most = 1.0 + f64::from(percent) / 100.0;
        assert_eq!(plan, sized(Bytes(need.fast_bytes), flags), "{all:?}");
        assert!(time(&plan) <= most, "{all:?}: {need:?}");
        assert!((time(&plan) - 1.0 - need.expected_slowdown).abs() < 1e-9);
        let less = Bytes(need.fast_bytes.saturating_sub(PAGE));
        assert!(
            less == Bytes::ZERO || time(&sized(less, flags)) > most,
            "{all:?}: {need:?}"
        );
        true
    }

    #[test]
    fn the_plan_is_that_of_its_size_and_a_page_less_is_too_slow() {
        let without_limits = names().filter(|name| !["cold-set", "balance"].contains(name));
        let mut found = 0;
        for policy in without_limits.chain([ATMEM]) {
            for percent in [0, 1, 2, 5, 9, 20, 31, 300] {
                for weight in ["peak-rss", "peak-requested"] {
                    let flags = ["--policy", policy, "--weight", weight];
                    found += i32::from(is_found(&flags, percent));
                }
            }
        }
        assert!(found > 100, "{found} plans");
    }

    #[test]
    fn the_plan_of_a_balance_is_found_by_the_bandwidths_that_it_estimates() {
        let limits = "emulated:L:3,B:2,fast-limit:5GB/s,limit:2GB/s";
        let flags = ["--tiers", limits, "--policy", "balance"];
        let found = [5, 20, 300].map(|percent| is_found(&flags, percent));
        assert!(found.contains(&true), "{found:?}");
    }

    #[test]
    fn nothing_slower_takes_all_that_is_waited_for_and_any_slow_down_takes_a_page() {
        let need = |limit| {
            searched(&profile(), &["--slowdown", limit])
                .expect("a plan")
                .1
        };
        // All but the site without samples, by whole sites.
        let waited_for = (4_096 + 300 + 1_024 + 64 + 8_192) << 10;
        assert_eq!(need("0%").fast_bytes, waited_for);
        assert_eq!(need("1000%").fast_bytes, PAGE);
        let some = need("20%");
        assert!(some.fast_bytes < waited_for, "{some:?}");
        assert_eq!(
            (some.program.as_str(), some.footprint_bytes),
            ("app", 8 << 20)
        );
        assert!(some.emulated);
    }

    #[test]
    fn a_policy_that_leaves_fast_memory_empty_is_told_with_its_slow_down() {
        let refused = searched(&profile(), &["--policy", "all-slow", "--slowdown", "2%"]);
        let refused = refused.expect_err("all is slow");
        for part in ["--policy all-slow", "36 % slower", "more than 2 %"] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
    }

    #[test]
    fn what_has_no_prediction_is_refused_with_the_remedy() {
        let refused = |profile: &Profile, flags: &[&str]| {
            let flags = [&["--slowdown", "2%"], flags].concat();
            searched(profile, &flags).expect_err("refused")
        };
        let cold = refused(&profile(), &["--policy", "cold-set"]);
        assert!(cold.contains("whatever --fast is"), "{cold}");
        let trap = refused(&profile(), &["--tiers", "emulated:tmp"]);
        assert!(trap.contains("the page trap"), "{trap}");
        let limited = ["--tiers", "emulated:L:3,B:2,limit:1GB/s"];
        let limit = refused(&profile(), &limited);
        assert!(limit.contains("a limit of the bandwidth"), "{limit}");
        assert!(limit.contains("record --isolate sites"), "{limit}");
        let estimated = [
            &limited[..],
            &["--slowdown", "2%", "--value", "sampled-bandwidth"],
        ];
        assert!(searched(&profile(), &estimated.concat()).is_ok());
        let mut counted = profile();
        counted.sources = vec![SourceReport {
            taken: 9,
            usable: 9,
            ..SourceReport::new("instrumented", "")
        }];
        let counted = refused(&counted, &[]);
        assert!(
            counted.contains("the time for which the program waited"),
            "{counted}"
        );
    }

    #[test]
    fn a_size_beside_a_slow_down_and_json_without_one_are_refused() {
        let both = parsed(&["--slowdown", "2%", "--fast", "1GiB"]).expect_err("both");
        assert!(both.contains("cannot be used with"), "{both}");
        let json = parsed(&["--json"]).expect_err("no slow-down");
        assert!(json.contains("--slowdown"), "{json}");
        let wrong = parsed(&["--slowdown", "2"]).expect_err("no percentage");
        assert!(wrong.contains("is no slow-down such as 2%"), "{wrong}");
    }
}
