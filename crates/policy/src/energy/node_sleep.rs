//! [`NodeSleep`] chooses memory nodes to empty, so that their devices sleep: nodes whose data fits on the other nodes, beside a reserve. It
//! also chooses the node to wake, when less than half of the reserve is free. The daemon carries both out.
//!
//! On a machine where a node is one set of devices (a CXL expander, the DIMMs of a socket, HBM) this is Cross-Layer's goal for all
//! programs together: data on as few devices as hold it (Olson et al., TACO 2018, section 4). The paper colours data; an operator has
//! programs as they are, and the kernel moves all pages of a memory block that is taken offline.
//!
//! ```text
//! free of the nodes awake
//!      reserve of what stays  ------------- above it, twice in a row: empty the node with least data
//!      half of the reserve    ------------- below it: wake the last one
//! ```
//!
//! Between the two bounds nothing changes, so that a program whose memory grows and shrinks does not empty and wake a node in turn. After a
//! failed attempt the node is left alone for twice as many calls as after the one before.

use std::collections::BTreeMap;

use isotherm_model::movement::NodeId;
use isotherm_model::units::{Bytes, Capacity};

/// Calls in a row at which a node's data must fit elsewhere.
const LOOKS: u32 = 2;

/// Most calls for which a node is left alone after failed attempts.
const REST_AT_MOST: u32 = 1 << 12;

/// The memory of a node that is awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwakeNode {
    /// The node.
    pub node: NodeId,
    /// Bytes of memory that are online.
    pub capacity: Bytes,
    /// Bytes that hold data other than copies of files.
    pub used: Bytes,
    /// Whether it may be emptied.
    pub may_sleep: bool,
}

/// A node to empty or to bring back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeChange {
    /// Its data goes to the other nodes.
    Empty(NodeId),
    /// Its memory is needed again.
    Wake(NodeId),
}

/// Follows the memory of a machine and chooses which nodes sleep.
#[derive(Clone, Debug)]
pub struct NodeSleep {
    /// Memory that stays free on the nodes that are awake; a share refers to their capacity.
    reserve: Capacity,
    /// The nodes that sleep, in the order in which they were emptied.
    asleep: Vec<NodeId>,
    /// The node whose data fits elsewhere, and the number of calls in a row at which it did.
    fits: Option<(NodeId, u32)>,
    failed: BTreeMap<NodeId, Rest>,
}

/// The time for which a node is left alone.
#[derive(Clone, Copy, Debug)]
struct Rest {
    looks: u32,
    left: u32,
}

impl NodeSleep {
    /// All nodes are awake at first.
    #[must_use]
    pub const fn new(reserve: Capacity) -> Self {
        Self {
            reserve,
            asleep: Vec::new(),
            fits: None,
            failed: BTreeMap::new(),
        }
    }

    /// The nodes that sleep.
    #[must_use]
    pub fn asleep(&self) -> &[NodeId] {
        &self.asleep
    }

    /// Decides from the state of all nodes that are awake. The caller carries the change out and reports the result by [`Self::changed`] or
    /// [`Self::failed`].
    pub fn decide(&mut self, awake: &[AwakeNode]) -> Option<NodeChange> {
        for rest in self.failed.values_mut() {
            rest.left = rest.left.saturating_sub(1);
        }
        let capacity: Bytes = awake.iter().map(|it| it.capacity).sum();
        let used: Bytes = awake.iter().map(|it| it.used).sum();
        let half = Bytes(self.reserve.of(capacity).0 / 2);
        if capacity.saturating_sub(used) < half
            && let Some(last) = self.asleep.last().filter(|it| !self.rests(**it))
        {
            self.fits = None;
            return Some(NodeChange::Wake(*last));
        }
        let candidate = awake
            .iter()
            .filter(|it| it.may_sleep && !self.rests(it.node))
            .min_by_key(|it| (it.used, it.node))
            .filter(|it| {
                let rest = capacity.saturating_sub(it.capacity);
                rest > Bytes::ZERO && used.saturating_add(self.reserve.of(rest)) <= rest
            });
        let node = candidate.map(|it| it.node);
        self.fits = node.map(|node| match self.fits {
            Some((before, looks)) if before == node => (node, looks.saturating_add(1)),
            _ => (node, 1),
        });
        let (node, _) = self.fits.filter(|(_, looks)| *looks >= LOOKS)?;
        self.fits = None;
        Some(NodeChange::Empty(node))
    }

    /// Records that the change was carried out.
    pub fn changed(&mut self, change: NodeChange) {
        match change {
            NodeChange::Empty(node) => {
                self.asleep.push(node);
                self.failed.remove(&node);
            }
            NodeChange::Wake(node) => {
                self.asleep.retain(|it| *it != node);
                self.failed.remove(&node);
            }
        }
    }

    /// Records that the change was tried and failed, so that all is as before.
    pub fn failed(&mut self, change: NodeChange) {
        let (NodeChange::Empty(node) | NodeChange::Wake(node)) = change;
        let before = self.failed.get(&node).map_or(1, |rest| rest.looks);
        let looks = before.saturating_mul(2).min(REST_AT_MOST);
        self.failed.insert(node, Rest { looks, left: looks });
    }

    fn rests(&self, node: NodeId) -> bool {
        self.failed.get(&node).is_some_and(|rest| rest.left > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{AwakeNode, NodeChange, NodeSleep};
    use isotherm_model::movement::NodeId;
    use isotherm_model::units::{Bytes, Capacity};
    use proptest::prelude::*;

    const RESERVE: Capacity = Capacity::Share(0.2);

    /// Nodes of 100 bytes, with these bytes used; all but the first may sleep.
    fn nodes(used: &[u64]) -> Vec<AwakeNode> {
        let node = |(number, used): (u32, &u64)| AwakeNode {
            node: NodeId(number),
            capacity: Bytes(100),
            used: Bytes(*used),
            may_sleep: number > 0,
        };
        (0..).zip(used).map(node).collect()
    }

    #[test]
    fn a_node_is_emptied_after_two_looks_at_which_its_data_fits_beside_the_reserve() {
        let mut sleep = NodeSleep::new(RESERVE);
        // 81 of 100 bytes would be used: too many.
        assert_eq!(sleep.decide(&nodes(&[50, 31])), None);
        assert_eq!(sleep.decide(&nodes(&[50, 30])), None);
        let change = NodeChange::Empty(NodeId(1));
        assert_eq!(sleep.decide(&nodes(&[50, 30])), Some(change));
        sleep.changed(change);
        assert_eq!(sleep.asleep(), [NodeId(1)]);
        // Between half of the reserve and all of it nothing changes.
        assert_eq!(sleep.decide(&nodes(&[90])), None);
        let wake = NodeChange::Wake(NodeId(1));
        assert_eq!(sleep.decide(&nodes(&[91])), Some(wake));
        sleep.changed(wake);
        assert!(sleep.asleep().is_empty());
    }

    #[test]
    fn the_node_with_least_data_goes_first_and_a_burst_in_between_begins_anew() {
        let mut sleep = NodeSleep::new(RESERVE);
        assert_eq!(sleep.decide(&nodes(&[10, 20, 5])), None);
        assert_eq!(sleep.decide(&nodes(&[150, 20, 5])), None);
        assert_eq!(sleep.decide(&nodes(&[10, 20, 5])), None);
        let first = sleep.decide(&nodes(&[10, 20, 5])).expect("a change");
        assert_eq!(first, NodeChange::Empty(NodeId(2)));
        sleep.changed(first);
        assert_eq!(sleep.decide(&nodes(&[12, 23])), None);
        let second = sleep.decide(&nodes(&[12, 23])).expect("a change");
        sleep.changed(second);
        // The last one to sleep is the first to wake.
        assert_eq!(
            sleep.decide(&nodes(&[95])),
            Some(NodeChange::Wake(NodeId(1)))
        );
    }

    #[test]
    fn a_node_that_cannot_be_emptied_is_left_alone_for_longer_each_time() {
        let mut sleep = NodeSleep::new(RESERVE);
        let mut tries = Vec::new();
        for look in 0..20 {
            if let Some(change) = sleep.decide(&nodes(&[10, 10])) {
                tries.push(look);
                sleep.failed(change);
            }
        }
        assert_eq!(tries, [1, 4, 9, 18]);
    }

    #[test]
    fn the_last_node_never_sleeps_and_others_only_where_they_may() {
        let mut sleep = NodeSleep::new(RESERVE);
        let only = AwakeNode {
            may_sleep: true,
            ..nodes(&[0])[0]
        };
        let mut fixed = nodes(&[0, 0]);
        fixed[1].may_sleep = false;
        for _ in 0..5 {
            assert_eq!(sleep.decide(&[only]), None);
            assert_eq!(sleep.decide(&fixed), None);
        }
    }

    proptest! {
        #[test]
        fn an_emptied_node_leaves_the_reserve_on_the_others(
            looks in prop::collection::vec(prop::collection::vec(0_u64..=100, 3), 0..40)
        ) {
            let mut sleep = NodeSleep::new(RESERVE);
            for used in looks {
                let asleep = sleep.asleep().to_vec();
                let awake: Vec<_> = nodes(&used)
                    .into_iter()
                    .filter(|it| !asleep.contains(&it.node))
                    .collect();
                let all: u64 = awake.iter().map(|it| it.used.0).sum();
                let capacity = 100 * awake.len() as u64;
                match sleep.decide(&awake) {
                    Some(NodeChange::Empty(node)) => {
                        prop_assert!(node != NodeId(0) && !asleep.contains(&node));
                        prop_assert!(all <= (capacity - 100) * 8 / 10);
                        sleep.changed(NodeChange::Empty(node));
                    }
                    Some(NodeChange::Wake(node)) => {
                        prop_assert_eq!(asleep.last(), Some(&node));
                        prop_assert!(capacity.saturating_sub(all) < capacity / 10);
                        sleep.changed(NodeChange::Wake(node));
                    }
                    None => {}
                }
            }
        }
    }
}
