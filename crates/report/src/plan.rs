//! [`PlanSummary`] has the figures of a plan in a report: the data that it puts into each tier, the share that it serves from fast memory
//! beside first touch and the bound, and how it fits the profile.

use std::collections::HashSet;

use isotherm_model::plan::{Plan, Value};
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;
use serde::Serialize;

use crate::sites::SiteRow;
use crate::totals::SummaryTotals;
use crate::words::{counted, share};

/// A plan and its standing. Shares are of `total_value`.
#[derive(Clone, Debug, Serialize)]
pub struct PlanSummary {
    /// Policy that made it.
    pub policy: String,
    /// Quantity of the values: `accesses` (what the profile counted), `bandwidth` or `latency`.
    pub value: &'static str,
    /// The value in words: `time waiting for memory`, `accesses a second`.
    pub valued: String,
    /// Quantity of the weights: `peak-rss` or `peak-requested`.
    pub weight: &'static str,
    /// Tiers, fastest first.
    pub tiers: Vec<TierUse>,
    /// Tier of data that the plan does not name.
    pub default_tier: String,
    /// Capacity of the fastest tier.
    pub fast_capacity_bytes: u64,
    /// `fast_capacity_bytes` as a share of the footprint.
    pub fast_capacity_share: f64,
    /// Value of all sites.
    pub total_value: u64,
    /// Share that the fastest tier serves by this plan.
    pub planned_share: f64,
    /// Share that first touch serves at the same capacity.
    pub first_touch_share: f64,
    /// Share that the fractional bound serves: no plan can do better.
    pub bound_share: f64,
    /// The plan as a share of the bound.
    pub planned_of_bound: f64,
    /// Sites of the plan that the profile does not have.
    pub unmatched_sites: usize,
    /// Sites of the profile that the plan lists as small.
    pub small_sites: usize,
    /// Tier of the small sites' data.
    pub small_tier: String,
    /// Sites of the profile that the plan does not name.
    pub unnamed_sites: usize,
}

/// A tier, and the data that the plan puts into it.
#[derive(Clone, Debug, Serialize)]
pub struct TierUse {
    /// Its name.
    pub name: String,
    /// True for both halves of the emulated pair.
    pub emulated: bool,
    /// Its capacity.
    pub capacity_bytes: u64,
    /// Bytes that the plan puts there, by its weights.
    pub planned_bytes: u64,
    /// Sites that it puts there.
    pub sites: usize,
}

impl PlanSummary {
    pub(crate) fn new(plan: &Plan, sites: &[SiteRow], totals: &SummaryTotals) -> Self {
        let ids: HashSet<SiteId> = sites.iter().map(|site| site.id).collect();
        let unmatched = plan.assignments.iter().filter(|a| !ids.contains(&a.site));
        let tiers = plan.tiers.all().iter().zip(0..).map(|(tier, index)| {
            let here = |tier| tier == TierIndex(index);
            TierUse {
                name: tier.name.clone(),
                emulated: tier.is_emulated(),
                capacity_bytes: tier.capacity.0,
                planned_bytes: plan.bytes_in(TierIndex(index)).0,
                sites: plan.assignments.iter().filter(|a| here(a.tier)).count(),
            }
        });
        let standing = &plan.standing;
        let fast = plan.tiers.get(TierIndex::FASTEST);
        let fast = fast.map_or(Bytes::ZERO, |tier| tier.capacity);
        let name = |index| plan.tiers.get(index).map(|tier| tier.name.clone());
        let unassigned = sites.iter().filter(|site| site.reason.is_none());
        let (small, unnamed): (Vec<&SiteRow>, Vec<&SiteRow>) =
            unassigned.partition(|site| plan.small.contains_key(&site.id));
        Self {
            policy: plan.policy.clone(),
            value: plan.value.word(),
            valued: plan.valued(),
            weight: plan.weight.word(),
            tiers: tiers.collect(),
            default_tier: name(plan.default_tier).unwrap_or_default(),
            fast_capacity_bytes: fast.0,
            fast_capacity_share: share(fast.0, totals.footprint_bytes),
            total_value: standing.total,
            planned_share: share(standing.planned, standing.total),
            first_touch_share: share(standing.first_touch, standing.total),
            bound_share: share(standing.bound, standing.total),
            planned_of_bound: standing.share_of_bound(),
            unmatched_sites: unmatched.count(),
            small_sites: small.len(),
            small_tier: name(plan.small_tier()).unwrap_or_default(),
            unnamed_sites: unnamed.len(),
        }
    }

    /// A sentence for each tier that gets more than it holds.
    pub(crate) fn spills(&self) -> Vec<String> {
        let over = |tier: &TierUse| Bytes(tier.planned_bytes.saturating_sub(tier.capacity_bytes));
        let overfull = self.tiers.iter().filter(|tier| over(tier) > Bytes::ZERO);
        let words = |tier: &TierUse| {
            format!(
                "{} takes sites of {} into {}, which holds {}: {} will spill.",
                self.policy,
                Bytes(tier.planned_bytes),
                tier.name,
                Bytes(tier.capacity_bytes),
                over(tier)
            )
        };
        overfull.map(words).collect()
    }

    /// Sentences on why the plan may not fit this profile.
    pub(crate) fn doubts(&self, totals: &SummaryTotals) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.value == Value::Accesses.word() && self.total_value != totals.accesses {
            doubts.push(format!(
                "The plan was made from another recording: its shares are not of the {} shown here.",
                totals.counted.noun()
            ));
        }
        if self.unmatched_sites > 0 {
            let sites = counted(self.unmatched_sites, "site");
            doubts.push(format!("{sites} of the plan did not allocate in this run."));
        }
        doubts
    }
}
