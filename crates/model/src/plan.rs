//! [`Plan`] holds a policy's decision: the tier of each site, of parts of its data objects or its first bytes that go elsewhere
//! ([`LeadingBytes`]), and of small and unlisted sites, with reasons, bounds and expected times, as a value that can be printed, compared,
//! stored, rejected and replayed, and the callers by which another build finds the sites. Its methods give the tier of each site and
//! caller; [`Item`] and [`PartItem`] are the policy's input.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::colour::ColourDevices;
use crate::count_unit::CountUnit;
use crate::hotness::hotter_first;
use crate::site::{CallerId, Frame, SiteId};
use crate::tier::{TierIndex, Tiers};
use crate::units::Bytes;

variant_words! {
    /// The quantity that makes a site valuable.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Value {
        /// The count of the profile; [`Plan::counted`] names its unit.
        Accesses = "accesses",
        /// Bytes a second of the run, from runs in which the site was alone in a tier ([`crate::isolation_runs`]).
        Bandwidth = "bandwidth",
        /// Bytes a second of the run, estimated from the samples of a plain profile.
        SampledBandwidth = "sampled-bandwidth",
        /// Accesses weighted by the measured latency of each. Only for profiles whose sources all
        /// measure latency.
        Latency = "latency",
    }
}

variant_words! {
    /// The quantity that measures the size of a site.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Weight {
        /// Most bytes resident at one time.
        PeakRss = "peak-rss",
        /// Most bytes requested at one time.
        PeakRequested = "peak-requested",
    }
}

/// The input of a policy for one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The site.
    pub site: SiteId,
    /// Its value, in the unit of [`Value`].
    pub value: u64,
    /// Its size, measured by [`Weight`].
    pub weight: Bytes,
    /// Position in the order of first allocation, for policies that follow it (first touch).
    pub order: u32,
}

/// A range within each data object of a site, as a policy receives it: the ranges of a site share its value and weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartItem {
    /// First byte from the object's start, a multiple of the page.
    pub start: Bytes,
    /// First byte past it, a multiple of the page.
    pub end: Bytes,
    /// Its value, in the unit of the site's value.
    pub value: u64,
    /// Bytes of the range in all objects together.
    pub weight: Bytes,
}

/// The caller that requests a site's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The caller is unknown.
    Unknown,
    /// No caller identifies the site: it is a mapping, or the compiler named it.
    None,
    /// This direct caller, in one of its contexts.
    Direct {
        /// Id of the caller.
        id: CallerId,
        /// True where the caller was also seen in contexts that have no assignment, because they
        /// allocated little: [`Plan::small`], where the plan lists them.
        has_others: bool,
    },
}

impl Caller {
    /// The direct caller, if it identifies the site.
    #[must_use]
    pub const fn direct(&self) -> Option<CallerId> {
        match self {
            Self::Direct { id, .. } => Some(*id),
            Self::Unknown | Self::None => None,
        }
    }
}

/// A range within each data object of a site, from the object's start on, so that it holds in the next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedPart {
    /// First byte, a multiple of the page of 4 KiB.
    pub start: Bytes,
    /// First byte past it, a multiple of the page.
    pub end: Bytes,
    /// Tier for its data.
    pub tier: TierIndex,
    /// Value of this part, in the unit of the site's value.
    pub value: u64,
    /// Bytes of the part in all objects together.
    pub weight: Bytes,
}

/// The memory that a program allocates first at a site, if it goes elsewhere than later memory: for a site of many small objects, whose
/// places are not known, as much as a tier has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadingBytes {
    /// The site of the profile. A rebuilt program may have several names for it, all of which together have these bytes.
    pub site: SiteId,
    /// Tier for this memory.
    pub tier: TierIndex,
    /// Bytes of the site's memory that go to this tier, above 0.
    pub bytes: Bytes,
    /// Its value, in the unit of the site's value.
    pub value: u64,
}

/// The decision of a policy for one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The site.
    pub site: SiteId,
    /// Tier for its data, except for the data of [`Self::parts`] and the [`Self::leading`] memory.
    pub tier: TierIndex,
    /// Value that the policy received.
    pub value: u64,
    /// Weight that the policy received.
    pub weight: Bytes,
    /// Parts of its data objects that go elsewhere, in order and without overlap. Empty where the site is placed as a whole.
    pub parts: Vec<PlacedPart>,
    /// The memory that is allocated first, if it goes elsewhere. A site has this or parts, not both.
    pub leading: Option<LeadingBytes>,
    /// The caller that requests its memory.
    pub caller: Caller,
    /// The reason for this tier, one sentence.
    pub reason: String,
    /// Its code location in words, for people; not compared, not needed to apply the plan.
    pub label: String,
}

/// Value in the fastest tier, beside its lower and upper bounds.
///
/// One rule computes all of them: bytes enter the tier in the order of first allocation until it is full. A site that fits in part serves
/// that part of its value (rounded down). So `planned` of a plan that overfills the tier, as hotset and thermos may, does not count data
/// that will spill, and `planned <= bound` and `first_touch <= bound` always hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanBounds {
    /// Value that this plan serves.
    pub planned: u64,
    /// Value that first touch serves at the same capacity.
    pub first_touch: u64,
    /// The fractional bound: no plan can do better at the same capacity.
    pub bound: u64,
    /// Value of all sites together.
    pub total: u64,
}

/// The expected times of the program in each placement, over its time with all data fast: above 0, and below 1 only where the bandwidths of
/// several tiers add up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedTimes {
    /// All data in the slowest tier.
    pub all_slow: f64,
    /// The placement by first touch.
    pub first_touch: f64,
    /// The placement by this plan.
    pub planned: f64,
    /// The placement of the fractional bound: no plan can do better at the same capacity.
    pub bound: f64,
}

/// The decision of a policy: the tier of each site, with the reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the policy.
    pub policy: String,
    /// Meaning of the values.
    pub value: Value,
    /// Unit of the profile's counts.
    pub counted: CountUnit,
    /// Meaning of the weights.
    pub weight: Weight,
    /// The program for which it was made.
    pub command: Vec<String>,
    /// Callers in a calling context; the guided run must use the same.
    pub depth: u32,
    /// The tiers into which it places data.
    pub tiers: Tiers,
    /// Tier for data of sites that the plan does not name.
    pub default_tier: TierIndex,
    /// Sites that were seen and have no assignment, because they allocated too little for memory of their own, with their callers. Their
    /// data goes to [`Plan::small_tier`]. Empty in plans of versions that did not list them.
    pub small: BTreeMap<SiteId, Caller>,
    /// Its value between the bounds.
    pub standing: PlanBounds,
    /// The devices of each colour, hot first, each colour with a tier of its own; empty where the policy colours nothing.
    pub colours: Vec<ColourDevices>,
    /// The predicted times, if the profile records how long the program waited and the tiers state how much slower they are.
    pub expected: Option<ExpectedTimes>,
    /// Sites, by value per byte descending, then by id.
    pub assignments: Vec<Assignment>,
    /// Callers of the sites, innermost first, by which another build of the program is matched to
    /// the sites; no entry for a site with unknown callers.
    pub frames: BTreeMap<SiteId, Vec<Frame>>,
}

impl Item {
    /// The order of [`hotter_first`].
    #[must_use]
    pub fn hotter_first(&self, other: &Self) -> Ordering {
        hotter_first(
            (self.value, self.weight, self.site),
            (other.value, other.weight, other.site),
        )
    }
}

impl Assignment {
    /// The order of [`hotter_first`].
    #[must_use]
    pub fn hotter_first(&self, other: &Self) -> Ordering {
        hotter_first(
            (self.value, self.weight, self.site),
            (other.value, other.weight, other.site),
        )
    }
}

impl Assignment {
    /// The tier, the value and the bytes of each of its parts, of its leading memory, and last of the rest of the site.
    pub fn shares(&self) -> impl Iterator<Item = (TierIndex, u64, Bytes)> {
        let parts = self.parts.iter();
        let parts = parts.map(|part| (part.tier, part.value, part.weight));
        let leading = self.leading.iter();
        let apart = parts.chain(leading.map(|first| (first.tier, first.value, first.bytes)));
        let mut rest = (self.tier, self.value, self.weight);
        for (_, value, bytes) in apart.clone() {
            rest.1 = rest.1.saturating_sub(value);
            rest.2 = rest.2.saturating_sub(bytes);
        }
        apart.chain([rest])
    }

    /// Bytes of the site that go into a tier, by the plan's weights.
    #[must_use]
    pub fn bytes_in(&self, tier: TierIndex) -> Bytes {
        let here = self.shares().filter(|(to, ..)| *to == tier);
        here.map(|(.., bytes)| bytes).sum()
    }

    /// Value of the site's data that goes into a tier.
    #[must_use]
    pub fn value_in(&self, tier: TierIndex) -> u64 {
        let here = self.shares().filter(|(to, ..)| *to == tier);
        here.fold(0, |sum, (_, value, _)| sum.saturating_add(value))
    }

    /// Whether its data goes to more than one tier, so that a run must tell its calling context.
    #[must_use]
    pub fn is_divided(&self) -> bool {
        !self.parts.is_empty() || self.leading.is_some()
    }
}

impl Plan {
    /// The quantity of the values, in words: `accesses`, `time waiting for memory a second`.
    #[must_use]
    pub fn valued(&self) -> String {
        match self.value {
            Value::Accesses | Value::Latency => self.counted.noun().to_owned(),
            Value::Bandwidth => format!("{} a second", self.counted.noun()),
            Value::SampledBandwidth => format!("estimated {} a second", self.counted.noun()),
        }
    }

    /// A value with its unit, in words: `90 accesses`, `7 samples of time waiting for memory a
    /// second`.
    #[must_use]
    pub fn value_in_words(&self, value: u64) -> String {
        let counted = self.counted.counted(value);
        match self.value {
            Value::Accesses | Value::Latency => counted,
            Value::Bandwidth => format!("{counted} a second"),
            Value::SampledBandwidth => format!("{counted} a second, estimated"),
        }
    }

    /// The tier for this site; if it has parts, the tier for data outside them.
    #[must_use]
    pub fn tier_of(&self, site: SiteId) -> TierIndex {
        let assignment = self.assignments.iter().find(|a| a.site == site);
        assignment.map_or_else(|| self.unassigned_tier(site), |a| a.tier)
    }

    /// The tier for this site, which has no assignment.
    #[must_use]
    pub fn unassigned_tier(&self, site: SiteId) -> TierIndex {
        match self.small.contains_key(&site) {
            true => self.small_tier(),
            false => self.default_tier,
        }
    }

    /// The tier of the [small sites](Self::small): the tier of the arena that they shared while they were recorded. A plan that lists none
    /// cannot distinguish them from sites that were never seen.
    #[must_use]
    pub fn small_tier(&self) -> TierIndex {
        let mut shared = self
            .assignments
            .iter()
            .filter(|a| a.site == SiteId::SHARED && !self.small.is_empty());
        shared.next().map_or(self.default_tier, |a| a.tier)
    }

    /// True where the small sites go elsewhere than to the default tier, so that a run must know them.
    fn small_are_elsewhere(&self) -> bool {
        !self.small.is_empty() && self.small_tier() != self.default_tier
    }

    /// The tier of everything that each direct caller allocates; `None` for a caller whose contexts
    /// go to different tiers. Where all sites of a caller agree, a context of it that was never seen
    /// goes with them. A caller that is not listed has no site in the plan, or only small ones of the default tier.
    ///
    /// `None` as a whole if the caller of a site is unknown, as it may be any.
    #[must_use]
    pub fn tiers_by_caller(&self) -> Option<BTreeMap<CallerId, Option<TierIndex>>> {
        let small_callers: BTreeSet<CallerId> =
            self.small.values().filter_map(Caller::direct).collect();
        let mut callers = BTreeMap::new();
        let sites = self.assignments.iter().filter(|a| a.site > SiteId::SHARED);
        for site in sites {
            let (id, has_others) = match site.caller {
                Caller::Unknown => return None,
                Caller::None => continue,
                Caller::Direct { id, has_others } => (id, has_others),
            };
            let known = callers.entry(id).or_insert(Some(site.tier));
            // Sites that the plan cannot name, at least in this build, go to the default tier.
            let others_unnamed = has_others && !small_callers.contains(&id);
            let others_differ = others_unnamed && site.tier != self.default_tier;
            // A tier of the caller would hold for all memory that it allocates.
            if *known != Some(site.tier) || others_differ || site.is_divided() {
                *known = None;
            }
        }
        let (small_tier, are_elsewhere) = (self.small_tier(), self.small_are_elsewhere());
        for caller in self.small.values() {
            match caller {
                Caller::Unknown if are_elsewhere => return None,
                Caller::Direct { id, .. } if are_elsewhere || callers.contains_key(id) => {
                    let known = callers.entry(*id).or_insert(Some(small_tier));
                    *known = known.filter(|tier| *tier == small_tier);
                }
                Caller::Unknown | Caller::None | Caller::Direct { .. } => {}
            }
        }
        Some(callers)
    }

    /// The tier of each site whose data would go elsewhere if `callers` ([`Self::tiers_by_caller`]) and the default tier alone decided; and
    /// of all sites with an assignment, so that a run can report which of them it made.
    #[must_use]
    pub fn tiers_by_site(
        &self,
        callers: Option<&BTreeMap<CallerId, Option<TierIndex>>>,
    ) -> Vec<(SiteId, TierIndex)> {
        let small_tier = self.small_tier();
        let is_decided = |caller| match caller {
            Caller::Direct { id, .. } => {
                callers.is_some_and(|callers| callers.get(&id) == Some(&Some(small_tier)))
            }
            Caller::Unknown | Caller::None => false,
        };
        let sites = self.assignments.iter().filter(|a| a.site > SiteId::SHARED);
        let planned = sites.map(|site| (site.site, site.tier));
        let are_elsewhere = self.small_are_elsewhere();
        let small = self
            .small
            .iter()
            .filter(|(_, caller)| are_elsewhere && !is_decided(**caller))
            .map(|(site, _)| (*site, small_tier));
        planned.chain(small).collect()
    }

    /// Bytes that the plan puts into a tier, by its weights.
    #[must_use]
    pub fn bytes_in(&self, tier: TierIndex) -> Bytes {
        self.assignments
            .iter()
            .map(|site| site.bytes_in(tier))
            .sum()
    }
}

impl PlanBounds {
    /// Share of the bound that the plan reaches; 1 where the bound is zero.
    #[must_use]
    pub fn share_of_bound(&self) -> f64 {
        self.share_of(self.planned)
    }

    fn share_of(&self, value: u64) -> f64 {
        match self.bound {
            0 => 1.0,
            bound => value as f64 / bound as f64,
        }
    }
}

impl fmt::Display for PlanBounds {
    /// `0.97 of the bound (first touch 0.41)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (planned, first_touch) = (self.share_of_bound(), self.share_of(self.first_touch));
        write!(
            f,
            "{planned:.2} of the bound (first touch {first_touch:.2})"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Assignment, Caller, Plan, PlanBounds, Value, Weight};
    use crate::count_unit::CountUnit;
    use crate::emulation::Emulation;
    use crate::site::{CallerId, SiteId};
    use crate::tier::{TierIndex, Tiers};
    use crate::units::Bytes;

    const FAST: TierIndex = TierIndex(0);
    const SLOW: TierIndex = TierIndex(1);

    fn site(site: u64, tier: TierIndex, caller: Caller) -> Assignment {
        Assignment {
            site: SiteId(site),
            tier,
            value: 1,
            weight: Bytes(1),
            parts: Vec::new(),
            leading: None,
            caller,
            reason: String::new(),
            label: String::new(),
        }
    }

    fn direct(id: u64, has_others: bool) -> Caller {
        let id = CallerId(id);
        Caller::Direct { id, has_others }
    }

    fn alone(id: u64) -> Caller {
        direct(id, false)
    }

    fn with_others(id: u64) -> Caller {
        direct(id, true)
    }

    /// A plan of the emulated pair whose default is fast.
    fn plan(assignments: Vec<Assignment>) -> Plan {
        Plan {
            policy: "thermos".into(),
            value: Value::Accesses,
            counted: CountUnit::Accesses,
            weight: Weight::PeakRss,
            command: Vec::new(),
            depth: 4,
            tiers: Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP),
            default_tier: FAST,
            small: BTreeMap::new(),
            standing: PlanBounds::default(),
            colours: Vec::new(),
            expected: None,
            assignments,
            frames: BTreeMap::new(),
        }
    }

    #[test]
    fn a_caller_has_a_tier_where_all_its_contexts_agree_the_unnamed_ones_included() {
        let plan = plan(vec![
            site(11, FAST, alone(1)),
            site(12, FAST, alone(1)),
            site(21, FAST, alone(2)),
            site(22, SLOW, alone(2)),
            site(31, SLOW, alone(3)),
            site(41, SLOW, with_others(4)),
            site(51, FAST, with_others(5)),
            site(61, SLOW, Caller::None),
            site(1, SLOW, Caller::Unknown),
        ]);
        let tiers: Vec<_> = plan.tiers_by_caller().unwrap().into_iter().collect();
        let expected = [
            (1, Some(FAST)),
            (2, None),
            (3, Some(SLOW)),
            (4, None),
            (5, Some(FAST)),
        ];
        assert_eq!(tiers, expected.map(|(id, tier)| (CallerId(id), tier)));
    }

    /// The plan of the test above with small sites whose shared arena is slow.
    fn with_small() -> Plan {
        let small = [
            (15, alone(1)),
            (35, alone(3)),
            (75, alone(7)),
            (76, alone(7)),
            (85, Caller::None),
        ];
        Plan {
            small: small.map(|(site, caller)| (SiteId(site), caller)).into(),
            ..plan(vec![
                site(11, FAST, with_others(1)),
                site(31, SLOW, with_others(3)),
                site(91, FAST, alone(9)),
                site(1, SLOW, Caller::Unknown),
            ])
        }
    }

    #[test]
    fn small_sites_follow_the_shared_arena_and_sites_that_were_never_seen_the_default() {
        let plan = with_small();
        let tiers = [11, 15, 31, 35, 75, 85, 1, 99].map(|site| plan.tier_of(SiteId(site)));
        let expected = [FAST, SLOW, SLOW, SLOW, SLOW, SLOW, SLOW, FAST];
        assert_eq!(tiers, expected);
        let before = Plan {
            small: BTreeMap::new(),
            ..plan
        };
        assert_eq!(before.tier_of(SiteId(15)), FAST);
        assert_eq!(before.small_tier(), FAST);
    }

    #[test]
    fn a_run_looks_for_small_sites_only_where_their_caller_does_not_decide() {
        let plan = with_small();
        let callers = plan.tiers_by_caller().unwrap();
        let expected = [(1, None), (3, Some(SLOW)), (7, Some(SLOW)), (9, Some(FAST))];
        let expected = expected.map(|(id, tier)| (CallerId(id), tier));
        assert_eq!(Vec::from_iter(callers.clone()), expected);
        let sites = |callers| {
            let sites = plan.tiers_by_site(callers).into_iter();
            sites.map(|(site, tier)| (site.0, tier)).collect::<Vec<_>>()
        };
        let (planned, small) = (
            [(11, FAST), (31, SLOW), (91, FAST)],
            [(15, SLOW), (85, SLOW)],
        );
        assert_eq!(sites(Some(&callers)), [&planned[..], &small].concat());
        assert_eq!(sites(None).len(), plan.small.len() + planned.len());
    }

    /// In a rebuilt program the small sites have other callers than the plan names.
    #[test]
    fn a_caller_whose_other_sites_the_plan_cannot_name_decides_nothing() {
        let mut plan = with_small();
        plan.assignments.push(site(41, SLOW, with_others(4)));
        plan.default_tier = FAST;
        assert_eq!(plan.tiers_by_caller().unwrap()[&CallerId(4)], None);
        let own = Caller::Direct {
            id: CallerId(4),
            has_others: true,
        };
        plan.small.insert(SiteId(45), own);
        assert_eq!(plan.small_tier(), SLOW);
        assert_eq!(plan.tiers_by_caller().unwrap()[&CallerId(4)], Some(SLOW));
    }

    #[test]
    fn small_sites_of_the_default_tier_need_not_be_known() {
        let mut plan = with_small();
        plan.default_tier = SLOW;
        let callers = plan.tiers_by_caller().unwrap();
        assert_eq!(callers.get(&CallerId(7)), None);
        assert_eq!(callers[&CallerId(1)], None);
        assert_eq!(plan.tiers_by_site(Some(&callers)).len(), 3);
    }

    #[test]
    fn one_site_of_unknown_caller_leaves_all_callers_unknown() {
        let plan = plan(vec![
            site(11, FAST, alone(1)),
            site(12, FAST, Caller::Unknown),
        ]);
        assert_eq!(plan.tiers_by_caller(), None);
    }
}
