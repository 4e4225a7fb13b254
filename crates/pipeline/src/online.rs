//! [`Online`] is the policy of a run without a plan: it plans again in each epoch, and requests those moves of sites that earn their cost.
//!
//! Each site has two moving averages of its accesses a second, a quick and a slow one. Every epoch
//! thermos plans on their mean. The plan is a request; a move must earn its cost. The two averages
//! suppress noise: the gain of a promotion is computed from the lower of the two, the loss of a
//! demotion from the higher. So a burst moves no data before the slow average has risen, and a
//! pause evicts none before it has fallen.
//!
//! A new site whose extents name no tier counts as in the fastest while all data fits that tier. Once it does not, such a site counts as in
//! the slowest, until the data has shrunk to half of the fastest.

mod costs;
mod moves;

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::{Batch, Epoch, Extent, Process};
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::plan::{Item, Value};
use isotherm_model::profile::Segment;
use isotherm_model::site::SiteId;
use isotherm_model::sums::sums;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use isotherm_policy::{PlanRequest, Thermos, plan};

use crate::retry_backoff::RetryBackoff;
pub use costs::OnlineConfig;
use moves::Candidate;

/// The state of a site.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Accesses a second, following quickly.
    quick: f64,
    /// Accesses a second, following slowly.
    slow: f64,
    /// Requested tier of its data.
    at: TierIndex,
    /// Tier before the last decision.
    before: TierIndex,
    /// Position in the order of first observation.
    order: u32,
}

/// The online policy and its state.
#[derive(Clone, Debug)]
pub struct Online {
    config: OnlineConfig,
    sites: BTreeMap<SiteId, Memory>,
    backoff: RetryBackoff<SiteId>,
    /// Sites whose spilled part was requested into their present tier and has not been moved yet.
    spilled: BTreeSet<SiteId>,
    /// The epoch of the last decision.
    epoch: Epoch,
    default_tier: TierIndex,
}

impl Online {
    /// A policy without observations. It starts with new data in the fastest tier.
    #[must_use]
    pub fn new(config: OnlineConfig) -> Self {
        Self {
            config,
            sites: BTreeMap::new(),
            backoff: RetryBackoff::default(),
            spilled: BTreeSet::new(),
            epoch: Epoch(0),
            default_tier: TierIndex::FASTEST,
        }
    }

    /// Decides the moves after this epoch, at whose end there are these extents. Demotions come first, so that promotions find room.
    pub fn decide(&mut self, batch: &Batch, segment: &Segment, extents: &[Extent]) -> Vec<Action> {
        self.epoch = batch.epoch;
        let bytes = bytes_by_site(extents);
        self.backoff.retain(|site| bytes.contains_key(&site));
        self.spilled.retain(|site| bytes.contains_key(site));
        self.follow(batch, segment, (extents, &bytes));
        let items: Vec<Item> = bytes
            .iter()
            .map(|(site, weight)| self.item(*site, *weight))
            .collect();
        let thermos = Thermos::default();
        let plan = plan(&PlanRequest {
            value: Value::Bandwidth,
            ..PlanRequest::new(&thermos, &items, &self.config.tiers)
        });
        let mut candidates: Vec<Candidate> = plan
            .assignments
            .iter()
            .map(|request| self.candidate(request.site, request.weight, request.tier))
            .collect();
        let mut refreshed = moves::select(&self.config, &mut candidates);
        let due = |site: &&SiteId| !self.backoff.has(**site, self.epoch);
        refreshed.extend(self.spilled.iter().filter(due));
        for candidate in &candidates {
            if let Some(memory) = self.sites.get_mut(&candidate.site) {
                memory.at = candidate.at;
            }
        }
        self.settle_default(bytes.values().copied().sum());
        actions(&candidates, &refreshed, extents)
    }

    /// Reverts actions that were not carried out, so that they are decided again; denied ones are
    /// not retried for a while.
    pub fn learn(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            self.spilled.remove(&outcome.action.site);
        }
        for outcome in outcomes {
            let site = outcome.action.site;
            match outcome.fate {
                Fate::Moved | Fate::Requested | Fate::AlreadyThere => {
                    self.backoff.moved(site);
                    continue;
                }
                Fate::Denied(_) => self.backoff.refused(site, self.epoch),
                Fate::Busy(_) | Fate::NotAttempted(_) => {}
            }
            if let Some(memory) = self.sites.get_mut(&site) {
                if outcome.action.tier == memory.before {
                    self.spilled.insert(site);
                }
                memory.at = memory.before;
            }
        }
    }

    /// Moves both averages of every site towards this epoch. A new site starts at its first value.
    fn follow(
        &mut self,
        batch: &Batch,
        segment: &Segment,
        (extents, bytes): (&[Extent], &BTreeMap<SiteId, Bytes>),
    ) {
        let heat = segment.heat.iter();
        let accesses = sums(heat.map(|heat| (heat.site, heat.accesses.0 as f64)));
        let seconds = (batch.span.0.max(1)) as f64 / 1e9;
        let rate = |site: &SiteId| accesses.get(site).map_or(0.0, |n| n / seconds);
        let OnlineConfig { quick, slow, .. } = self.config;
        for (site, memory) in &mut self.sites {
            memory.quick += quick * (rate(site) - memory.quick);
            memory.slow += slow * (rate(site) - memory.slow);
            memory.before = memory.at;
        }
        let tiers = tier_by_site(extents);
        for site in bytes.keys() {
            let order = u32::try_from(self.sites.len()).unwrap_or(u32::MAX);
            let at = tiers.get(site).copied().unwrap_or(self.default_tier);
            let at = at.min(self.config.tiers.slowest());
            self.sites.entry(*site).or_insert_with(|| Memory {
                quick: rate(site),
                slow: rate(site),
                at,
                before: at,
                order,
            });
        }
    }

    fn item(&self, site: SiteId, weight: Bytes) -> Item {
        let (value, order) = self
            .sites
            .get(&site)
            .map_or((0.0, 0), |m| (f64::midpoint(m.quick, m.slow), m.order));
        Item {
            site,
            // The cast saturates; a rate is never negative.
            value: value.round() as u64,
            weight,
            order,
        }
    }

    fn candidate(&self, site: SiteId, bytes: Bytes, target: TierIndex) -> Candidate {
        let memory = self.sites.get(&site);
        let at = memory.map_or(self.default_tier, |m| m.at);
        let (quick, slow) = memory.map_or((0.0, 0.0), |m| (m.quick, m.slow));
        Candidate {
            site,
            bytes,
            low: f64::min(quick, slow),
            high: f64::max(quick, slow),
            was: at,
            at,
            target: match self.backoff.has(site, self.epoch) {
                true => at,
                false => target,
            },
        }
    }

    fn settle_default(&mut self, all: Bytes) {
        let capacity = self.config.tiers.all()[0].capacity;
        if all > capacity {
            self.default_tier = self.config.tiers.slowest();
        } else if all.0 < capacity.0 / 2 {
            self.default_tier = TierIndex::FASTEST;
        }
    }
}

/// One action for each process that holds data of a site that moves, demotions first.
fn actions(moved: &[Candidate], refreshed: &BTreeSet<SiteId>, extents: &[Extent]) -> Vec<Action> {
    let mut holders = BTreeMap::<SiteId, BTreeMap<Process, Bytes>>::new();
    for extent in extents {
        let holders = holders.entry(extent.site).or_default();
        *holders.entry(extent.process).or_default() += extent.resident;
    }
    let of = |c: &Candidate| {
        let holders = holders.get(&c.site).into_iter().flatten();
        let (site, tier) = (c.site, c.at);
        let action = move |(process, bytes): (&Process, &Bytes)| Action {
            process: *process,
            site,
            tier,
            bytes: *bytes,
        };
        holders.map(action).collect::<Vec<_>>()
    };
    let demotions = moved.iter().filter(|c| c.at > c.was);
    let promotions = moved
        .iter()
        .filter(|c| c.at < c.was || c.at == c.was && refreshed.contains(&c.site));
    demotions.chain(promotions).flat_map(of).collect()
}

/// Resident bytes of every site that has an extent and can be placed.
fn bytes_by_site(extents: &[Extent]) -> BTreeMap<SiteId, Bytes> {
    let placeable = extents.iter().filter(|e| e.site.is_placeable());
    sums(placeable.map(|extent| (extent.site, extent.resident)))
}

/// The target tier of most bytes of each site, where extents report it.
fn tier_by_site(extents: &[Extent]) -> BTreeMap<SiteId, TierIndex> {
    let placed = extents
        .iter()
        .filter_map(|extent| Some(((extent.site, extent.tier?), extent.resident)));
    let mut most = BTreeMap::<SiteId, (Bytes, TierIndex)>::new();
    for ((site, tier), bytes) in sums(placed) {
        let best = most.entry(site).or_insert((bytes, tier));
        if bytes > best.0 {
            *best = (bytes, tier);
        }
    }
    most.into_iter()
        .map(|(site, (_, tier))| (site, tier))
        .collect()
}

#[cfg(test)]
mod tests;
