//! Decides from the flags, the policy and the profile by which value, in which unit, and by which weight `isotherm plan` ranks sites, and
//! refuses a value that the profile lacks. `weight` serves `isotherm colocate`, too.

use anyhow::{Context, Result, bail};
use isotherm_console::shell_quoting;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Value, Weight};
use isotherm_model::port::SitePolicy;
use isotherm_model::profile::Profile;
use isotherm_model::words;
use isotherm_pipeline::sampled_bandwidths;

use crate::cli_plan::PlanArgs;

/// The kinds of value and weight that the flags name. Without a flag the value is accesses; for a policy that balances it is the measured
/// bandwidth, else the estimated one.
///
/// # Errors
/// An unknown word, or a value by which the policy cannot balance.
pub(super) fn quantities(
    args: &PlanArgs,
    policy: &dyn SitePolicy,
    profile: &Profile,
) -> Result<(Value, Weight)> {
    let default = match (policy.balances(), no_bandwidth(profile)) {
        (true, None) => Value::Bandwidth,
        (true, Some(_)) => Value::SampledBandwidth,
        (false, _) => Value::Accesses,
    };
    let word = args.value.as_deref().unwrap_or(default.word());
    let value = Value::from_word(word).with_context(|| {
        let words = Value::ALL.map(Value::word).join("`, `");
        format!("--value {word}: must be one of `{words}`")
    })?;
    if policy.balances() && !matches!(value, Value::Bandwidth | Value::SampledBandwidth) {
        bail!(
            "--policy {} --value {word}: only bytes a second tell how much load a site is; leave out --value, or name `bandwidth` or \
             `sampled-bandwidth`",
            policy.name()
        );
    }
    Ok((value, weight(&args.weight)?))
}

/// The weight that `--weight` names.
///
/// # Errors
/// An unknown word.
pub(in crate::commands) fn weight(word: &str) -> Result<Weight> {
    Weight::from_word(word)
        .with_context(|| format!("--weight {word}: must be `peak-rss` or `peak-requested`"))
}

/// The unit of this value.
///
/// # Errors
/// The profile does not have it: the reason, under the flag that asked for it, and what would bring it.
pub(super) fn counted(args: &PlanArgs, profile: &Profile, value: Value) -> Result<CountUnit> {
    let counted = profile.counted();
    let lack = match value {
        Value::Accesses => None,
        Value::Latency => (counted != CountUnit::Latency).then(|| no_latency(counted)),
        Value::Bandwidth => no_bandwidth(profile),
        Value::SampledBandwidth => match sampled_bandwidths(profile) {
            None => Some(no_estimate(args, counted)),
            Some(_) => None,
        },
    };
    match (lack, value) {
        (Some(lack), _) => bail!(lack),
        (None, Value::Bandwidth | Value::SampledBandwidth) => Ok(CountUnit::Bytes),
        (None, Value::Accesses | Value::Latency) => Ok(counted),
    }
}

/// The reason why `--value latency` has no meaning here, and the sources that measure latencies.
fn no_latency(counted: CountUnit) -> String {
    let instead = match counted {
        CountUnit::Time => {
            "; samples of the timer already measure time waiting for memory, by which --value \
             accesses plans"
        }
        _ => "",
    };
    format!(
        "--value latency needs the latency of each access, which the processor measures for the sources \
         pebs, ibs and spe, and this profile holds {}: record with one of these where `isotherm doctor` \
         finds it{instead}",
        counted.units()
    )
}

/// Whether runs in isolation measured the bandwidth of each site.
pub(super) fn has_bandwidths(profile: &Profile) -> bool {
    no_bandwidth(profile).is_none()
}

/// The reason why the bandwidth of some site is not known here, and the command that measures it.
fn no_bandwidth(profile: &Profile) -> Option<String> {
    let sites = profile
        .isolation
        .as_ref()
        .map(|runs| isotherm_pipeline::sites_without_bandwidth(profile, runs).len());
    let lack = match sites {
        Some(0) => return None,
        Some(sites) => format!(
            "in this profile {} with accesses had none: their runs were interrupted; the rest is measured by",
            words::counted(sites, "site")
        ),
        None => "this profile has none; they are added to it by".to_owned(),
    };
    Some(format!(
        "--value bandwidth needs runs in which each of the hottest sites is alone in a tier, and {lack}: {}; --value sampled-bandwidth \
         takes an estimate",
        isolating(profile)
    ))
}

/// The command that adds runs in isolation to a profile.
pub(super) fn isolating(profile: &Profile) -> String {
    let program = match profile.meta.command.is_empty() {
        true => "PROGRAM".to_owned(),
        false => shell_quoting::line(&profile.meta.command),
    };
    format!("isotherm record --isolate sites -o PROFILE -- {program}")
}

/// The reason why the samples tell no bytes, under the flag that asked for them.
fn no_estimate(args: &PlanArgs, counted: CountUnit) -> String {
    let asked = match &args.value {
        Some(word) => format!("--value {word}"),
        None => format!("--policy {}", args.policy),
    };
    format!(
        "{asked} needs the bytes that each site takes, and this profile holds {}, which tell none: record with source `timer`, or one that \
         counts accesses or misses, or measure them: isotherm record --isolate sites",
        counted.units()
    )
}
