//! `isotherm colocate` divides fast memory among recorded programs, writes a plan for each, and prints the expected slow-downs by every
//! policy; with `--run` it also times the programs, alone and together, by their plans.

mod object_names;
mod program_plan;
mod program_times;
mod runs;
mod shared_programs;
mod shortages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::{Context, Result, bail};
use isotherm_console::{Console, shell_quoting};
use isotherm_model::footprint::Footprint;
use isotherm_model::plan::Weight;
use isotherm_model::profile::Profile;
use isotherm_model::tier::Tiers;
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_policy::sharing::{SharedPlan, least_possible, slowdowns};
use isotherm_report::sharing::{Sharing, SharingOutcome, SharingProgram, SharingSource};
use isotherm_sys::affinity;

use super::plan::weight;
use crate::cli_colocate::ColocateArgs;
use crate::sharing::{self, SharedObjects};
use crate::{split, tiers_choice};
use object_names::ObjectNames;
use program_plan::program_plan;
use program_times::ProfiledProgram;
use runs::{RoundResults, TimedProgram};
use shared_programs::SharedPrograms;

/// Version of the JSON form.
const SCHEMA_VERSION: u32 = 1;

/// A program that takes part.
struct Part {
    profile: Profile,
    /// The file of its plan.
    plan: PathBuf,
}

/// Shares fast memory, writes the plans and prints what each program gets. Returns the exit status for the signal that interrupted the
/// runs, if any; it then prints the complete rounds.
///
/// # Errors
/// A profile that is unreadable or tells no times, an unknown policy, floors that cannot be kept, tiers that are no pair of known speed.
pub(crate) fn run(args: &ColocateArgs, console: Console) -> Result<Option<ExitStatus>> {
    sharing::check(&args.policy, &args.floors, args.fairness)?;
    if let Some(folder) = args.output.as_deref().filter(|folder| !folder.is_dir()) {
        bail!(
            "--output {}: is no directory; make it first",
            folder.display()
        );
    }
    let weight = weight(&args.weight)?;
    let parts = read(args, console)?;
    let tiers = tiers(args, &parts, console)?;
    let cache = tiers_choice::cache(args.cache, &tiers)?;
    let profiled = parts.iter().map(|(name, part)| {
        let program = ProfiledProgram::new(name, &part.profile, &tiers, console);
        (name.as_str(), program)
    });
    let forms = forms(args, &profiled.collect(), &tiers, weight)?;
    warn_of_unknown(&forms[0], console);
    let capacity = tiers.all()[0].capacity;
    let (policies, form, shared) = choose(args, &forms, capacity)?;
    warn_of_shortages(form, forms.len() > 1, capacity, console);
    let expected = slowdowns(&form.colocation, &shared);
    let names = ObjectNames::new(parts.iter().map(|(name, part)| (name, &part.profile)));
    let (mut programs, mut timed) = (Vec::new(), Vec::new());
    for (program, slowdown) in form.colocation.programs().iter().zip(expected) {
        let part = &parts[program.name()];
        let data = (&part.profile, &form.chunks[program.name()]);
        let plan = program_plan(program.name(), data, (&shared, &names), &tiers, weight)?;
        super::write_text(&part.plan, &isotherm_plan_text::write(&plan))?;
        if args.run {
            let (name, profile) = (program.name(), &part.profile);
            let pair = (weight, cache);
            timed.push(TimedProgram::new(name, profile, &plan, pair, console)?);
        }
        programs.push(SharingProgram {
            program: program.name().to_owned(),
            class: program.class().word(),
            footprint_bytes: program.footprint().0,
            fast_bytes: plan.tiers.all()[0].capacity.0,
            all_slow: program.slowdown(),
            slowdown,
            times: form.sources[program.name()],
            plan: part.plan.display().to_string(),
        });
    }
    let measured = match args.run {
        true => runs::run(&mut timed, (args.rounds, args.time_limit), console)?,
        false => RoundResults::default(),
    };
    let printed = Sharing {
        schema_version: SCHEMA_VERSION,
        capacity_bytes: capacity.0,
        policy: shared.policy.clone(),
        shares: form.objects.word(),
        least_sum: least_possible(&forms[forms.len() - 1].colocation, capacity),
        programs,
        policies,
        runs: measured.runs,
    };
    super::print_report(args.json, &printed, || printed.text())?;
    if let Some(part) = parts.values().next().filter(|_| !args.run) {
        let plan = shell_quoting::file(&part.plan);
        console.next(&format!("isotherm run --plan {plan} -- PROGRAM ..."));
    }
    Ok(measured.interrupted)
}

/// The outcomes of all policies, and the plan of the chosen one with the form of the programs that it shares.
fn choose<'a>(
    args: &ColocateArgs,
    forms: &'a [SharedPrograms],
    capacity: Bytes,
) -> Result<(Vec<SharingOutcome>, &'a SharedPrograms, SharedPlan)> {
    let ours = sharing::ours(&args.floors, args.fairness);
    let by_policy = || SharedObjects::of_policy(&args.policy);
    let wanted = args.share.unwrap_or_else(by_policy);
    let (mut outcomes, mut chosen) = (Vec::new(), None);
    for form in forms {
        // Where the tiers place no parts, there are whole sites only.
        let is_wanted = form.objects == wanted || forms.len() == 1;
        for (outcome, shared) in form.share(&ours, capacity) {
            if is_wanted && outcome.policy == args.policy {
                chosen = Some((form, shared.context("--floor")?));
            }
            outcomes.push(outcome);
        }
    }
    let (form, plan) = chosen.context("the policy was checked, and is not among the policies")?;
    Ok((outcomes, form, plan))
}

/// Reads the profiles, by the names of the programs.
fn read(args: &ColocateArgs, console: Console) -> Result<BTreeMap<String, Part>> {
    let names = sharing::program_names(args.profiles.iter().map(PathBuf::as_path));
    let mut parts = BTreeMap::new();
    for (name, path) in names.into_iter().zip(&args.profiles) {
        let (profile, _) = super::read_profile(path, console)?;
        let profile = super::placeable(profile, path, console)?;
        if profile.sites.is_empty() {
            bail!(
                "{}: holds no allocation site; was the program stopped at once?",
                path.display()
            );
        }
        super::warn_of_emulation(path, &profile, console);
        let beside = path.parent().unwrap_or(Path::new(""));
        let folder = args.output.as_deref().unwrap_or(beside);
        let plan = folder.join(format!("{name}.plan"));
        parts.insert(name, Part { profile, plan });
    }
    Ok(parts)
}

/// The shared pair of tiers.
fn tiers(args: &ColocateArgs, parts: &BTreeMap<String, Part>, console: Console) -> Result<Tiers> {
    let footprints = parts.values().map(|part| part.profile.footprint().0);
    let footprint = Footprint(footprints.sum());
    let tiers = tiers_choice::resolve(&args.tiers, Some(footprint), console)?;
    if tiers.all().len() != 2 {
        bail!(
            "--tiers {}: programs share the faster of two tiers, and there are {}",
            args.tiers.tiers,
            tiers.all().len()
        );
    }
    Ok(tiers)
}

/// The programs in each form to share: with whole sites as objects, then, where these tiers place parts of sites, with chunks.
fn forms(
    args: &ColocateArgs,
    programs: &BTreeMap<&str, ProfiledProgram<'_>>,
    tiers: &Tiers,
    weight: Weight,
) -> Result<Vec<SharedPrograms>> {
    let factors = tiers.slow_factors();
    let mut all = vec![SharedObjects::Sites];
    if split::is_possible(tiers) {
        all.push(SharedObjects::Chunks);
    } else if args.share == Some(SharedObjects::Chunks) {
        bail!(
            "--share chunks: the page trap places whole sites; name other tiers, such as emulated:cxl"
        );
    }
    let of = |objects| SharedPrograms::of(objects, programs, factors, (weight, args.chunk));
    all.into_iter().map(of).collect()
}

/// Warns of too few processors, and of a fast tier in which no object of this form fits.
fn warn_of_shortages(form: &SharedPrograms, has_chunks: bool, capacity: Bytes, console: Console) {
    let programs = form.colocation.programs().len();
    let processors = affinity::allowed().map_or(usize::MAX, |allowed| allowed.len());
    let of_processors = shortages::of_processors(programs, processors);
    let of_room = shortages::of_room(&form.colocation, form.objects, has_chunks, capacity);
    for warning in of_processors.into_iter().chain(of_room) {
        console.warn(&warning);
    }
}

/// Warns of sites that were not measured and cannot be predicted.
fn warn_of_unknown(form: &SharedPrograms, console: Console) {
    for (name, source) in &form.sources {
        if let SharingSource::Measured {
            unknown_sites: unknown @ 1..,
            ..
        } = source
        {
            console.warn(&format!(
                "program \"{name}\": {} without a measurement or a prediction, taken to gain nothing; \
                 `isotherm sensitivity --objects` measures more",
                counted(*unknown, "site")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::program_plan::program_plan;
    use super::{ObjectNames, ProfiledProgram, SharedPrograms, SharingSource};
    use crate::sharing::SharedObjects;
    use isotherm_console::Console;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::Weight;
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::sensitivity_runs::{FastData, SensitivityRun, SensitivityRuns, TierPair};
    use isotherm_model::shared_bandwidth::SharedBandwidth;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::{TierIndex, TierKind, Tiers};
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_policy::sharing::LeastSlowdown;

    const MIB: u64 = 1 << 20;

    /// A program of a thousand samples, with a site of 4 MiB for each number: the samples in which the program waited for that site.
    fn program(waits: &[u64]) -> Profile {
        let mut profile = Profile::new(Meta::default());
        for (number, waits) in (100..).zip(waits) {
            let id = SiteId(number);
            profile.sites.push(Site {
                peak_rss: Bytes(4 * MIB),
                ..Site::new(id, SiteKind::Heap)
            });
            profile.heat.push(Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: id,
                address: number << 30,
                object: None,
                accesses: Accesses(*waits),
                streamed: Accesses(0),
                served: Accesses(0),
            });
        }
        profile.sources = vec![SourceReport {
            taken: 1000,
            usable: 1000,
            ..SourceReport::new("timer", "")
        }];
        profile.meta.sample_interval = Some(Nanos(1_000_000));
        profile
    }

    /// These programs on a pair of tiers, in 8 MiB of fast memory.
    fn form(
        profiles: &BTreeMap<&str, Profile>,
        tiers: &Tiers,
        objects: SharedObjects,
    ) -> SharedPrograms {
        let profiled = profiles.iter().map(|(name, profile)| {
            let program = ProfiledProgram::new(name, profile, tiers, Console::new(true));
            (*name, program)
        });
        let pair = (Weight::PeakRss, Bytes(MIB));
        let made = SharedPrograms::of(objects, &profiled.collect(), tiers.slow_factors(), pair);
        made.expect("times")
    }

    fn emulated(preset: &str) -> Tiers {
        let emulation = Emulation::preset(preset).expect("a preset");
        Tiers::emulated(Bytes(8 * MIB), Bytes(1 << 40), emulation)
    }

    /// Plans of two programs by a policy, in 8 MiB of fast memory: for each the sites that are fast, and the bytes of its fast tier.
    fn plans(policy: &str, objects: SharedObjects) -> BTreeMap<String, (Vec<u64>, u64)> {
        let profiles = [("calm", &[50, 20][..]), ("hungry", &[500, 400, 5])];
        let profiles = profiles.map(|(name, waits)| (name, program(waits)));
        let profiles = BTreeMap::from(profiles);
        let tiers = emulated("cxl");
        let form = form(&profiles, &tiers, objects);
        let all = form.share(&LeastSlowdown::default(), Bytes(8 * MIB));
        assert_eq!(all.len(), 7);
        let mut chosen = all
            .into_iter()
            .filter(|(outcome, _)| outcome.policy == policy);
        let (_, shared) = chosen.next().expect("a policy");
        let shared = shared.expect("no floor");
        let owned = profiles
            .iter()
            .map(|(name, profile)| ((*name).to_owned(), profile));
        let owned: Vec<_> = owned.collect();
        let names = ObjectNames::new(owned.iter().map(|(name, profile)| (name, *profile)));
        let plan = |(name, profile): (&&str, &Profile)| {
            let data = (profile, &form.chunks[*name]);
            let plan = program_plan(name, data, (&shared, &names), &tiers, Weight::PeakRss);
            let plan = plan.expect("a pair");
            let fast = plan.assignments.iter();
            let fast = fast.filter(|site| site.tier == TierIndex::FASTEST);
            let mut fast: Vec<u64> = fast.map(|site| site.site.0).collect();
            fast.sort_unstable();
            (
                (*name).to_owned(),
                (fast, plan.tiers.all()[0].capacity.0 / MIB),
            )
        };
        profiles.iter().map(plan).collect()
    }

    #[test]
    fn each_program_gets_a_plan_with_its_own_share() {
        // The places of these sites are not known, so each is one chunk.
        for objects in [SharedObjects::Sites, SharedObjects::Chunks] {
            let equal = plans("equal-split", objects);
            assert_eq!(equal["calm"], (vec![100], 4));
            assert_eq!(equal["hungry"], (vec![100], 4));
            for policy in ["comerge", "least-slowdown"] {
                let merged = plans(policy, objects);
                assert_eq!(merged["calm"], (vec![], 0), "{policy}");
                assert_eq!(merged["hungry"], (vec![100, 101], 8), "{policy}");
            }
        }
    }

    #[test]
    fn the_plans_of_programs_on_a_machine_with_a_name_tell_its_whole_fast_memory() {
        let profile = program(&[500, 400]);
        let mut tiers = emulated("cxl");
        let shared = SharedBandwidth::new("5GiB/s".parse().ok(), None, "lab".parse().ok());
        let mut all = tiers.all().to_vec();
        if let TierKind::EmulatedSlow(Emulation::Time(costs)) = &mut all[1].kind {
            costs.shared = shared;
        }
        tiers = Tiers::new(all).expect("a pair");
        let profiles = BTreeMap::from([("only", profile)]);
        let form = form(&profiles, &tiers, SharedObjects::Sites);
        let granted = form
            .share(&LeastSlowdown::default(), Bytes(4 * MIB))
            .remove(0)
            .1;
        let granted = granted.expect("no floor");
        let names = ObjectNames::new(std::iter::empty());
        let data = (&profiles["only"], &form.chunks["only"]);
        let plan = program_plan("only", data, (&granted, &names), &tiers, Weight::PeakRss);
        let plan = plan.expect("a pair");
        assert_eq!(plan.tiers.all()[0].capacity, Bytes(4 * MIB));
        let TierKind::EmulatedSlow(Emulation::Time(costs)) = plan.tiers.all()[1].kind else {
            panic!("{:?}", plan.tiers)
        };
        let whole = costs.shared.expect("as before").capacity();
        assert_eq!(whole, Some(Bytes(8 * MIB)));
    }

    #[test]
    fn timed_runs_take_the_place_of_predicted_ones_on_the_same_tiers_only() {
        let cxl = emulated("cxl");
        let run = |(fast, seconds): (_, u64)| SensitivityRun {
            fast,
            round: 0,
            time: Nanos(seconds * 1_000_000_000),
        };
        let runs = [
            (FastData::Nothing, 9),
            (FastData::Site(SiteId(100)), 8),
            (FastData::All, 3),
        ];
        let mut timed = program(&[500, 400]);
        timed.sensitivity = Some(SensitivityRuns {
            tiers: TierPair::of(&cxl),
            runs: runs.map(run).to_vec(),
        });
        // Without a timer nothing is predicted.
        let mut alone = timed.clone();
        alone.sources.clear();
        let profiles = [("alone", alone), ("plain", program(&[9])), ("timed", timed)];
        let mut profiles = BTreeMap::from(profiles);
        let made = form(&profiles, &cxl, SharedObjects::Chunks);
        let measured = |unknown_sites| SharingSource::Measured {
            rounds: 1,
            measured_sites: 1,
            sites: 2,
            unknown_sites,
        };
        assert_eq!(made.sources["timed"], measured(0));
        assert_eq!(made.sources["alone"], measured(1));
        assert_eq!(made.sources["plain"], SharingSource::Predicted);
        let [alone, _, timed] = made.colocation.programs() else {
            panic!("three programs")
        };
        assert!((timed.slowdown() - 3.0).abs() < 1e-9);
        assert_eq!(timed.objects()[0].alone, Nanos(8_000_000_000));
        assert!(timed.objects()[1].alone < Nanos(8_000_000_000), "its share");
        assert_eq!(alone.objects()[1].alone, alone.all_slow());
        profiles.remove("alone");
        let made = form(&profiles, &emulated("nvm"), SharedObjects::Sites);
        assert_eq!(made.sources["timed"], SharingSource::Predicted);
    }
}
