//! `PlanInput` makes plans from one profile for any size of the fast tier: `decide` makes that of the size that the flags give, and the
//! search for the least fast memory tries others. The plan of a policy that fills the fast tier by value gives way to first touch if the
//! plan is expected to be slower by more than 2 % of the time of all fast; plans of other policies and of chunk selection are kept.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use isotherm_act::callers::caller;
use isotherm_console::Console;
use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{
    Caller, ExpectedTimes, Item, PartItem, Plan, PlanBounds, Value, Weight,
};
use isotherm_model::port::SitePolicy;
use isotherm_model::profile::Profile;
use isotherm_model::site::{Frame, SiteId, SiteKind};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_pipeline::{SiteParts, expected_times};
use isotherm_policy::{FirstTouch, PlanRequest, Thermos, policy_from_text};

use super::site_values;
use crate::chunk_plan;
use crate::cli_plan::PlanArgs;
use crate::coloured_plan::{self, ColouredTiers};
use crate::split::{self, Split};
use crate::tiers_choice;

/// The plan for the tiers that the flags name.
///
/// # Errors
/// As of [`PlanInput::of`] and of its functions.
pub(super) fn decide(args: &PlanArgs, profile: &Profile, console: Console) -> Result<Plan> {
    let input = PlanInput::of(args, profile, console)?;
    let ColouredTiers { tiers, colours } = input.coloured(console)?;
    let plan = finished(input.plan(&tiers)?, profile, console);
    Ok(Plan { colours, ..plan })
}

/// The input that all plans of a profile share, whatever the size of the fast tier.
pub(super) struct PlanInput<'a> {
    pub(super) args: &'a PlanArgs,
    pub(super) profile: &'a Profile,
    pub(super) policy: Box<dyn SitePolicy>,
    pub(super) value: Value,
    weight: Weight,
    counted: CountUnit,
    pub(super) items: Vec<Item>,
    /// The parts that sites may have; chunk selection makes others.
    parts: SiteParts,
    /// The sites whose first memory a plan may place in another tier than the rest.
    leading: BTreeSet<SiteId>,
    labels: BTreeMap<SiteId, String>,
    callers: BTreeMap<SiteId, Caller>,
    /// The tiers that the flags name.
    pub(super) tiers: Tiers,
}

/// A plan with its expected times.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// The times of a plan by the policy that was given up because first touch is faster; `None` where the plan is the policy's.
    given_up: Option<ExpectedTimes>,
}

impl<'a> PlanInput<'a> {
    /// Reads the flags and the profile; warns of what they lack.
    ///
    /// # Errors
    /// An unknown word, tiers that are not there, a profile without samples of a site or without the value that is asked for.
    pub(super) fn of(args: &'a PlanArgs, profile: &'a Profile, console: Console) -> Result<Self> {
        let policy: Box<dyn SitePolicy> = match chunk_plan::is_named(&args.policy) {
            // Chunk selection fills the fastest tier only; this policy fills those between it and the slowest.
            true => Box::new(Thermos::default()),
            false => policy_from_text(&args.policy).context("--policy")?,
        };
        let (value, weight) = site_values::quantities(args, &*policy, profile)?;
        let shown = args.profile.display();
        if profile.sites.is_empty() {
            bail!("{shown}: holds no allocation site; was the program stopped at once?");
        }
        let counted =
            site_values::counted(args, profile, value).with_context(|| shown.to_string())?;
        let tiers = tiers_choice::resolve(&args.tiers, Some(profile.footprint()), console)?;
        check_balance(&*policy, &tiers)?;
        if value == Value::SampledBandwidth {
            console.warn(&format!(
                "the bandwidth of each site is estimated from its samples; runs with each of them alone in a tier measure it: {}",
                site_values::isolating(profile)
            ));
        }
        let items = items(profile, (value, weight), &shown.to_string(), console)?;
        let parts = site_parts(args, profile, &*policy, &tiers);
        let callers = profile.sites.iter().map(|site| (site.id, caller(site)));
        Ok(Self {
            args,
            profile,
            value,
            weight,
            counted,
            items,
            parts,
            leading: leading_sites(args, profile),
            labels: isotherm_pipeline::labels(profile),
            callers: callers.collect(),
            policy,
            tiers,
        })
    }

    /// The tiers that the plan has: for a policy that colours data, those that stand for the devices of each colour.
    ///
    /// # Errors
    /// As of [`coloured_plan::tiers`].
    pub(super) fn coloured(&self, console: Console) -> Result<ColouredTiers> {
        let (tiers, devices) = (self.tiers.clone(), &self.args.devices);
        let items = (self.items.as_slice(), self.profile.footprint().0);
        coloured_plan::tiers(&*self.policy, items, tiers, devices, console)
    }

    /// The plan for these tiers: those of the flags, or the same with another fast capacity.
    ///
    /// # Errors
    /// A parameter of chunk selection that is out of range, or tiers on which it cannot place parts.
    pub(super) fn plan(&self, tiers: &Tiers) -> Result<Planned> {
        let has_value = !self.items.is_empty();
        let whole = PlanRequest {
            value: self.value,
            counted: self.counted,
            weight: self.weight,
            command: &self.profile.meta.command,
            depth: self.profile.meta.depth,
            leading: Some(&self.leading),
            labels: Some(&self.labels),
            callers: has_value.then_some(&self.callers),
            ..PlanRequest::new(&*self.policy, &self.items, tiers)
        };
        let (policy, split) = (&self.args.policy, self.args.split);
        if chunk_plan::is_named(policy) {
            let (plan, parts) = chunk_plan::plan(policy, split, self.profile, &whole)?;
            return Ok(Planned {
                plan: timed(self.profile, plan, &parts),
                given_up: None,
            });
        }
        let items = isotherm_pipeline::part_items(&self.items, &self.parts);
        let plan = timed(self.profile, with_parts(&whole, &items), &self.parts);
        let is_slower = |times: &ExpectedTimes| times.planned - times.first_touch > SLOWER;
        let given_up = plan
            .expected
            .filter(|times| self.policy.fills() && is_slower(times));
        Ok(Planned {
            plan: match given_up {
                Some(expected) => left_to_first_touch(plan, expected),
                None => plan,
            },
            given_up,
        })
    }
}

/// The plan with what it predicts.
fn timed(profile: &Profile, plan: Plan, parts: &SiteParts) -> Plan {
    let expected = expected_times(profile, &plan, parts);
    Plan { expected, ..plan }
}

/// The plan with the callers of its sites; a warning tells where first touch took its place.
pub(super) fn finished(planned: Planned, profile: &Profile, console: Console) -> Plan {
    if let Some(expected) = planned.given_up {
        console.warn(&format!(
            "placing its sites apart would make the program slower than first touch does: {:.2} times the time of all fast against \
             {:.2}; this plan leaves all data to first touch",
            expected.planned, expected.first_touch
        ));
    }
    let frames = frames(profile, &planned.plan);
    Plan {
        frames,
        ..planned.plan
    }
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

/// The parts in which a plan may place sites. There are none with `--split never` or on tiers that place whole sites only, for a policy
/// that balances (parts are judged by the value that fast memory serves), and for chunk selection, which makes its own.
fn site_parts(
    args: &PlanArgs,
    profile: &Profile,
    policy: &dyn SitePolicy,
    tiers: &Tiers,
) -> SiteParts {
    let has_none = chunk_plan::is_named(&args.policy) || policy.balances();
    match args.split {
        Split::Auto if split::is_possible(tiers) && !has_none => {
            isotherm_pipeline::site_parts(profile)
        }
        Split::Auto | Split::Never => SiteParts::new(),
    }
}

/// With `--split auto`, the sites whose memory comes from an arena of their own: a guided run can place its first bytes in another tier
/// than the rest. Empty otherwise.
fn leading_sites(args: &PlanArgs, profile: &Profile) -> BTreeSet<SiteId> {
    let sites = profile.sites.iter().filter(|site| {
        args.split == Split::Auto
            && site.id > SiteId::SHARED
            && matches!(site.kind, SiteKind::Heap | SiteKind::Described)
    });
    sites.map(|site| site.id).collect()
}

/// A plan that is expected to be slower than first touch by more than this share of the time of all fast is given up.
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

/// The callers of the plan's sites, by which a run finds these sites in another build of the program.
pub(super) fn frames(profile: &Profile, plan: &Plan) -> BTreeMap<SiteId, Vec<Frame>> {
    let planned: BTreeSet<SiteId> = plan.assignments.iter().map(|site| site.site).collect();
    let sites = profile.sites.iter();
    sites
        .filter(|site| planned.contains(&site.id) && !site.frames.is_empty())
        .map(|site| (site.id, site.frames.to_vec()))
        .collect()
}
