//! `isotherm colocate`: shares the fast memory among programs, and writes a plan for each.

mod runs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_console::{Console, print, shell_quoting};
use isotherm_model::footprint::Footprint;
use isotherm_model::plan::{Plan, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{Tier, Tiers};
use isotherm_model::units::Bytes;
use isotherm_pipeline::predicted_runs;
use isotherm_policy::sharing::{
    Colocation, Grant, MeasuredProgram, SharedPlan, least_possible, slowdowns,
};
use isotherm_report::sharing::{Sharing, SharingOutcome, SharingProgram};

use super::plan::{of_selected, weight};
use crate::cli_colocate::ColocateArgs;
use crate::{sharing, tiers_choice};
use runs::TimedProgram;

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
    let colocation = colocation(&parts, &tiers, weight)?;
    let capacity = tiers.all()[0].capacity;
    let floors = args.floors.iter().cloned().collect();
    let (outcomes, shared) = share(&args.policy, &floors, &colocation, capacity)?;
    let expected = slowdowns(&colocation, &shared);
    let (mut programs, mut timed) = (Vec::new(), Vec::new());
    for (program, slowdown) in colocation.programs().iter().zip(expected) {
        let part = &parts[program.name()];
        let plan = plan_of(program, &part.profile, &shared, &tiers, weight)?;
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
        least_sum: least_possible(&colocation, capacity),
        programs,
        policies: outcomes,
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

/// The predicted runs of all programs.
fn colocation(parts: &BTreeMap<String, Part>, tiers: &Tiers, weight: Weight) -> Result<Colocation> {
    let factors = tiers.slow_factors().context(
        "the tiers do not say how much slower the slow one is, so no run can be predicted; `isotherm tiers --measure` finds it, or \
         name emulated:cxl",
    )?;
    let mut programs = Vec::new();
    for (name, part) in parts {
        let runs = predicted_runs(name, &part.profile, factors, weight);
        programs.push(runs.with_context(|| format!("program \"{name}\""))?);
    }
    Ok(Colocation::new(programs)?)
}

/// The outcome of every policy, and the plan of the chosen one.
fn share(
    chosen: &str,
    floors: &BTreeMap<String, u32>,
    colocation: &Colocation,
    capacity: Bytes,
) -> Result<(Vec<SharingOutcome>, SharedPlan)> {
    let (mut outcomes, mut plan) = (Vec::new(), None);
    for policy in sharing::policies(floors) {
        let shared = match policy.share(colocation, capacity) {
            Ok(shared) => shared,
            Err(error) if policy.name() == chosen => return Err(error).context("--floor"),
            Err(error) => {
                outcomes.push(SharingOutcome {
                    policy: policy.name().to_owned(),
                    utility: 0.0,
                    slowdowns: Vec::new(),
                    refused: Some(error.to_string()),
                });
                continue;
            }
        };
        outcomes.push(SharingOutcome {
            policy: policy.name().to_owned(),
            utility: shared.utility(),
            slowdowns: slowdowns(colocation, &shared),
            refused: None,
        });
        if policy.name() == chosen {
            plan = Some(shared);
        }
    }
    let plan = plan.context("the policy was checked, and is not among the policies")?;
    Ok((outcomes, plan))
}

/// The plan of one program: its granted sites fast, in as much fast memory as they have. A site that is granted in part spills.
fn plan_of(
    program: &MeasuredProgram,
    profile: &Profile,
    shared: &SharedPlan,
    tiers: &Tiers,
    weight: Weight,
) -> Result<Plan> {
    let grants = shared.grants.iter();
    let grants: BTreeMap<&str, &Grant> = grants
        .filter(|grant| grant.program == program.name())
        .map(|grant| (grant.object.as_str(), grant))
        .collect();
    let tiers = with_capacity(tiers, grants.values().map(|grant| grant.fast).sum())?;
    let is_fast = |site: SiteId| {
        grants
            .get(site.to_string().as_str())
            .is_some_and(|grant| grant.fast > Bytes::ZERO)
    };
    let mut plan = of_selected(profile, (&tiers, weight), &shared.policy, is_fast);
    for site in &mut plan.assignments {
        if let Some(grant) = grants.get(site.site.to_string().as_str()) {
            site.reason.clone_from(&grant.reason);
        }
    }
    Ok(plan)
}

/// The pair with another capacity of its fast tier.
fn with_capacity(tiers: &Tiers, capacity: Bytes) -> Result<Tiers> {
    let mut all: Vec<Tier> = tiers.all().to_vec();
    all[0].capacity = capacity;
    Ok(Tiers::new(all)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Part, colocation, plan_of, share};
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::Weight;
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::{TierIndex, Tiers};
    use isotherm_model::units::{Accesses, Bytes};

    const MIB: u64 = 1 << 20;

    /// A program of a thousand samples, with a site of 4 MiB for each number: the samples in which the program waited for that site.
    fn program(waits: &[u64]) -> Part {
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
        Part {
            profile,
            plan: "a.plan".into(),
        }
    }

    /// Plans of two programs by a policy, in 8 MiB of fast memory: for each the sites that are fast, and the bytes of its fast tier.
    fn plans(policy: &str) -> BTreeMap<String, (Vec<u64>, u64)> {
        let parts = [("calm", &[50, 20][..]), ("hungry", &[500, 400, 5])];
        let parts: BTreeMap<_, _> = parts
            .map(|(name, waits)| (name.to_owned(), program(waits)))
            .into();
        let emulation = Emulation::preset("cxl").expect("a preset");
        let tiers = Tiers::emulated(Bytes(8 * MIB), Bytes(1 << 40), emulation);
        let colocation = colocation(&parts, &tiers, Weight::PeakRss).expect("times");
        let shared = share(policy, &BTreeMap::new(), &colocation, Bytes(8 * MIB));
        let (outcomes, shared) = shared.expect("no floor");
        assert_eq!(outcomes.len(), 6);
        let programs = colocation.programs().iter();
        let plan = |program: &super::MeasuredProgram| {
            let part = &parts[program.name()];
            let plan = plan_of(program, &part.profile, &shared, &tiers, Weight::PeakRss);
            let plan = plan.expect("a pair");
            let fast = plan.assignments.iter();
            let fast = fast.filter(|site| site.tier == TierIndex::FASTEST);
            let mut fast: Vec<u64> = fast.map(|site| site.site.0).collect();
            fast.sort_unstable();
            let name = program.name().to_owned();
            (name, (fast, plan.tiers.all()[0].capacity.0 / MIB))
        };
        programs.map(plan).collect()
    }

    #[test]
    fn each_program_gets_a_plan_with_its_own_share() {
        let equal = plans("equal-split");
        assert_eq!(equal["calm"], (vec![100], 4));
        assert_eq!(equal["hungry"], (vec![100], 4));
        for policy in ["comerge", "least-slowdown"] {
            let merged = plans(policy);
            assert_eq!(merged["calm"], (vec![], 0), "{policy}");
            assert_eq!(merged["hungry"], (vec![100, 101], 8), "{policy}");
        }
    }
}
