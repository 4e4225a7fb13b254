//! `fitted` fits a plan to the build of the program to run: it finds each planned site there, by its name, its callers or its variable, and
//! leaves out Java sites, which the runtime does not place. `Fitted` has the result.
//!
//! Sites are named by addresses in a build. A rebuilt program has others, so each caller of a planned site is looked for in the new build
//! ([`modules`]), and the site gets the name that the runtime will give it there. A site that is not found, or could be one of several that
//! the plan sends to different tiers, is left to the default, which is that of first touch. So are small sites of changed code: the plan
//! has only their names, which stay the same only where no module of theirs was changed.

#[cfg(test)]
mod leading_tests;
mod modules;
mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use isotherm_act::callers::{caller_name, site_name};
use isotherm_act::heap_guide::without_java_sites;
use isotherm_model::calls::MatchedBy;
use isotherm_model::plan::{Assignment, Caller, Plan};
use isotherm_model::site::{CallerId, Frame, SiteId, SiteKind};
use isotherm_model::tier::TierIndex;

use modules::Modules;

/// Most names that one site may have in the new build; with more it counts as not found.
const NAMES_MAX: usize = 64;

/// A plan for this build, and the matches of its sites.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    /// The original plan.
    pub(crate) original: Plan,
    /// The plan with the names of the sites in this build.
    pub(crate) plan: Plan,
    /// The planned sites for each site of this build.
    former: BTreeMap<SiteId, Vec<SiteId>>,
    /// The match of each planned site.
    found: BTreeMap<SiteId, Found>,
    /// Files with callers of the plan that were rebuilt since.
    changed: Vec<PathBuf>,
    /// Changed files without any of the functions that the plan names.
    unknown: Vec<PathBuf>,
    /// Java sites of the plan: the runtime places none of them, so they are not in `original` either.
    java_sites: usize,
}

/// The match of a planned site.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    /// It has these names in this build.
    As(Vec<SiteId>, MatchedBy),
    /// This build has no such call, or cannot be searched.
    Nothing,
    /// It may be a site that the plan sends elsewhere as well.
    Ambiguous,
}

/// A name in the new build, with the direct caller that goes with it.
type Named = (SiteId, Option<CallerId>);

/// Finds the sites of a plan in the program to run.
pub(crate) fn fitted(plan: &Plan, program: &Path) -> Fitted {
    let all = plan.assignments.len();
    let plan = &without_java_sites(plan);
    let modules = Modules::read(plan, program);
    let mut candidates = BTreeMap::new();
    for site in sites(plan) {
        candidates.insert(site.site, candidate(plan, site, &modules));
    }
    let ambiguous = ambiguous(plan, &candidates);
    let mut fitted = Fitted {
        original: plan.clone(),
        plan: Plan {
            assignments: Vec::new(),
            ..plan.clone()
        },
        former: BTreeMap::new(),
        found: BTreeMap::new(),
        changed: modules.changed(),
        unknown: modules.unknown(),
        java_sites: all - plan.assignments.len(),
    };
    for site in &plan.assignments {
        match candidates.remove(&site.site) {
            // The arena of small and rare sites has no callers.
            None => fitted.plan.assignments.push(site.clone()),
            Some(Some((names, _))) if names.iter().any(|name| ambiguous.contains(&name.0)) => {
                fitted.found.insert(site.site, Found::Ambiguous);
            }
            Some(Some((names, by))) => fitted.add(site, names, by),
            Some(None) => {
                fitted.found.insert(site.site, Found::Nothing);
            }
        }
    }
    // A plan that lists its small sites has its default for unknown sites only. The default of a plan without the list is also for small
    // sites, whose names in this build are unknown.
    if fitted.is_rebuilt() && plan.small.is_empty() {
        fitted.plan.default_tier = TierIndex::FASTEST;
    }
    fitted
}

/// The assignments of sites that a run can make.
fn sites(plan: &Plan) -> impl Iterator<Item = &Assignment> {
    plan.assignments.iter().filter(|a| a.site > SiteId::SHARED)
}

/// The names that a site may have in this build, and how they were matched.
fn candidate(
    plan: &Plan,
    site: &Assignment,
    modules: &Modules,
) -> Option<(BTreeSet<Named>, MatchedBy)> {
    let as_it_is = |frames: Option<&Vec<Frame>>| {
        let caller = match site.caller {
            Caller::Direct { id, .. } => Some(id),
            Caller::None => None,
            Caller::Unknown => frames.and_then(|frames| caller_name(frames)),
        };
        Some((BTreeSet::from([(site.site, caller)]), MatchedBy::Name))
    };
    // An old plan has no frames: its sites are valid only for its own build.
    let Some(frames) = plan.frames.get(&site.site) else {
        return as_it_is(None);
    };
    let named = |kind| site_name(kind, frames) == Some(site.site);
    if named(SiteKind::Named) {
        return as_it_is(None);
    }
    if named(SiteKind::Static) {
        let (frame, by) = modules.variable(frames.first()?)?;
        let name = site_name(SiteKind::Static, &[frame])?;
        return Some((BTreeSet::from([(name, None)]), by));
    }
    let kind = [SiteKind::Heap, SiteKind::Mapping]
        .into_iter()
        .find(|kind| named(*kind));
    let Some(kind) = kind else {
        return match modules.described(site.site, frames)? {
            (id, MatchedBy::Name) if id == site.site => as_it_is(Some(frames)),
            (id, by) => Some((BTreeSet::from([(id, None)]), by)),
        };
    };
    let mut stacks = vec![Vec::new()];
    let mut worst = MatchedBy::Name;
    for frame in frames {
        let (places, by) = modules.places(frame)?;
        worst = worst.max(by);
        stacks = stacks
            .iter()
            .flat_map(|stack: &Vec<Frame>| {
                places.iter().map(|place| {
                    let mut longer = stack.clone();
                    longer.push(place.clone());
                    longer
                })
            })
            .collect();
        if stacks.len() > NAMES_MAX {
            return None;
        }
    }
    let names = stacks.iter().filter_map(|frames| {
        let caller = (kind == SiteKind::Heap)
            .then(|| caller_name(frames))
            .flatten();
        Some((site_name(kind, frames)?, caller))
    });
    Some((names.collect(), worst))
}

/// The names that sites of different tiers may have.
fn ambiguous(
    plan: &Plan,
    candidates: &BTreeMap<SiteId, Option<(BTreeSet<Named>, MatchedBy)>>,
) -> BTreeSet<SiteId> {
    let mut tiers = BTreeMap::<SiteId, BTreeSet<TierIndex>>::new();
    for site in sites(plan) {
        for (name, _) in candidates[&site.site].iter().flat_map(|(names, _)| names) {
            tiers.entry(*name).or_default().insert(site.tier);
        }
    }
    let several = tiers.into_iter().filter(|(_, tiers)| tiers.len() > 1);
    several.map(|(name, _)| name).collect()
}

impl Fitted {
    fn add(&mut self, site: &Assignment, names: BTreeSet<Named>, by: MatchedBy) {
        let has_others = matches!(
            site.caller,
            Caller::Direct {
                has_others: true,
                ..
            }
        );
        for (name, caller) in &names {
            let known = self.former.entry(*name).or_default();
            known.push(site.site);
            if known.len() > 1 {
                continue;
            }
            let caller = match (site.caller, caller) {
                (Caller::Unknown, _) => Caller::Unknown,
                (_, Some(id)) => Caller::Direct {
                    id: *id,
                    has_others,
                },
                (_, None) => Caller::None,
            };
            self.plan.assignments.push(Assignment {
                site: *name,
                caller,
                ..site.clone()
            });
        }
        let names = names.into_iter().map(|(name, _)| name).collect();
        self.found.insert(site.site, Found::As(names, by));
    }

    /// True if a file was rebuilt since the plan was made, or a site no longer exists.
    pub(crate) fn is_rebuilt(&self) -> bool {
        !self.changed.is_empty()
            || self
                .found
                .values()
                .any(|found| !matches!(found, Found::As(..)))
    }

    /// The planned sites for a site of a run; the site itself if the plan has no other name for it.
    pub(crate) fn former(&self, site: SiteId) -> Vec<SiteId> {
        self.former
            .get(&site)
            .cloned()
            .unwrap_or_else(|| vec![site])
    }
}
