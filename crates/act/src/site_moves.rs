//! [`SiteMoves`] moves sites between nodes in an online run: a request to the runtime has new memory of a site allocated on its tier's
//! nodes, an executor moves the existing pages within a time limit, and each site gets one outcome.
//!
//! A word in the program's session file holds the tier for the next chunks of the site's arena; the existing pages are moved from outside.
//! Moves beyond the time limit are left out: the next epoch decides again.

use isotherm_model::batch::Extent;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Action, Fate, Outcome, Reason};
use isotherm_model::port::{Clock, Executor, RangeExecutor};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};

use crate::movement::limit::{Allowance, Limit};
use crate::placement_requests::PlacementRequestWriter;

/// Places and moves the data of sites.
#[derive(Debug)]
pub struct SiteMoves<M, C> {
    placement: PlacementRequestWriter,
    /// Moves ranges.
    pub mover: M,
    clock: C,
    /// Time that the moves of one epoch may take.
    time: Nanos,
    /// Nodes of each tier, in the order of filling.
    nodes: Vec<Vec<NodeId>>,
}

impl<M: RangeExecutor, C: Clock> SiteMoves<M, C> {
    /// Requests tiers by `placement` and moves by `mover`, in each epoch for about `time`. A tier
    /// without nodes holds no data that could be moved.
    pub fn new(
        placement: PlacementRequestWriter,
        mover: M,
        clock: C,
        time: Nanos,
        tiers: &Tiers,
    ) -> Self {
        let nodes = tiers.all().iter().map(|tier| NodeId::of(tier).collect());
        Self {
            placement,
            mover,
            clock,
            time,
            nodes: nodes.collect(),
        }
    }
}

impl<M: RangeExecutor, C: Clock + Clone> Executor for SiteMoves<M, C> {
    fn execute(&mut self, actions: &[Action], extents: &[Extent]) -> Vec<Outcome> {
        let mover = Limit::new(&mut self.mover, self.clock.clone(), Allowance::UNLIMITED);
        let mut mover = mover.within(self.time);
        Outcome::of_each(actions, |action| {
            // First, so that no new page is allocated on the old node.
            let placed = self.placement.one(action);
            match self.nodes.get(action.tier.0 as usize) {
                Some(nodes) if placed == Fate::Requested => {
                    move_site(&mut mover, nodes, action, extents)
                }
                _ => placed,
            }
        })
    }
}

/// Moves the data of a site to the nodes of its tier.
fn move_site(
    mover: &mut impl RangeExecutor,
    nodes: &[NodeId],
    action: &Action,
    extents: &[Extent],
) -> Fate {
    let mut left = ranges(action, extents);
    let mut tally = Tally::default();
    for (turn, node) in nodes.iter().enumerate() {
        let last = turn + 1 == nodes.len();
        let to_node = |range: &AddressRange| RangeAction {
            process: action.process,
            range: *range,
            node: *node,
        };
        let outcomes = mover.execute(&left.iter().map(to_node).collect::<Vec<_>>());
        // Pages refused by a full node may fit on the tier's next one.
        left = if last { Vec::new() } else { busy(&outcomes) };
        tally.add(&outcomes, last);
    }
    tally.fate()
}

/// The ranges of the site's data.
fn ranges(action: &Action, extents: &[Extent]) -> Vec<AddressRange> {
    let of_site = |extent: &&Extent| {
        extent.process == action.process
            && extent.site == action.site
            && extent.resident > Bytes::ZERO
    };
    let of_site = extents.iter().filter(of_site);
    of_site.map(Extent::range).collect()
}

/// The parts that were busy, as ranges.
fn busy(outcomes: &[RangeOutcome]) -> Vec<AddressRange> {
    let ranges = outcomes.iter().flat_map(RangeOutcome::ranges);
    let busy = ranges.filter(|(_, fate)| matches!(fate, Fate::Busy(_)));
    busy.map(|(range, _)| range).collect()
}

/// Bytes of a site by outcome.
#[derive(Debug, Default)]
struct Tally {
    moved: Bytes,
    there: Bytes,
    busy: Bytes,
    denied: Bytes,
    left: Bytes,
    /// Why the last part was not moved.
    reason: String,
}

impl Tally {
    /// Adds outcomes; busy parts only if they are not tried again.
    fn add(&mut self, outcomes: &[RangeOutcome], with_busy: bool) {
        for part in outcomes.iter().flat_map(|outcome| &outcome.parts) {
            let (sum, reason) = match &part.fate {
                Fate::Moved => (&mut self.moved, None),
                Fate::AlreadyThere | Fate::Requested => (&mut self.there, None),
                Fate::Busy(_) if !with_busy => continue,
                Fate::Busy(why) => (&mut self.busy, Some(why.to_string())),
                Fate::Denied(why) => (&mut self.denied, Some(why.to_string())),
                Fate::NotAttempted(Reason::NotTouched) => continue,
                Fate::NotAttempted(why) => (&mut self.left, Some(why.to_string())),
            };
            *sum += part.bytes;
            if let Some(reason) = reason {
                self.reason = reason;
            }
        }
    }

    /// One fate for the site. If a part was not moved, the fate of that part, because the site is then decided again, with the share of
    /// that part; but a tenth may stay forever, such as pages that the program locked.
    fn fate(self) -> Fate {
        let stayed: Bytes = [self.busy, self.denied, self.left].into_iter().sum();
        let all: Bytes = [stayed, self.moved, self.there].into_iter().sum();
        let in_words = |reason: &str| format!("{stayed} of {all} stayed: {reason}");
        if self.left > Bytes::ZERO {
            return Fate::NotAttempted(in_words(&self.reason).into());
        }
        if stayed.0.saturating_mul(10) > all.0 {
            return match self.busy >= self.denied {
                true => Fate::Busy(in_words(&self.reason).into()),
                false => Fate::Denied(in_words(&self.reason).into()),
            };
        }
        match self.moved > Bytes::ZERO {
            true => Fate::Moved,
            false => Fate::AlreadyThere,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use super::*;
    use crate::placement_requests::tests::{action, session_file};
    use isotherm_model::batch::Process;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::{Placement, Tier, TierIndex, TierKind};

    const PAGE: u64 = 4096;

    /// Nodes with room for this many pages; a page stays after its first move.
    #[derive(Default)]
    struct Nodes {
        room: BTreeMap<u32, u64>,
        pages: BTreeMap<u64, u32>,
    }

    impl Nodes {
        fn page(&mut self, address: u64, node: u32) -> Fate {
            if self.pages.get(&address) == Some(&node) {
                return Fate::AlreadyThere;
            }
            let room = self.room.entry(node).or_default();
            if *room == 0 {
                return Fate::Busy(format!("node {node} is full").into());
            }
            *room -= 1;
            self.pages.insert(address, node);
            Fate::Moved
        }
    }

    impl RangeExecutor for Nodes {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            let range = action.range;
            let mut outcome = RangeOutcome::begin(action);
            for address in (range.start..range.end()).step_by(PAGE as usize) {
                outcome.push(Bytes(PAGE), self.page(address, action.node.0));
            }
            outcome
        }
    }

    fn tiers(nodes: &[&[u32]]) -> Tiers {
        let tier = |(number, nodes): (usize, &&[u32])| Tier {
            name: format!("tier-{number}"),
            kind: TierKind::Nodes(nodes.to_vec()),
            capacity: Bytes(1 << 30),
            placement: Placement::Preferred,
            latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            loaded: Vec::new(),
            reason: String::new(),
        };
        Tiers::new(nodes.iter().enumerate().map(tier).collect()).unwrap()
    }

    fn extent(site: u64, address: u64, pages: u64) -> Extent {
        Extent {
            process: Process { pid: 7, image: 0 },
            site: SiteId(site),
            address,
            bytes: Bytes(pages * PAGE),
            resident: Bytes(pages * PAGE),
            tier: None,
        }
    }

    /// A second passes between two readings.
    #[derive(Default)]
    struct SlowClock(Cell<u64>);

    impl Clock for SlowClock {
        fn now(&self) -> Nanos {
            self.0.set(self.0.get() + 1_000_000_000);
            Nanos(self.0.get())
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, _: Nanos) {}
    }

    /// Moves site 0x55 of 20 pages in two ranges, beside another site, to tier 1 with this much room.
    fn moved(nodes: &[&[u32]], room: &[(u32, u64)], seconds: u64) -> (Fate, Nodes) {
        let dir = tempfile::tempdir().unwrap();
        let _file = session_file(&dir.path().join("7.0"));
        let mover = Nodes {
            room: room.iter().copied().collect(),
            ..Nodes::default()
        };
        let placement = PlacementRequestWriter::placing(dir.path().to_owned());
        let time = Nanos(seconds * 1_000_000_000);
        let clock = Rc::new(SlowClock::default());
        let mut moves = SiteMoves::new(placement, mover, clock, time, &tiers(nodes));
        let extents = [
            extent(0x55, 1 << 20, 12),
            extent(0x66, 2 << 20, 5),
            extent(0x55, 3 << 20, 8),
        ];
        let action = action(7, 0x55);
        assert_eq!(action.tier, TierIndex(1));
        let outcomes = moves.execute(&[action], &extents);
        assert_eq!(outcomes.len(), 1);
        (outcomes[0].fate.clone(), moves.mover)
    }

    #[test]
    fn all_of_a_site_and_nothing_else_is_moved() {
        let (fate, nodes) = moved(&[&[0], &[1]], &[(1, 100)], 1000);
        assert_eq!(fate, Fate::Moved);
        assert_eq!(nodes.pages.len(), 20);
        assert!(!nodes.pages.contains_key(&(2 << 20)));
    }

    #[test]
    fn what_a_full_node_refuses_goes_to_the_next_of_the_tier() {
        let (fate, nodes) = moved(&[&[0], &[1, 2]], &[(1, 15), (2, 100)], 1000);
        assert_eq!(fate, Fate::Moved);
        let on = |node| nodes.pages.values().filter(|at| **at == node).count();
        assert_eq!((on(1), on(2)), (15, 5));
    }

    #[test]
    fn a_site_of_which_much_stayed_is_not_moved_and_says_why() {
        let (fate, _) = moved(&[&[0], &[1]], &[(1, 15)], 1000);
        let Fate::Busy(why) = fate else {
            panic!("{fate:?}");
        };
        assert!(
            why.contains("20 KiB of 80 KiB stayed: node 1 is full"),
            "{why}"
        );
        assert_eq!(moved(&[&[0], &[1]], &[(1, 18)], 1000).0, Fate::Moved);
    }

    #[test]
    fn a_site_without_time_comes_again() {
        let (fate, nodes) = moved(&[&[0], &[1]], &[(1, 100)], 1);
        assert!(matches!(fate, Fate::NotAttempted(_)), "{fate:?}");
        assert_eq!(nodes.pages.len(), 0, "no time was left");
    }

    #[test]
    fn a_process_without_a_session_file_is_not_moved() {
        let dir = tempfile::tempdir().unwrap();
        let placement = PlacementRequestWriter::placing(dir.path().to_owned());
        let tiers = tiers(&[&[0], &[1]]);
        let clock = Rc::new(SlowClock::default());
        let mut moves = SiteMoves::new(placement, Nodes::default(), clock, Nanos(1 << 40), &tiers);
        let extents = [extent(0x55, 1 << 20, 4)];
        let outcome = &moves.execute(&[action(7, 0x55)], &extents)[0];
        assert!(matches!(outcome.fate, Fate::NotAttempted(_)), "{outcome:?}");
        assert!(moves.mover.pages.is_empty());
    }
}
