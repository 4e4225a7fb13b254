//! [`plan()`] makes a plan from a policy, sites and tiers ([`PlanRequest`]): tier by tier, fastest first, the policy chooses among the
//! sites, or parts of sites, that remain. If parts are given and the policy goes by value, the room that it leaves is filled with others,
//! cut to fit where they can be; and where the hottest ones alone serve more in the fastest tier, it gets these. [`plan_selected`] makes a
//! plan where the parts for the fastest tier are chosen already, as by ATMem.
//!
//! If a policy overfills a tier, the excess spills to the next one, whose capacity is reduced by the same bytes. The slowest tier gets the
//! rest.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Assignment, Caller, Item, PartItem, Plan, Value, Weight};
use isotherm_model::port::{Choice, FilledTier, SitePolicy};
use isotherm_model::site::{CallerId, SiteId};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

use crate::fill;
use crate::pieces::{Divisions, Pieces, Placed};
use crate::standing::standing;

/// The input of a plan.
#[derive(Clone, Copy)]
pub struct PlanRequest<'a> {
    /// The policy that chooses.
    pub policy: &'a dyn SitePolicy,
    /// The sites, in any order. A site that occurs twice counts as one with both values and
    /// weights; [`SiteId::UNATTRIBUTED`] is dropped, because it cannot be placed.
    pub items: &'a [Item],
    /// The tiers.
    pub tiers: &'a Tiers,
    /// Meaning of the items' values.
    pub value: Value,
    /// Unit of the profile's counts, from which the values are computed.
    pub counted: CountUnit,
    /// Meaning of the items' weights.
    pub weight: Weight,
    /// The program for which it is made.
    pub command: &'a [String],
    /// Callers in a calling context.
    pub depth: u32,
    /// The parts of each site that may be placed apart, in order and side by side; a site without an entry is placed as a whole. If parts
    /// are given, the room that a policy by value leaves is filled.
    pub parts: Option<&'a BTreeMap<SiteId, Vec<PartItem>>>,
    /// Sites without parts whose first memory may be placed apart where room is filled.
    pub leading: Option<&'a BTreeSet<SiteId>>,
    /// Labels of the sites, where known.
    pub labels: Option<&'a BTreeMap<SiteId, String>>,
    /// Callers of all sites that were seen, also of sites without an item, where known: sites without an item are the plan's [small
    /// sites](Plan::small).
    pub callers: Option<&'a BTreeMap<SiteId, Caller>>,
}

impl std::fmt::Debug for PlanRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} over {} sites", self.policy.name(), self.items.len())
    }
}

impl<'a> PlanRequest<'a> {
    /// A request by accesses and peak RSS, without a program; callers change the fields as needed.
    #[must_use]
    pub const fn new(policy: &'a dyn SitePolicy, items: &'a [Item], tiers: &'a Tiers) -> Self {
        Self {
            policy,
            items,
            tiers,
            value: Value::Accesses,
            counted: CountUnit::Unknown,
            weight: Weight::PeakRss,
            command: &[],
            depth: 0,
            parts: None,
            leading: None,
            labels: None,
            callers: None,
        }
    }

    /// The sites that may be divided.
    const fn divisions(&self) -> Divisions<'a> {
        Divisions {
            parts: self.parts,
            leading: self.leading,
        }
    }
}

/// Sites by id, each once, without the one that cannot be placed: the result does not depend on the
/// order of the input.
pub(crate) fn canonical(items: &[Item]) -> Vec<Item> {
    let placeable = items.iter().filter(|i| i.site.is_placeable());
    let mut sites: Vec<Item> = placeable.copied().collect();
    sites.sort_unstable_by_key(|item| item.site);
    sites.dedup_by(|item, known| {
        let is_known = item.site == known.site;
        if is_known {
            known.value = known.value.saturating_add(item.value);
            known.weight = known.weight.saturating_add(item.weight);
            known.order = known.order.min(item.order);
        }
        is_known
    });
    sites
}

/// The rule that chooses for the fastest tier.
enum Chooser {
    /// The request's policy.
    Policy,
    /// Heat alone: the hottest pieces, of which the last is cut to fit.
    Heat,
    /// A choice that is made already.
    Made(Vec<Choice>),
}

/// Decides which site goes to which tier.
///
/// A policy chooses whole pieces. If pieces can be cut, the hottest of them may serve more, as in the fractional bound; then the plan has
/// these.
#[must_use]
pub fn plan(request: &PlanRequest<'_>) -> Plan {
    let sites = canonical(request.items);
    let by = |chooser| {
        let mut pieces = Pieces::of(&sites, request.divisions());
        let placed = choose(request, &mut pieces, chooser);
        assemble(request, &sites, &pieces, placed)
    };
    let plan = by(Chooser::Policy);
    if request.parts.is_none() || !request.policy.fills() {
        return plan;
    }
    let hottest = by(Chooser::Heat);
    match hottest.standing.planned > plan.standing.planned {
        true => hottest,
        false => plan,
    }
}

/// As [`plan`](plan()), but the fastest tier gets the parts that are selected, by their site and the start of the part; the start of a site
/// without parts is 0. Tiers between the fastest and the slowest are filled by the request's policy. `name` is the name of the selection.
#[must_use]
pub fn plan_selected(
    request: &PlanRequest<'_>,
    name: &str,
    is_selected: impl Fn(SiteId, Bytes) -> bool,
) -> Plan {
    let sites = canonical(request.items);
    let mut pieces = Pieces::of(&sites, request.divisions());
    let choice = |number: usize| {
        let taken = is_selected(pieces.items[number].site, pieces.start(number));
        let reason = match taken {
            true => "taken: critical by its samples or those of its neighbours",
            false => "left out: not critical, or colder than what fills the tier",
        };
        Choice::new(number, taken, reason)
    };
    let fastest = (0..pieces.items.len()).map(choice).collect();
    let placed = choose(request, &mut pieces, Chooser::Made(fastest));
    Plan {
        policy: name.to_owned(),
        ..assemble(request, &sites, &pieces, placed)
    }
}

/// The tier of each piece, and the reason.
fn choose(request: &PlanRequest<'_>, pieces: &mut Pieces, mut fastest: Chooser) -> Vec<Placed> {
    let slowest = request.tiers.slowest();
    let mut placed: Vec<Placed> = vec![(slowest, String::new()); pieces.items.len()];
    let mut waiting: Vec<usize> = (0..pieces.items.len()).collect();
    let mut spilled = Bytes::ZERO;
    let faster = request.tiers.all().iter().zip(0..slowest.0);
    for (tier, index) in faster {
        let offered: Vec<Item> = waiting.iter().map(|&i| pieces.items[i]).collect();
        let capacity = tier.capacity.saturating_sub(spilled);
        let mut left = Vec::new();
        let mut used = Bytes::ZERO;
        let chooser = std::mem::replace(&mut fastest, Chooser::Policy);
        let fills = request.policy.fills() && !matches!(chooser, Chooser::Made(_));
        let filled = FilledTier {
            capacity,
            tiers: request.tiers,
            index: TierIndex(index),
        };
        let choices = match chooser {
            Chooser::Policy => request.policy.choose_for(&offered, &filled),
            Chooser::Heat => left_out(offered.len()),
            Chooser::Made(choices) => choices,
        };
        for choice in choices {
            let at = waiting[choice.item];
            if choice.taken {
                used += pieces.items[at].weight;
                placed[at] = (TierIndex(index), choice.reason);
            } else {
                placed[at].1 = choice.reason;
                left.push(at);
            }
        }
        left.sort_unstable();
        waiting = left;
        spilled = used.saturating_sub(capacity);
        if fills && request.parts.is_some() {
            let here = TierIndex(index);
            let taken = (0..placed.len())
                .filter(|piece| placed[*piece].0 == here)
                .collect();
            for (piece, reason) in fill::fill(pieces, &waiting, taken, capacity) {
                placed[piece] = (here, reason);
                waiting.retain(|waits| *waits != piece);
            }
            // The rest of a piece that was cut is a new piece.
            waiting.extend(placed.len()..pieces.items.len());
            let rest = "left out: the rest of what fit in part".to_owned();
            placed.resize(pieces.items.len(), (slowest, rest));
        }
    }
    if slowest == TierIndex::FASTEST {
        for (_, reason) in &mut placed {
            "taken: there is one tier".clone_into(reason);
        }
    }
    placed
}

/// The choice that takes no piece.
fn left_out(pieces: usize) -> Vec<Choice> {
    let choice = |item| Choice::new(item, false, "left out: colder than what fills the tier");
    (0..pieces).map(choice).collect()
}

fn assemble(
    request: &PlanRequest<'_>,
    sites: &[Item],
    pieces: &Pieces,
    placed: Vec<Placed>,
) -> Plan {
    let label = |site: SiteId| {
        request
            .labels
            .and_then(|labels| labels.get(&site))
            .cloned()
            .unwrap_or_default()
    };
    let (callers, small) = callers_of(sites, request.callers);
    let taken: Vec<Item> = pieces
        .items
        .iter()
        .zip(&placed)
        .filter(|(_, (tier, _))| *tier == TierIndex::FASTEST)
        .map(|(item, _)| *item)
        .collect();
    let capacity = request.tiers.all()[0].capacity;
    let mut assignments: Vec<Assignment> = sites
        .iter()
        .zip(pieces.gather(&placed, sites.len()))
        .map(|(item, gathered)| Assignment {
            site: item.site,
            tier: gathered.tier,
            value: item.value,
            weight: item.weight,
            parts: gathered.parts,
            leading: gathered.leading,
            caller: callers.get(&item.site).copied().unwrap_or(Caller::Unknown),
            reason: gathered.reason,
            label: label(item.site),
        })
        .collect();
    assignments.sort_unstable_by(Assignment::hotter_first);
    Plan {
        policy: request.policy.name().to_owned(),
        value: request.value,
        counted: request.counted,
        weight: request.weight,
        command: request.command.to_vec(),
        depth: request.depth,
        tiers: request.tiers.clone(),
        default_tier: default_tier(request, &assignments),
        small,
        standing: standing(&pieces.items, &taken, capacity),
        colours: Vec::new(),
        expected: None,
        assignments,
        frames: BTreeMap::new(),
    }
}

/// The callers of the items, each direct caller with whether it also has sites that are no items; and the sites that are no items, with
/// their callers.
fn callers_of(
    items: &[Item],
    callers: Option<&BTreeMap<SiteId, Caller>>,
) -> (BTreeMap<SiteId, Caller>, BTreeMap<SiteId, Caller>) {
    let is_item: BTreeSet<SiteId> = items.iter().map(|item| item.site).collect();
    let (mut planned, small): (BTreeMap<_, _>, BTreeMap<_, _>) = callers
        .into_iter()
        .flatten()
        .filter(|(site, _)| **site > SiteId::SHARED)
        .map(|(site, caller)| (*site, *caller))
        .partition(|(site, _)| is_item.contains(site));
    let others: BTreeSet<CallerId> = small.values().filter_map(Caller::direct).collect();
    for caller in planned.values_mut() {
        if let Caller::Direct { id, has_others } = caller {
            *has_others = others.contains(id);
        }
    }
    (planned, small)
}

/// The tier of data that the plan does not name. Nothing is known of it, so it is placed as by first touch: fast while there is room. A
/// request without the sites that were seen cannot distinguish it from small sites, which follow the arena that they shared.
fn default_tier(request: &PlanRequest<'_>, assignments: &[Assignment]) -> TierIndex {
    if let Some(tier) = request.policy.tier_of_all(request.tiers) {
        return tier;
    }
    let shared = assignments.iter().find(|a| a.site == SiteId::SHARED);
    match (request.callers, shared) {
        (None, Some(shared)) => shared.tier,
        _ => TierIndex::FASTEST,
    }
}

#[cfg(test)]
mod tests {
    use super::{PlanRequest, plan};
    use crate::properties::{items, node_tiers};
    use crate::{Hotset, Knapsack, by_name, names};
    use isotherm_model::plan::{Caller, Item};
    use isotherm_model::site::{CallerId, SiteId};
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    const KIB: u64 = 4096;

    #[test]
    fn unnamed_sites_follow_the_arena_they_shared_and_without_one_first_touch() {
        let item = |site, value| Item {
            site,
            value,
            weight: Bytes(KIB),
            order: 0,
        };
        let tiers = node_tiers(&[2 * KIB, 99 * KIB]);
        let hot = [item(SiteId::SHARED, 9), item(SiteId(5), 1)];
        assert_eq!(
            plan(&PlanRequest::new(&Hotset, &hot, &tiers)).default_tier,
            TierIndex::FASTEST
        );
        let none = [item(SiteId(5), 1)];
        assert_eq!(
            plan(&PlanRequest::new(&Hotset, &none, &tiers)).default_tier,
            TierIndex::FASTEST
        );
    }

    #[test]
    fn a_plan_that_lists_small_sites_leaves_the_unknown_to_first_touch() {
        let cold = [(SiteId(5), 9), (SiteId::SHARED, 1)].map(|(site, value)| Item {
            site,
            value,
            weight: Bytes(KIB),
            order: 0,
        });
        let tiers = node_tiers(&[KIB, 99 * KIB]);
        let small = SiteId(6);
        let callers = [SiteId::UNATTRIBUTED, SiteId::SHARED, SiteId(5), small];
        let callers = callers.map(|site| (site, Caller::None)).into();
        let by = |name| {
            plan(&PlanRequest {
                callers: Some(&callers),
                ..PlanRequest::new(by_name(name).unwrap(), &cold, &tiers)
            })
        };
        for (name, default) in [
            ("knapsack", 0),
            ("first-touch", 0),
            ("all-fast", 0),
            ("all-slow", 1),
        ] {
            let plan = by(name);
            assert_eq!(plan.small, [(small, Caller::None)].into(), "{name}");
            assert_eq!(plan.default_tier, TierIndex(default), "{name}");
        }
        let plan = by("knapsack");
        assert_eq!(plan.tier_of(small), TierIndex(1));
        assert_eq!(plan.tier_of(SiteId(7)), TierIndex::FASTEST);
    }

    #[test]
    fn a_caller_that_was_seen_in_contexts_without_an_item_says_so() {
        let items = items(&[(7, 2), (1, 1), (1, 1)]);
        let [a, b, c] = [items[0].site, items[1].site, items[2].site];
        let callers = [(a, 10), (b, 11), (SiteId(99), 11)];
        let direct = |id, has_others| Caller::Direct {
            id: CallerId(id),
            has_others,
        };
        let callers = callers.map(|(site, id)| (site, direct(id, false))).into();
        let tiers = node_tiers(&[2, 9]);
        let plan = plan(&PlanRequest {
            callers: Some(&callers),
            ..PlanRequest::new(&Hotset, &items, &tiers)
        });
        let caller_of = |site| {
            let assignment = plan.assignments.iter().find(|a| a.site == site);
            assignment.unwrap().caller
        };
        assert_eq!(caller_of(a), direct(10, false));
        assert_eq!(caller_of(b), direct(11, true));
        assert_eq!(caller_of(c), Caller::Unknown);
    }

    #[test]
    fn a_site_given_twice_counts_once_with_both_values_and_weights() {
        let one = items(&[(7, 2), (1, 1)]);
        let [a, b] = [one[0], one[1]];
        let half = Item {
            value: 3,
            weight: Bytes(1),
            ..a
        };
        let rest = Item {
            value: 4,
            weight: Bytes(1),
            order: 9,
            ..a
        };
        let tiers = node_tiers(&[2, 9]);
        let whole = plan(&PlanRequest::new(&Hotset, &one, &tiers));
        let split = plan(&PlanRequest::new(&Hotset, &[rest, b, half], &tiers));
        assert_eq!(split, whole);
        assert_eq!(whole.assignments.len(), 2);
    }

    #[test]
    fn three_tiers_are_filled_by_speed_with_what_the_faster_left() {
        let sites = items(&[(90, KIB), (80, KIB), (70, KIB), (60, KIB)]);
        let tiers = node_tiers(&[KIB, 2 * KIB, 100 * KIB]);
        let plan = plan(&PlanRequest::new(&Knapsack::DEFAULT, &sites, &tiers));
        let tier: Vec<u32> = sites.iter().map(|s| plan.tier_of(s.site).0).collect();
        assert_eq!(tier, [0, 1, 1, 2]);
        assert_eq!(plan.default_tier, TierIndex::FASTEST);
        assert_eq!((plan.standing.planned, plan.standing.total), (90, 300));
    }

    #[test]
    fn what_hotset_spills_from_one_tier_is_room_the_next_does_not_have() {
        let sites = items(&[(90, 3), (40, 3), (30, 3), (20, 3)]);
        let tiers = node_tiers(&[4, 4, 100]);
        let plan = plan(&PlanRequest::new(&Hotset, &sites, &tiers));
        let tier: Vec<u32> = sites.iter().map(|s| plan.tier_of(s.site).0).collect();
        // Two sites exceed the first tier by 2 bytes, so two bytes of the second are used: one more
        // site exceeds the rest, and the last is left.
        assert_eq!(tier, [0, 0, 1, 2]);
        assert_eq!(plan.standing.planned, 90 + 40 / 3);
    }

    #[test]
    fn no_sites_one_tier_and_a_site_that_cannot_be_placed_are_fine_for_every_policy() {
        let stray = [Item {
            site: SiteId::UNATTRIBUTED,
            value: 9,
            weight: Bytes(9),
            order: 0,
        }];
        let sites = items(&[(1, 1), (0, 0)]);
        for policy in names().filter_map(by_name) {
            let pair = node_tiers(&[5, 5]);
            assert!(
                plan(&PlanRequest::new(policy, &[], &pair))
                    .assignments
                    .is_empty()
            );
            assert!(
                plan(&PlanRequest::new(policy, &stray, &pair))
                    .assignments
                    .is_empty()
            );
            let alone = node_tiers(&[0]);
            let plan = plan(&PlanRequest::new(policy, &sites, &alone));
            assert_eq!(plan.assignments.len(), 2);
            assert_eq!(plan.default_tier, TierIndex::FASTEST);
        }
    }
}
