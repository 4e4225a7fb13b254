//! Lists the known values of flags (policies, generators, sources, power models, and others) for the `cli` modules and for completions.

use isotherm_abi::config::Mover;
use isotherm_model::plan::{Value, Weight};
use isotherm_model::source_kind::SourceKind;
use isotherm_observe::source::registry::OF_PROGRAMS;

use crate::input;
use crate::known_values::KnownValues;
use crate::optimize_after::{FIRST_ITERATION, OptimizeAfter};
use crate::power_models::{self, PowerModels};
use crate::run_policies;
use crate::sharing::{self, SharedObjects};
use crate::split::Split;
use crate::static_data::StaticPlacement;

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
/// What these policies share.
pub(crate) const SHARED_OBJECTS: KnownValues<SharedObjects> =
    KnownValues::new(SharedObjects::words, SharedObjects::read);
/// Generators of `isotherm simulate`.
pub(crate) const GENERATORS: KnownValues<String> =
    KnownValues::any(|| isotherm_sim::generate::names().collect());
/// Values of a site.
pub(crate) const VALUES: KnownValues<String> =
    KnownValues::any(|| Value::ALL.map(Value::word).to_vec());
/// What can be alone in a tier.
pub(crate) const ISOLATED: KnownValues<String> = KnownValues::new(|| vec!["sites"], isolated);
/// Weights of a site.
pub(crate) const WEIGHTS: KnownValues<String> = KnownValues::any(|| {
    [Weight::PeakRss, Weight::PeakRequested]
        .map(Weight::word)
        .to_vec()
});
/// Sources of `isotherm record` and `isotherm run`.
pub(crate) const SOURCES: KnownValues<SourceKind> =
    KnownValues::new(|| OF_PROGRAMS.map(SourceKind::word).to_vec(), source);
/// What moves memory between nodes.
pub(crate) const MOVERS: KnownValues<Mover> =
    KnownValues::new(|| vec!["kernel", "staged"], input::mover);
/// Placements of static data.
pub(crate) const STATIC_PLACEMENTS: KnownValues<StaticPlacement> =
    KnownValues::new(StaticPlacement::words, StaticPlacement::read);
/// Sources of a simulated monitor.
pub(crate) const MONITOR_SOURCES: KnownValues<isotherm_sim::MonitorSource> = KnownValues::new(
    || {
        isotherm_sim::MonitorSource::ALL
            .map(isotherm_sim::MonitorSource::word)
            .to_vec()
    },
    input::monitor_source,
);
/// Models of memory power.
pub(crate) const POWER_MODELS: KnownValues<PowerModels> =
    KnownValues::new(power_models::names, power_models::read);

/// When sites are placed in parts.
pub(crate) const SPLITS: KnownValues<Split> = KnownValues::new(Split::words, Split::read);

fn isolated(word: &str) -> Result<String, String> {
    match word {
        "sites" => Ok(word.to_owned()),
        _ => Err("only `sites` can be isolated".to_owned()),
    }
}

fn source(name: &str) -> Result<SourceKind, String> {
    let known = || OF_PROGRAMS.map(SourceKind::word).join(", ");
    SourceKind::from_word(name)
        .filter(|source| OF_PROGRAMS.contains(source))
        .ok_or_else(|| format!("there is no source \"{name}\"; there are {}", known()))
}
