//! Lists the known values of flags (policies, generators, sources, power models, and others) for the `cli` modules and for completions.

use isotherm_model::plan::{Value, Weight};
use isotherm_model::source_kind::SourceKind;
use isotherm_observe::source::registry::OF_PROGRAMS;

use crate::known_values::KnownValues;
use crate::optimize_after::{FIRST_ITERATION, OptimizeAfter};
use crate::power_models::{self, PowerModels};
use crate::run_policies;
use crate::sharing;

/// Policies of `isotherm plan`: site policies, and ATMem, which selects chunks of data objects.
pub(crate) const SITE_POLICIES: KnownValues<String> = KnownValues::any(|| {
    isotherm_policy::names()
        .chain([isotherm_policy::ATMEM])
        .collect()
});
/// Policies of `isotherm run`: epoch policies, the one that leaves the moves to the daemon, those that choose once, and TMO's rule.
pub(crate) const RUN_POLICIES: KnownValues<String> = KnownValues::any(|| {
    run_policies::all_names()
        .chain([run_policies::TMO])
        .collect()
});
/// When `isotherm run` optimizes.
pub(crate) const OPTIMIZE_AFTER: KnownValues<OptimizeAfter> =
    KnownValues::new(|| vec![FIRST_ITERATION], OptimizeAfter::read);
/// Policies of `isotherm simulate`: epoch policies, site policies, ATMem, which selects chunks of data objects, and the cache mode.
pub(crate) const ALL_POLICIES: KnownValues<String> = KnownValues::any(|| {
    let all = isotherm_policy::epoch::names().chain(isotherm_policy::names());
    all.chain([isotherm_policy::ATMEM, isotherm_sim::CACHE_MODE])
        .collect()
});
/// Policies of `isotherm colocate`.
pub(crate) const SHARING_POLICIES: KnownValues<String> =
    KnownValues::any(|| sharing::names().collect());
/// Generators of `isotherm simulate`.
pub(crate) const GENERATORS: KnownValues<String> =
    KnownValues::any(|| isotherm_sim::generate::names().collect());
/// Values of a site.
pub(crate) const VALUES: KnownValues<String> =
    KnownValues::any(|| Value::ALL.map(Value::word).to_vec());
/// Weights of a site.
pub(crate) const WEIGHTS: KnownValues<String> = KnownValues::any(|| {
    [Weight::PeakRss, Weight::PeakRequested]
        .map(Weight::word)
        .to_vec()
});
/// Sources of `isotherm record` and `isotherm run`.
pub(crate) const SOURCES: KnownValues<SourceKind> =
    KnownValues::new(|| OF_PROGRAMS.map(SourceKind::word).to_vec(), source);
/// Models of memory power.
pub(crate) const POWER_MODELS: KnownValues<PowerModels> =
    KnownValues::new(power_models::names, power_models::read);

fn source(name: &str) -> Result<SourceKind, String> {
    let known = || OF_PROGRAMS.map(SourceKind::word).join(", ");
    SourceKind::from_word(name)
        .filter(|source| OF_PROGRAMS.contains(source))
        .ok_or_else(|| format!("there is no source \"{name}\"; there are {}", known()))
}
