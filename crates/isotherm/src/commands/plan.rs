//! `isotherm plan`: chooses a tier for each site, from a profile.

mod site_values;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use isotherm_act::callers::caller;
use isotherm_model::plan::{
    Assignment, ExpectedTimes, Item, PartItem, Plan, PlanBounds, Value, Weight,
};
use isotherm_model::port::SitePolicy;
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_observe::probe::KernelProbe;
use isotherm_pipeline::{ChunkParts, SiteParts, expected_times};
use isotherm_policy::{FirstTouch, PlanRequest, Thermos, plan_selected, policy_from_text};

use crate::chunk_plan;
use crate::cli::PlanArgs;
use crate::coloured_plan::{self, ColouredTiers};
use crate::split::{self, Split};
use crate::tiers_choice;
use isotherm_console::Console;
use isotherm_console::shell_quoting;

pub(super) use site_values::weight;

/// Makes and writes the plan.
///
/// # Errors
/// An unreadable profile, an unknown word, a profile without samples of a site.
pub(crate) fn run(args: &PlanArgs, console: Console) -> Result<()> {
    let (profile, _) = super::read_profile(&args.profile, console)?;
    let profile = super::placeable(profile, &args.profile, console)?;
    let plan = decide(args, &profile, console)?;
    let target = args
        .output
        .clone()
        .unwrap_or_else(|| super::beside(&args.profile, "plan"));
    super::write_text(&target, &isotherm_plan_text::write(&plan))?;
    if super::is_standard_output(&target) {
        return Ok(());
    }
    announce(&plan, console);
    if let Some(expected) = &plan.expected {
        console.info(&prediction(expected));
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
    console.next(&format!(
        "isotherm run --plan {} -- {} ...",
        shell_quoting::file(&target),
        program.as_deref().unwrap_or("PROGRAM")
    ));
    Ok(())
}

fn decide(args: &PlanArgs, profile: &Profile, console: Console) -> Result<Plan> {
    let by_chunks = chunk_plan::is_named(&args.policy);
    let policy: Box<dyn SitePolicy> = match by_chunks {
        // That of the tiers between the fastest and the slowest.
        true => Box::new(Thermos::default()),
        false => policy_from_text(&args.policy).context("--policy")?,
    };
    let (value, weight) = site_values::quantities(args, &*policy, profile)?;
    let shown = args.profile.display();
    if profile.sites.is_empty() {
        bail!("{shown}: holds no allocation site; was the program stopped at once?");
    }
    let counted = site_values::counted(args, profile, value).with_context(|| shown.to_string())?;
    let tiers = tiers_choice::resolve(&args.tiers, Some(profile.footprint()), console)?;
    check_balance(&*policy, &tiers)?;
    if value == Value::SampledBandwidth {
        console.warn(&format!(
            "the bandwidth of each site is estimated from its samples; runs with each of them alone in a tier measure it: {}",
            site_values::isolating(profile)
        ));
    }
    let items = items(profile, (value, weight), &shown.to_string(), console)?;
    let has_value = !items.is_empty();
    let footprint = profile.footprint().0;
    let ColouredTiers { tiers, colours } =
        coloured_plan::tiers(&*policy, (&items, footprint), tiers, &args.devices, console)?;
    let labels = isotherm_pipeline::labels(profile);
    let callers = profile.sites.iter().map(|site| (site.id, caller(site)));
    let callers: BTreeMap<_, _> = callers.collect();
    let whole = PlanRequest {
        value,
        counted,
        weight,
        command: &profile.meta.command,
        depth: profile.meta.depth,
        labels: Some(&labels),
        callers: has_value.then_some(&callers),
        ..PlanRequest::new(&*policy, &items, &tiers)
    };
    let (mut plan, parts) = match by_chunks {
        true => chunk_plan::plan(&args.policy, args.split, profile, &whole)?,
        false => by_sites(args.split, profile, &whole),
    };
    plan.expected = expected_times(profile, &plan, &parts);
    if let Some(expected) = plan
        .expected
        .filter(|times| !by_chunks && policy.fills() && times.planned - times.first_touch > SLOWER)
    {
        console.warn(&format!(
            "placing its sites apart would make the program slower than first touch does: {:.2} times the time of all fast against \
             {:.2}; this plan leaves all data to first touch",
            expected.planned, expected.first_touch
        ));
        plan = left_to_first_touch(plan, expected);
    }
    plan.frames = frames(profile, &plan);
    plan.colours = colours;
    Ok(plan)
}

/// The sites with their values; none where the caches served all accesses, so that nothing is placed.
fn items(
    profile: &Profile,
    (value, weight): (Value, Weight),
    shown: &str,
    console: Console,
) -> Result<Vec<Item>> {
    let items = isotherm_pipeline::items(profile, value, weight);
    if items.iter().any(|item| item.value > 0) {
        return Ok(items);
    }
    if value == Value::Bandwidth {
        bail!(
            "{shown}: the isolation runs counted no bytes of any site, so no site can be ranked; use a longer input: isotherm record \
             --isolate sites --force"
        );
    }
    if profile
        .served_by_site()
        .values()
        .all(|served| served.0 == 0)
    {
        bail!(
            "{shown}: has no access to any site, so no site can be ranked; record longer, or \
             see `isotherm doctor` for the sources this machine has"
        );
    }
    console.warn(
        "the caches served all accesses to sites that were sampled, by an estimate, so faster memory changes \
         nothing: this plan leaves all data to first touch; --cache of `isotherm record` says how much cache is assumed",
    );
    Ok(Vec::new())
}

/// Refuses a policy that balances tiers whose latencies under load are not known.
fn check_balance(policy: &dyn SitePolicy, tiers: &Tiers) -> Result<()> {
    let unknown = (0..tiers.all().len() as u32)
        .map(TierIndex)
        .find(|tier| tiers.loaded_latency(*tier).is_none());
    let Some(tier) = unknown
        .and_then(|tier| tiers.get(tier))
        .filter(|_| policy.balances())
    else {
        return Ok(());
    };
    let remedy = match tiers.emulates() {
        true => "give the emulated tiers limits: --tiers emulated:limit:5GiB/s,fast-limit:10GiB/s",
        false => "measure them: isotherm tiers --measure -o tiers.toml; then --tiers tiers.toml",
    };
    bail!(
        "--policy {} compares the latencies of the tiers under load, and tier {} has no known bandwidth or latency; {remedy}",
        policy.name(),
        tier.name
    );
}

/// The plan of a site policy, and the parts that it may have: none for a policy that balances, whose plan does not pay by the value
/// that fast memory serves.
fn by_sites(split: Split, profile: &Profile, whole: &PlanRequest<'_>) -> (Plan, SiteParts) {
    let parts = match split {
        Split::Auto if split::is_possible(whole.tiers) && !whole.policy.balances() => {
            isotherm_pipeline::site_parts(profile)
        }
        Split::Auto | Split::Never => SiteParts::new(),
    };
    let items = isotherm_pipeline::part_items(whole.items, &parts);
    (with_parts(whole, &items), parts)
}

/// How much slower than first touch a plan may be expected to be, over the time of all fast: less cannot be told apart.
const SLOWER: f64 = 0.02;

/// A plan without sites: all data goes where first touch would place it.
fn left_to_first_touch(plan: Plan, expected: ExpectedTimes) -> Plan {
    Plan {
        policy: FirstTouch.name().to_owned(),
        assignments: Vec::new(),
        small: BTreeMap::new(),
        default_tier: TierIndex::FASTEST,
        standing: PlanBounds {
            planned: plan.standing.first_touch,
            ..plan.standing
        },
        expected: Some(ExpectedTimes {
            planned: expected.first_touch,
            ..expected
        }),
        ..plan
    }
}

/// The plan with these parts, where they pay; else without.
fn with_parts(whole: &PlanRequest<'_>, parts: &BTreeMap<SiteId, Vec<PartItem>>) -> Plan {
    let split = isotherm_policy::plan(&PlanRequest {
        parts: Some(parts),
        ..*whole
    });
    let plan = isotherm_policy::plan(whole);
    match split::pays(&split, &plan) {
        true => split,
        // The bound is by part all the same: another policy may reach it.
        false => Plan {
            standing: PlanBounds {
                bound: split.standing.bound,
                ..plan.standing
            },
            ..plan
        },
    }
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

/// The callers of the plan's sites, by which another build is searched for them.
fn frames(profile: &Profile, plan: &Plan) -> BTreeMap<SiteId, Vec<Frame>> {
    let planned: BTreeSet<SiteId> = plan.assignments.iter().map(|site| site.site).collect();
    let sites = profile.sites.iter();
    sites
        .filter(|site| planned.contains(&site.id) && !site.frames.is_empty())
        .map(|site| (site.id, site.frames.to_vec()))
        .collect()
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
        let has_part = |site: &&Assignment| site.parts.iter().any(|part| part.tier == index);
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
    use isotherm_model::batch::{Epoch, ObjectRange, Process, SourceReport};
    use isotherm_model::isolation_runs::{
        BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns,
    };
    use isotherm_model::plan::{Plan, Value};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
    use isotherm_model::sensitivity_runs::TierPair;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    /// The plan of a profile with one site of so many samples beyond the caches, and so many that they served.
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
        let object = ObjectRange {
            address: 1 << 30,
            bytes: Bytes(128 * chunk),
        };
        let row = profile.heat[0];
        let heat = (0..128).map(|number| Heat {
            address: object.address + number * chunk,
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
