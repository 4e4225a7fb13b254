//! Makes the plan of one program of `isotherm colocate`: the data that the policy granted to the program is fast, in a fast tier of that
//! size, and the sites have the policy's reasons.

use std::collections::BTreeMap;

use anyhow::Result;
use isotherm_model::emulation::Emulation;
use isotherm_model::plan::{Plan, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{Tier, TierKind, Tiers};
use isotherm_model::units::Bytes;
use isotherm_pipeline::{SiteChunks, site_of_object};
use isotherm_policy::sharing::{Grant, SharedPlan};

use super::object_names::ObjectNames;
use crate::commands::plan::of_chosen;

/// The plan of the program of this name. A site that is granted in part spills; of a chunk its first bytes are fast. `names` name the
/// objects of the other programs in its reasons.
///
/// # Errors
/// None is expected: the pair of tiers was checked.
pub(super) fn program_plan(
    name: &str,
    (profile, chunks): (&Profile, &SiteChunks),
    (shared, names): (&SharedPlan, &ObjectNames),
    tiers: &Tiers,
    weight: Weight,
) -> Result<Plan> {
    let grants = shared.grants.iter().filter(|grant| grant.program == name);
    let of_object = grants.clone().map(|grant| (grant.object.as_str(), grant));
    let of_object: BTreeMap<&str, &Grant> = of_object.collect();
    let share = |object: &str| {
        let grant = of_object.get(object);
        grant.map_or(0.0, |grant| grant.fast.0 as f64 / grant.size.0 as f64)
    };
    let chosen = chunks.granted(profile.sites.iter().map(|site| site.id), share);
    let tiers = with_capacity(tiers, grants.clone().map(|grant| grant.fast).sum())?;
    let mut plan = of_chosen(profile, (&tiers, weight), &shared.policy, &chosen);
    let mut of_site = BTreeMap::<SiteId, Vec<&Grant>>::new();
    for grant in grants {
        if let Some(site) = site_of_object(&grant.object) {
            of_site.entry(site).or_default().push(grant);
        }
    }
    for site in &mut plan.assignments {
        if let Some(grants) = of_site.get(&site.site) {
            site.reason = reason(grants, names);
        }
    }
    Ok(plan)
}

/// The pair with this capacity of its fast tier. A shared emulated machine keeps the whole capacity, which its programs have together.
fn with_capacity(tiers: &Tiers, capacity: Bytes) -> Result<Tiers> {
    let mut all: Vec<Tier> = tiers.all().to_vec();
    let whole = std::mem::replace(&mut all[0].capacity, capacity);
    for tier in &mut all {
        if let TierKind::EmulatedSlow(Emulation::Time(costs)) = &mut tier.kind {
            costs.shared = costs.shared.map(|shared| shared.with_capacity(whole));
        }
    }
    Ok(Tiers::new(all)?)
}

/// The reason of a site: the policy's for a whole site; for a site in chunks, the reasons of the first fast and of the first slow one.
fn reason(grants: &[&Grant], names: &ObjectNames) -> String {
    let with_rival = |grant: &Grant| match &grant.rival {
        Some(rival) => format!("{}; {}", grant.reason, rival.text(&names.of(rival))),
        None => grant.reason.clone(),
    };
    if let [whole] = grants {
        return with_rival(whole);
    }
    let sum = |of: fn(&Grant) -> Bytes| grants.iter().map(|grant| of(grant)).sum::<Bytes>();
    let first = |is_fast: bool| {
        let mut of_kind = grants.iter();
        let found = of_kind.find(|grant| (grant.fast > Bytes::ZERO) == is_fast);
        found.map(|grant| with_rival(grant))
    };
    let (fast, size) = (sum(|grant| grant.fast), sum(|grant| grant.size));
    let chunks = grants.len();
    match (first(true), first(false)) {
        (Some(taken), None) => format!("all {chunks} chunks, {fast}; the first: {taken}"),
        (Some(taken), Some(left)) => {
            format!(
                "{fast} of {size} in chunks; the first: {taken}; the first of the others: {left}"
            )
        }
        (None, left) => format!(
            "none of {chunks} chunks; the first: {}",
            left.unwrap_or_default()
        ),
    }
}
