//! `isotherm colocate`: shares the fast memory among programs, and writes a plan for each.

mod program_plan;
mod runs;
mod shared_programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_console::{Console, print, shell_quoting};
use isotherm_model::footprint::Footprint;
use isotherm_model::plan::Weight;
use isotherm_model::profile::Profile;
use isotherm_model::tier::Tiers;
use isotherm_model::units::Bytes;
use isotherm_policy::sharing::{SharedPlan, least_possible, slowdowns};
use isotherm_report::sharing::{Sharing, SharingOutcome, SharingProgram};

use super::plan::weight;
use crate::cli_colocate::ColocateArgs;
use crate::sharing::{self, SharedObjects};
use crate::{split, tiers_choice};
use program_plan::program_plan;
use runs::TimedProgram;
use shared_programs::SharedPrograms;

/// Version of the JSON form.
const SCHEMA_VERSION: u32 = 1;

/// A program that takes part.
struct Part {
    profile: Profile,
    /// Where its plan goes.
    plan: PathBuf,
}

/// Shares, writes the plans and prints what each program gets.
///
/// # Errors
/// An unreadable profile or one without times, an unknown policy, floors that cannot be kept, tiers that are no pair of known speed.
pub(crate) fn run(args: &ColocateArgs, console: Console) -> Result<()> {
    sharing::check(&args.policy, &args.floors)?;
    if let Some(folder) = args.output.as_deref().filter(|folder| !folder.is_dir()) {
        bail!(
            "--output {}: is no directory; make it first",
            folder.display()
        );
    }
    let weight = weight(&args.weight)?;
    let parts = read(args, console)?;
    let tiers = tiers(args, &parts, console)?;
    let profiles = parts
        .iter()
        .map(|(name, part)| (name.as_str(), &part.profile));
    let profiles: BTreeMap<&str, &Profile> = profiles.collect();
    let forms = predicted(args, &profiles, &tiers, weight)?;
    let capacity = tiers.all()[0].capacity;
    let (policies, form, shared) = choose(args, &forms, capacity)?;
    let expected = slowdowns(&form.colocation, &shared);
    let (mut programs, mut timed) = (Vec::new(), Vec::new());
    for (program, slowdown) in form.colocation.programs().iter().zip(expected) {
        let part = &parts[program.name()];
        let data = (&part.profile, &form.chunks[program.name()]);
        let plan = program_plan(program.name(), data, &shared, &tiers, weight)?;
        super::write_text(&part.plan, &isotherm_plan_text::write(&plan))?;
        if args.run {
            let (name, profile) = (program.name(), &part.profile);
            timed.push(TimedProgram::new(name, profile, &plan, weight, console)?);
        }
        programs.push(SharingProgram {
            program: program.name().to_owned(),
            class: program.class().word(),
            footprint_bytes: program.footprint().0,
            fast_bytes: plan.tiers.all()[0].capacity.0,
            all_slow: program.slowdown(),
            slowdown,
            plan: part.plan.display().to_string(),
        });
    }
    let runs = match args.run {
        true => runs::run(&mut timed, args.rounds, console)?,
        false => None,
    };
    let printed = Sharing {
        schema_version: SCHEMA_VERSION,
        capacity_bytes: capacity.0,
        policy: shared.policy.clone(),
        shares: form.objects.word(),
        least_sum: least_possible(&forms[forms.len() - 1].colocation, capacity),
        programs,
        policies,
        runs,
    };
    print(&match args.json {
        true => printed.json(),
        false => printed.text(),
    })?;
    if let Some(part) = parts.values().next().filter(|_| !args.run) {
        let plan = shell_quoting::file(&part.plan);
        console.next(&format!("isotherm run --plan {plan} -- PROGRAM ..."));
    }
    Ok(())
}

/// The outcomes of all policies, and the plan of the chosen one with the form of the programs that it shares.
fn choose<'a>(
    args: &ColocateArgs,
    forms: &'a [SharedPrograms],
    capacity: Bytes,
) -> Result<(Vec<SharingOutcome>, &'a SharedPrograms, SharedPlan)> {
    let floors = args.floors.iter().cloned().collect();
    let by_policy = || SharedObjects::of_policy(&args.policy);
    let wanted = args.share.unwrap_or_else(by_policy);
    let (mut outcomes, mut chosen) = (Vec::new(), None);
    for form in forms {
        // Where the tiers place no parts, there are whole sites only.
        let is_wanted = form.objects == wanted || forms.len() == 1;
        for (outcome, shared) in form.share(&floors, capacity) {
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
        if profile.sites.is_empty() {
            bail!(
                "{}: holds no allocation site; was the program stopped at once?",
                path.display()
            );
        }
        if profile.meta.emulated {
            console.warn(&format!(
                "{}: was recorded on emulated tiers, so its time waiting for memory is too long, and its slow-downs are, too; record \
                 the program by `isotherm record`",
                path.display()
            ));
        }
        let beside = path.parent().unwrap_or(Path::new(""));
        let folder = args.output.as_deref().unwrap_or(beside);
        let plan = folder.join(format!("{name}.plan"));
        parts.insert(name, Part { profile, plan });
    }
    Ok(parts)
}

/// The shared pair of tiers.
fn tiers(args: &ColocateArgs, parts: &BTreeMap<String, Part>, console: Console) -> Result<Tiers> {
    let footprint: Bytes = parts
        .values()
        .map(|part| part.profile.footprint().0)
        .fold(Bytes::ZERO, Bytes::saturating_add);
    let tiers = tiers_choice::resolve(&args.tiers, Some(Footprint(footprint)), console)?;
    if tiers.all().len() != 2 {
        bail!(
            "--tiers {}: programs share the faster of two tiers, and there are {}",
            args.tiers.tiers,
            tiers.all().len()
        );
    }
    Ok(tiers)
}

/// The programs as they are shared, whole sites first; chunks where these tiers place parts of sites.
fn predicted(
    args: &ColocateArgs,
    profiles: &BTreeMap<&str, &Profile>,
    tiers: &Tiers,
    weight: Weight,
) -> Result<Vec<SharedPrograms>> {
    let factors = tiers.slow_factors().context(
        "the tiers do not say how much slower the slow one is, so no run can be predicted; `isotherm tiers --measure` finds it, or \
         name emulated:cxl",
    )?;
    let mut all = vec![SharedObjects::Sites];
    if split::is_possible(tiers) {
        all.push(SharedObjects::Chunks);
    } else if args.share == Some(SharedObjects::Chunks) {
        bail!(
            "--share chunks: the page trap places whole sites; name other tiers, such as emulated:cxl"
        );
    }
    let of = |objects| SharedPrograms::of(objects, profiles, factors, (weight, args.chunk));
    all.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::SharedPrograms;
    use super::program_plan::program_plan;
    use crate::sharing::SharedObjects;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::Weight;
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::{TierIndex, Tiers};
    use isotherm_model::units::{Accesses, Bytes};

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
        profile.meta.sample_interval = Some(isotherm_model::units::Nanos(1_000_000));
        profile
    }

    /// Plans of two programs by a policy, in 8 MiB of fast memory: for each the sites that are fast, and the bytes of its fast tier.
    fn plans(policy: &str, objects: SharedObjects) -> BTreeMap<String, (Vec<u64>, u64)> {
        let profiles = [("calm", &[50, 20][..]), ("hungry", &[500, 400, 5])];
        let profiles = profiles.map(|(name, waits)| (name, program(waits)));
        let profiles: BTreeMap<&str, &Profile> = profiles
            .iter()
            .map(|(name, profile)| (*name, profile))
            .collect();
        let emulation = Emulation::preset("cxl").expect("a preset");
        let tiers = Tiers::emulated(Bytes(8 * MIB), Bytes(1 << 40), emulation);
        let factors = tiers.slow_factors().expect("a preset has factors");
        let pair = (Weight::PeakRss, Bytes(MIB));
        let form = SharedPrograms::of(objects, &profiles, factors, pair).expect("times");
        let all = form.share(&BTreeMap::new(), Bytes(8 * MIB));
        assert_eq!(all.len(), 6);
        let mut chosen = all
            .into_iter()
            .filter(|(outcome, _)| outcome.policy == policy);
        let (_, shared) = chosen.next().expect("a policy");
        let shared = shared.expect("no floor");
        let plan = |(name, profile): (&&str, &&Profile)| {
            let data = (*profile, &form.chunks[*name]);
            let plan = program_plan(name, data, &shared, &tiers, Weight::PeakRss);
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
}
