//! [`plan`] makes the plan of `isotherm plan --policy atmem`, in which ATMem's chunk selection chooses, from the heat of equal pieces
//! (chunks) of data objects, the parts of sites that are fast, or with `--split never` whole sites; [`is_named`] recognises the policy, for
//! an optimization as well.

use anyhow::{Context, Result, bail};
use isotherm_model::plan::{Plan, Value};
use isotherm_model::profile::Profile;
use isotherm_pipeline::SiteParts;
use isotherm_policy::{ATMEM, PlanRequest, chunk_parameters_from_text, plan_selected};

use crate::split::{self, Split};

/// Whether a text of `--policy` names chunk selection.
pub(crate) fn is_named(text: &str) -> bool {
    text.split('=')
        .next()
        .is_some_and(|name| name.trim() == ATMEM)
}

/// The plan by chunk selection, and the parts of its sites.
///
/// # Errors
/// A parameter that is unknown or out of range, or tiers on which parts cannot be placed.
pub(crate) fn plan(
    text: &str,
    split: Split,
    profile: &Profile,
    request: &PlanRequest<'_>,
) -> Result<(Plan, SiteParts)> {
    if !split::is_possible(request.tiers) {
        bail!(
            "--policy {ATMEM} places parts of data objects, and the page trap places whole sites: name other tiers, such as emulated:cxl, \
             or another policy"
        );
    }
    // Bandwidths are no samples: the least value that counts is 1.
    let period = match request.value {
        Value::Accesses | Value::Latency => isotherm_pipeline::sample_period(profile),
        Value::Bandwidth | Value::SampledBandwidth => 1,
    };
    let parameters = chunk_parameters_from_text(text, period).context("--policy")?;
    let places = match split {
        Split::Auto => isotherm_pipeline::site_places(profile),
        Split::Never => Default::default(),
    };
    let capacity = request.tiers.all()[0].capacity;
    let chosen = isotherm_pipeline::chunk_parts(request.items, &places, &parameters, capacity)?;
    let parts = isotherm_pipeline::part_items(request.items, &chosen.parts);
    let request = PlanRequest {
        parts: Some(&parts),
        ..*request
    };
    let plan = plan_selected(&request, ATMEM, |site, start| {
        chosen.is_selected(site, start)
    });
    Ok((plan, chosen.parts))
}
