//! `isotherm plan`: decides what goes where, from a profile.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use isotherm_act::callers::caller;
use isotherm_model::plan::{Plan, Value, Weight};
use isotherm_model::plan_text;
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId};
use isotherm_policy::{PlanRequest, policy_from_text};

use crate::cli::PlanArgs;
use crate::hint;
use crate::notes::Notes;
use crate::tiers_choice;

/// Makes and writes the plan.
///
/// # Errors
/// An unreadable profile, an unknown word, a profile without samples.
pub(crate) fn run(args: &PlanArgs, notes: Notes) -> Result<()> {
    let (profile, _) = super::read_profile(&args.profile, notes)?;
    let plan = decide(args, &profile, notes)?;
    let target = args
        .output
        .clone()
        .unwrap_or_else(|| super::beside(&args.profile, "plan"));
    super::write_text(&target, &plan_text::write(&plan))?;
    if super::is_standard_output(&target) {
        return Ok(());
    }
    announce(&plan, notes);
    let program = plan.command.first().map(|program| hint::word(program));
    notes.next(&format!(
        "isotherm run --plan {} -- {} ...",
        hint::file(&target),
        program.as_deref().unwrap_or("PROGRAM")
    ));
    Ok(())
}

fn decide(args: &PlanArgs, profile: &Profile, notes: Notes) -> Result<Plan> {
    let policy = policy_from_text(&args.policy).context("--policy")?;
    let value = Value::from_word(&args.value).with_context(|| {
        format!(
            "--value {}: must be `accesses`, `bandwidth` or `latency`",
            args.value
        )
    })?;
    let weight = Weight::from_word(&args.weight).with_context(|| {
        format!(
            "--weight {}: must be `peak-rss` or `peak-requested`",
            args.weight
        )
    })?;
    let shown = args.profile.display();
    if profile.sites.is_empty() {
        bail!("{shown}: holds no allocation site; was the program stopped at once?");
    }
    if value == Value::Latency && !isotherm_pipeline::is_latency_weighted(&profile.sources) {
        bail!(
            "{shown}: --value latency needs samples that all weigh by latency (pebs, ibs, spe) or all \
             by time (timer), and this profile's do not; record with --source timer"
        );
    }
    let tiers = tiers_choice::resolve(&args.tiers, Some(profile.footprint()), notes)?;
    let items = isotherm_pipeline::items(profile, value, weight);
    if items.iter().all(|item| item.value == 0) {
        bail!(
            "{shown}: holds no access to any site, so nothing can be called hot; record longer, or \
             see `isotherm doctor` for the sources this machine has"
        );
    }
    let labels = isotherm_pipeline::labels(profile);
    let callers = profile.sites.iter().map(|site| (site.id, caller(site)));
    let callers: BTreeMap<_, _> = callers.collect();
    let mut plan = isotherm_policy::plan(&PlanRequest {
        value,
        weight,
        command: &profile.meta.command,
        depth: profile.meta.depth,
        labels: Some(&labels),
        callers: Some(&callers),
        ..PlanRequest::new(&*policy, &items, &tiers)
    });
    plan.frames = frames(profile, &plan);
    Ok(plan)
}

/// The callers of the plan's sites, by which another build is searched for them.
fn frames(profile: &Profile, plan: &Plan) -> BTreeMap<SiteId, Vec<Frame>> {
    let planned: BTreeSet<SiteId> = plan.assignments.iter().map(|site| site.site).collect();
    let sites = profile.sites.iter();
    sites
        .filter(|site| planned.contains(&site.id) && !site.frames.is_empty())
        .map(|site| (site.id, site.frames.clone()))
        .collect()
}

fn announce(plan: &Plan, notes: Notes) {
    let emulated = if plan.tiers.emulates() {
        ", emulated"
    } else {
        ""
    };
    for (index, tier) in plan.tiers.all().iter().enumerate() {
        let index = isotherm_model::tier::TierIndex(index as u32);
        let sites = plan.assignments.iter().filter(|a| a.tier == index).count();
        notes.say(&format!(
            "{} gets {sites} sites, {} of {}{emulated}",
            tier.name,
            plan.bytes_in(index),
            tier.capacity
        ));
    }
    notes.say(&format!("{} reaches {}", plan.policy, plan.standing));
}
