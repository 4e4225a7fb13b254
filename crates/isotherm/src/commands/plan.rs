//! `isotherm plan` chooses a tier for each site of a profile by a policy, for a size of the fast tier or, with `--slowdown`, for the
//! smallest that suffices, and writes the plan and, with `--guide`, the guide file of a Java heap. `of_selected` and `of_chosen` make, for
//! other commands, the plan in which given sites or parts of sites are fast and all other data is slow.

mod least_fast;
mod plan_input;
mod site_values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_act::callers::caller;
use isotherm_act::heap_guide::is_java_site;
use isotherm_model::plan::{Assignment, ExpectedTimes, Plan, Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_observe::probe::KernelProbe;
use isotherm_pipeline::{ChunkParts, expected_times};
use isotherm_policy::{PlanRequest, Thermos, plan_selected};

use crate::cli_plan::PlanArgs;
use crate::java_guide::{guide_of, in_words};
use crate::tiers_choice;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

use plan_input::{decide, frames};
pub(super) use site_values::weight;

/// Makes and writes the plan.
///
/// # Errors
/// An unreadable profile, an unknown word, a profile without samples of a site.
pub(crate) fn run(args: &PlanArgs, console: Console) -> Result<()> {
    let target = target(args);
    check_outputs(args, &target)?;
    let (profile, _) = super::read_profile(&args.profile, console)?;
    let profile = super::placeable(profile, &args.profile, console)?;
    let (plan, need) = match args.slowdown {
        Some(limit) => {
            let (plan, need) = least_fast::decide(args, (limit, &target), &profile, console)?;
            (plan, Some(need))
        }
        None => (decide(args, &profile, console)?, None),
    };
    let guide = args.guide.as_ref().map(|_| guide_of(&plan));
    let guide = guide.transpose().context("--guide")?;
    super::write_text(&target, &isotherm_plan_text::write(&plan))?;
    if let (Some(path), Some(guide)) = (&args.guide, &guide) {
        super::write_text(path, &guide.text)?;
        in_words(guide).iter().for_each(|said| console.info(said));
    }
    if super::is_standard_output(&target) {
        need.iter().for_each(|need| console.info(&need.in_words()));
        return Ok(());
    }
    announce(&plan, console);
    if let Some(expected) = &plan.expected {
        console.info(&prediction(expected));
    }
    if let Some(need) = &need {
        super::print_report(args.json, need, || need.in_words() + "\n")?;
    }
    if let Some(why) = tiers_choice::problem(&plan.tiers, &KernelProbe) {
        console.warn(&format!("{why}; the plan is for a machine where it can"));
        console.next("isotherm doctor");
        return Ok(());
    }
    let program = plan
        .command
        .first()
        .map(|program| shell_quoting::word(program));
    let is_java = plan.frames.values().any(|frames| is_java_site(frames));
    let heap = if is_java { "--java " } else { "" };
    console.next(&format!(
        "isotherm run --plan {} {heap}-- {} ...",
        shell_quoting::file(&target),
        program.as_deref().unwrap_or("PROGRAM")
    ));
    Ok(())
}

/// Refuses two results for standard output, and a result that would replace the profile.
fn check_outputs(args: &PlanArgs, target: &Path) -> Result<()> {
    let is_output = super::is_standard_output;
    let guide = args.guide.as_deref().is_some_and(is_output);
    match (is_output(target), args.json, guide) {
        (true, true, _) => {
            bail!("--json and -o -: both are for standard output; name a file for the plan")
        }
        (true, _, true) | (_, true, true) => {
            bail!("--guide -: only one result can go to standard output; name a file for the guide")
        }
        _ => {}
    }
    super::keep_inputs([&args.profile], target, "--output")?;
    let guide = args.guide.as_deref();
    guide.map_or(Ok(()), |guide| {
        super::keep_inputs([&args.profile], guide, "--guide")
    })
}

/// The file to which the plan is written.
fn target(args: &PlanArgs) -> PathBuf {
    let named = args.output.clone();
    named.unwrap_or_else(|| super::beside(&args.profile, "plan"))
}

/// The plan in which the selected sites are fast and all others slow. `name` is that of the selection.
pub(super) fn of_selected(
    profile: &Profile,
    pair: (&Tiers, Weight),
    name: &str,
    is_fast: impl Fn(SiteId) -> bool,
) -> Plan {
    let sites = profile.sites.iter().map(|site| site.id);
    let chosen = ChunkParts::of_sites(sites.filter(|site| is_fast(*site)));
    of_chosen(profile, pair, name, &chosen)
}

/// The plan in which the chosen parts of sites are fast and all other data is slow. `name` is that of the choice.
pub(super) fn of_chosen(
    profile: &Profile,
    (tiers, weight): (&Tiers, Weight),
    name: &str,
    chosen: &ChunkParts,
) -> Plan {
    let items = isotherm_pipeline::items(profile, Value::Accesses, weight);
    let parts = isotherm_pipeline::part_items(&items, &chosen.parts);
    let labels = isotherm_pipeline::labels(profile);
    let callers = profile.sites.iter().map(|site| (site.id, caller(site)));
    let callers: BTreeMap<_, _> = callers.collect();
    let others = Thermos::default();
    let request = PlanRequest {
        counted: profile.counted(),
        weight,
        command: &profile.meta.command,
        depth: profile.meta.depth,
        labels: Some(&labels),
        callers: Some(&callers),
        parts: Some(&parts),
        ..PlanRequest::new(&others, &items, tiers)
    };
    let is_chosen = |site, start| chosen.is_selected(site, start);
    let mut plan = plan_selected(&request, name, is_chosen);
    plan.expected = expected_times(profile, &plan, &chosen.parts);
    plan.frames = frames(profile, &plan);
    plan
}

fn announce(plan: &Plan, console: Console) {
    let emulated = if plan.tiers.emulates() {
        ", emulated"
    } else {
        ""
    };
    for (index, tier) in plan.tiers.all().iter().enumerate() {
        let index = TierIndex(index as u32);
        let sites = plan.assignments.iter().filter(|a| a.tier == index).count();
        let has_part = |site: &&Assignment| {
            let parts = site.parts.iter().map(|part| part.tier);
            let leading = site.leading.iter().map(|first| first.tier);
            parts.chain(leading).any(|tier| tier == index)
        };
        let parts = match plan.assignments.iter().filter(has_part).count() {
            0 => String::new(),
            split => format!(" and parts of {split} more"),
        };
        console.info(&format!(
            "{} gets {}{parts}, {} of {}{emulated}{}",
            tier.name,
            counted(sites, "site"),
            plan.bytes_in(index),
            tier.capacity,
            spill(plan, index)
        ));
    }
    if !plan.small.is_empty() {
        console.info(&format!(
            "{} also gets {}, with the arena that small sites share: neither memory nor {} was seen of each alone",
            plan.tiers.all()[plan.small_tier().0 as usize].name,
            counted(plan.small.len(), "small site"),
            plan.counted.noun()
        ));
    }
    console.info(&format!(
        "by {}, {} reaches {}",
        plan.valued(),
        plan.policy,
        plan.standing
    ));
}

/// What the plan predicts, in words.
fn prediction(expected: &ExpectedTimes) -> String {
    format!(
        "expect {:.2} times the time of all fast by this plan, {:.2} by first touch, {:.2} with all data slow",
        expected.planned, expected.first_touch, expected.all_slow
    )
}

/// The reason why a tier gets more than its capacity, if it does.
fn spill(plan: &Plan, index: TierIndex) -> String {
    let capacity = plan.tiers.all()[index.0 as usize].capacity;
    let over = plan.bytes_in(index).saturating_sub(capacity);
    if over == Bytes::ZERO {
        return String::new();
    }
    let policy = isotherm_policy::by_name(&plan.policy);
    match policy.and_then(|policy| policy.overfills()) {
        Some(why) if index != plan.tiers.slowest() => format!("; {why}, so {over} will spill"),
        _ if index != plan.tiers.slowest() => format!("; {over} will spill"),
        _ => format!("; {over} will not fit"),
    }
}

#[cfg(test)]
mod tests {
    use super::decide;
    use crate::cli::{Cli, Command};
    use clap::Parser;
    use isotherm_console::Console;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::isolation_runs::{
        BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns,
    };
    use isotherm_model::movement::AddressRange;
    use isotherm_model::plan::{Plan, Value};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
    use isotherm_model::sensitivity_runs::TierPair;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    /// The plan of a profile with one site of this many samples beyond the caches, and this many that the caches served.
    fn plan(accesses: u64, served: u64) -> Result<Plan, String> {
        decided(&profile(accesses, served), &[])
    }

    fn profile(accesses: u64, served: u64) -> Profile {
        let mut profile = Profile::new(Meta::default());
        let id = SiteId(1);
        profile.sites = vec![Site {
            peak_rss: Bytes(1 << 20),
            ..Site::new(id, SiteKind::Heap)
        }];
        profile.heat = vec![Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site: id,
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses(0),
            served: Accesses(served),
        }];
        profile.sources = vec![SourceReport {
            taken: 1000,
            usable: 900,
            ..SourceReport::new("timer", "")
        }];
        profile
    }

    /// The plan of a profile by these flags.
    fn decided(profile: &Profile, flags: &[&str]) -> Result<Plan, String> {
        let words = ["isotherm", "plan", "app.iso"];
        let tiers = match flags.contains(&"--tiers") {
            true => &[][..],
            false => &["--tiers", "emulated:cxl"],
        };
        let words = words.iter().chain(tiers).chain(flags);
        let Command::Plan(args) = Cli::parse_from(words).command else {
            panic!("another command");
        };
        decide(&args, profile, Console::new(true)).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn data_that_the_caches_serve_is_left_to_first_touch() {
        let plan = plan(0, 900).expect("a plan");
        assert_eq!(plan.assignments, []);
        assert!(plan.small.is_empty());
        assert_eq!(plan.default_tier, TierIndex::FASTEST);
        let expected = plan.expected.expect("the timer sampled");
        assert_eq!((expected.all_slow, expected.planned), (1.0, 1.0));
    }

    #[test]
    fn a_site_beyond_the_caches_is_planned_and_one_without_samples_refused() {
        assert_eq!(plan(500, 400).expect("a plan").assignments.len(), 1);
        let refused = plan(0, 0).expect_err("no sample");
        assert!(refused.contains("no access to any site"), "{refused}");
    }

    #[test]
    fn bandwidth_needs_a_run_of_each_site_with_accesses_that_counted_something() {
        let mut profile = profile(500, 0);
        profile.isolation = Some(IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::EmulatedAccount,
            runs: Vec::new(),
        });
        let mut refused_after = |isolated| {
            let run = IsolationRun {
                isolated,
                bytes: Bytes(0),
                time: Nanos(1),
            };
            profile.isolation.as_mut().expect("runs").add(run);
            decided(&profile, &["--value", "bandwidth"]).expect_err("refused")
        };
        let interrupted = refused_after(IsolatedData::Nothing);
        assert!(
            interrupted.contains("1 site with accesses had none"),
            "{interrupted}"
        );
        let goes_on = "isotherm record --isolate sites -o PROFILE";
        assert!(interrupted.contains(goes_on), "{interrupted}");
        let idle = refused_after(IsolatedData::Site(SiteId(1)));
        assert!(idle.contains("counted no bytes of any site"), "{idle}");
        assert!(!idle.contains("access"), "{idle}");
    }

    /// The profile of [`plan`] with another site, of 8 and of 4 GB/s.
    fn with_bandwidths() -> Profile {
        let mut profile = profile(500, 0);
        let second = SiteId(2);
        profile.sites.push(Site {
            peak_rss: Bytes(1 << 20),
            ..Site::new(second, SiteKind::Heap)
        });
        let row = Heat {
            site: second,
            ..profile.heat[0]
        };
        profile.heat.push(row);
        let run = |(site, gigabytes): (u64, u64)| IsolationRun {
            isolated: IsolatedData::Site(SiteId(site)),
            bytes: Bytes(gigabytes * 1_000_000_000),
            time: Nanos(1_000_000_000),
        };
        profile.isolation = Some(IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::EmulatedAccount,
            runs: [(1, 8), (2, 4)].map(run).to_vec(),
        });
        profile
    }

    #[test]
    fn a_balance_leaves_a_site_out_of_fast_memory_that_has_room_for_it() {
        let limits = "emulated:L:1,B:1,fast-limit:10GB/s,limit:5GB/s";
        let profile = with_bandwidths();
        let by = |policy: &[&str]| {
            let flags = [&["--tiers", limits, "--fast", "4MiB"], policy].concat();
            decided(&profile, &flags).expect("a plan")
        };
        let (filled, balanced) = (by(&[]), by(&["--policy", "balance"]));
        assert_eq!(filled.bytes_in(TierIndex::FASTEST), Bytes(2 << 20));
        assert_eq!(balanced.bytes_in(TierIndex::FASTEST), Bytes(1 << 20));
        assert_eq!(balanced.tier_of(SiteId(1)), TierIndex::FASTEST);
        let expected = |plan: &Plan| plan.expected.expect("the timer sampled").planned;
        assert_eq!(expected(&filled), 1.0);
        // 12 GB/s of which fast memory serves 10: balanced, no tier is overloaded.
        assert!(
            (expected(&balanced) - 1.0 / 1.2).abs() < 1e-9,
            "{balanced:?}"
        );
    }

    #[test]
    fn a_balance_of_tiers_of_unknown_bandwidth_or_by_another_value_is_refused() {
        let balance = |more: &[&str]| {
            let flags = [&["--policy", "balance"], more].concat();
            decided(&with_bandwidths(), &flags).expect_err("refused")
        };
        let tiers = balance(&["--tiers", "emulated:limit:5GB/s"]);
        assert!(
            tiers.contains("tier fast has no known bandwidth"),
            "{tiers}"
        );
        assert!(tiers.contains("fast-limit:10GiB/s"), "{tiers}");
        let limits = "emulated:fast-limit:10GB/s,limit:5GB/s";
        let value = balance(&["--tiers", limits, "--value", "accesses"]);
        assert!(value.contains("only bytes a second"), "{value}");
    }

    /// The profile of [`with_bandwidths`] without its runs in isolation: both sites wait for streams of 5 GB/s and 2.5 GB/s.
    fn with_samples() -> Profile {
        let mut profile = with_bandwidths();
        profile.isolation = None;
        profile.meta.sample_interval = Some(Nanos(1_000_000));
        profile.epochs = vec![EpochSpan {
            epoch: Epoch(0),
            span: Nanos(1_000_000_000),
        }];
        for (heat, samples) in profile.heat.iter_mut().zip([500, 250]) {
            (heat.accesses, heat.streamed) = (Accesses(samples), Accesses(samples));
        }
        profile
    }

    #[test]
    fn a_balance_without_runs_in_isolation_goes_by_the_samples_and_the_plan_says_so() {
        let limits = "emulated:L:1,B:1,fast-limit:5000MB/s,limit:2500MB/s";
        let flags = ["--tiers", limits, "--fast", "4MiB", "--policy", "balance"];
        let plan = decided(&with_samples(), &flags).expect("a plan");
        assert_eq!(plan.value, Value::SampledBandwidth);
        assert_eq!(plan.valued(), "estimated bytes a second");
        let values: Vec<u64> = plan.assignments.iter().map(|site| site.value).collect();
        assert_eq!(values, [5_000_000_000, 2_500_000_000]);
        assert_eq!(plan.tier_of(SiteId(1)), TierIndex::FASTEST);
        assert_eq!(plan.tier_of(SiteId(2)), TierIndex(1));
        // Both tiers serve what they are asked for, where the fast one alone would take half as long again.
        let expected = plan.expected.expect("the timer sampled");
        assert!((expected.planned - 1.0 / 1.5).abs() < 1e-9, "{expected:?}");
        let text = isotherm_plan_text::write(&plan);
        let read = isotherm_plan_text::read(&text).expect("is read back");
        assert_eq!(read.value, Value::SampledBandwidth);
    }

    #[test]
    fn counts_that_tell_no_bytes_are_refused_under_the_flag_that_needs_them() {
        let limits = ["--tiers", "emulated:fast-limit:10GB/s,limit:5GB/s"];
        let mut profile = with_samples();
        profile.sources = vec![SourceReport {
            taken: 9,
            usable: 9,
            ..SourceReport::new("trapped-pages", "")
        }];
        let refused = |flags: &[&str]| {
            let flags = [&limits[..], flags].concat();
            decided(&profile, &flags).expect_err("refused")
        };
        let balance = refused(&["--policy", "balance"]);
        assert!(
            balance.contains("--policy balance needs the bytes"),
            "{balance}"
        );
        assert!(
            balance.contains("isotherm record --isolate sites"),
            "{balance}"
        );
        assert!(!balance.contains("--value"), "{balance}");
        let value = refused(&["--value", "sampled-bandwidth"]);
        assert!(value.contains("--value sampled-bandwidth needs"), "{value}");
        let measured = refused(&["--value", "bandwidth"]);
        assert!(
            measured.contains("--value sampled-bandwidth takes an estimate"),
            "{measured}"
        );
    }

    /// A profile of one object of 128 chunks, of which seven hold most of the accesses.
    fn uneven() -> Profile {
        let mut profile = profile(0, 100);
        let chunk = 64 << 10;
        profile.meta.chunk = Bytes(chunk);
        profile.sites[0].peak_rss = Bytes(128 * chunk);
        let object = AddressRange {
            start: 1 << 30,
            bytes: Bytes(128 * chunk),
        };
        let row = profile.heat[0];
        let heat = (0..128).map(|number| Heat {
            address: object.start + number * chunk,
            object: Some(object.into()),
            accesses: Accesses(if (32..39).contains(&number) { 500 } else { 5 }),
            served: Accesses(0),
            ..row
        });
        profile.heat.extend(heat);
        profile.sources[0].taken = 9_000;
        profile.sources[0].usable = 4_700;
        profile
    }

    #[test]
    fn chunk_selection_plans_the_hot_part_of_a_site() {
        let profile = uneven();
        let chunk = profile.meta.chunk.0;
        let plan = decided(&profile, &["--policy", "atmem", "--fast", "2MiB"]).expect("a plan");
        assert_eq!(plan.policy, "atmem");
        let [site] = plan.assignments.as_slice() else {
            panic!("{:?}", plan.assignments);
        };
        assert_eq!(site.tier, TierIndex(1));
        let parts = site.parts.iter();
        let parts: Vec<_> = parts
            .map(|part| (part.start.0 / chunk, part.end.0 / chunk, part.tier.0))
            .collect();
        assert_eq!(parts, [(32, 40, 0)]);
        assert_eq!(plan.bytes_in(TierIndex::FASTEST), Bytes(8 * chunk));
        let expected = plan.expected.expect("the timer sampled");
        assert!(expected.planned < expected.first_touch, "{expected:?}");

        let whole = ["--policy", "atmem", "--split", "never", "--fast", "2MiB"];
        let whole = decided(&profile, &whole).expect("a plan");
        assert_eq!(whole.bytes_in(TierIndex::FASTEST), Bytes(0));
    }

    #[test]
    fn chunk_selection_is_refused_where_parts_cannot_be_placed_or_a_parameter_is_wrong() {
        let refused = |flags: &[&str]| decided(&uneven(), flags).expect_err("refused");
        let trap = [
            "--policy",
            "atmem",
            "--tiers",
            "emulated:tmp",
            "--fast",
            "2MiB",
        ];
        let trap = refused(&trap);
        assert!(trap.contains("the page trap places whole sites"), "{trap}");
        let wrong = refused(&["--policy", "atmem=m:1", "--fast", "2MiB"]);
        assert!(wrong.contains("m is 1, and must be at least 2"), "{wrong}");
        let unknown = refused(&["--policy", "atmen"]);
        assert!(unknown.contains("fractional, atmem"), "{unknown}");
    }
}
