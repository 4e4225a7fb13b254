//! `Tree` is the m-ary tree over the chunks of an object. From its root downwards, chunks among many critical ones are promoted to
//! critical, because sampling misses some (ATMem, sections 4.3.1 and 4.3.3).
//!
//! The leaves are the chunks; each node has m children, up to the root. The last node of a level
//! may have fewer. All levels are stored in one array, so a tree needs no allocation once the array
//! has grown.
//!
//! ```text
//! level 2            3/8                 critical leaves / leaves = tree ratio
//! level 1       0/4       3/4
//! leaves      0 0 0 0   1 0 1 1
//! ```

use std::ops::Range;

/// Storage for the tree of one object after another.
#[derive(Default)]
pub(super) struct Tree {
    arity: usize,
    leaves: usize,
    /// Critical leaves below each node, level by level, starting with the leaves.
    critical: Vec<u32>,
    /// First index of each level in `critical`.
    levels: Vec<usize>,
    /// Nodes of one level that are still to be visited, and those of the next level.
    open: Vec<usize>,
    below: Vec<usize>,
}

impl Tree {
    /// Builds the tree of the next object, from the leaves upwards.
    pub(super) fn build(&mut self, arity: u32, leaves: impl Iterator<Item = bool>) {
        self.arity = arity as usize;
        self.critical.clear();
        self.levels.clear();
        self.critical.extend(leaves.map(u32::from));
        self.leaves = self.critical.len();
        self.levels.push(0);
        let mut level = 0..self.leaves;
        while level.len() > 1 {
            for first in level.clone().step_by(self.arity) {
                let end = level.end.min(first.saturating_add(self.arity));
                let sum = self.critical[first..end].iter().sum();
                self.critical.push(sum);
            }
            level = level.end..self.critical.len();
            self.levels.push(level.start);
        }
    }

    /// Passes to `promote` the leaves below each node whose tree ratio is at least the threshold,
    /// breadth first from the root. Nodes below such a node need no visit. A node without a
    /// critical leaf has none below it either, because thresholds are above zero.
    pub(super) fn promote(&mut self, threshold: f64, mut promote: impl FnMut(Range<usize>)) {
        self.open.clear();
        self.open.push(0);
        for level in (1..self.levels.len()).rev() {
            let leaves_a_node = self.arity.saturating_pow(level as u32);
            for node in self.open.drain(..) {
                let critical = self.critical[self.levels[level] + node];
                if critical == 0 {
                    continue;
                }
                let first = node * leaves_a_node;
                let end = self.leaves.min(first.saturating_add(leaves_a_node));
                // One rounding of an exact quotient: 2/6 is the same number as ε = 1/3.
                if f64::from(critical) / (end - first) as f64 >= threshold {
                    promote(first..end);
                } else {
                    let children = self.levels[level] - self.levels[level - 1];
                    let first = node * self.arity;
                    self.below.extend(first..children.min(first + self.arity));
                }
            }
            std::mem::swap(&mut self.open, &mut self.below);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    /// The promoted leaves, as (first, end), where `#` is a critical leaf.
    fn promoted(arity: u32, leaves: &str, threshold: f64) -> Vec<(usize, usize)> {
        let mut tree = Tree::default();
        tree.build(arity, leaves.bytes().map(|leaf| leaf == b'#'));
        let mut found = Vec::new();
        tree.promote(threshold, |range| found.push((range.start, range.end)));
        found
    }

    #[test]
    fn promotion_stops_at_the_highest_node_that_reaches_the_threshold() {
        assert_eq!(promoted(2, "....#.##", 0.5), [(4, 8)]);
        assert_eq!(promoted(2, "....#.##", 0.375), [(0, 8)]);
        assert_eq!(promoted(2, "....#.##", 0.8), [(6, 8)]);
        assert_eq!(promoted(2, "#......#", 0.5), [(0, 2), (6, 8)]);
        assert_eq!(promoted(8, "....#.##", 0.5), [(0, 0); 0]);
        assert_eq!(promoted(2, "########", 1.0), [(0, 8)]);
        assert_eq!(promoted(2, "########", 1.1), [(0, 0); 0]);
    }

    #[test]
    fn a_last_node_with_fewer_leaves_counts_those_it_has() {
        // Seven leaves below a ternary tree: the third node of level 1 has one leaf.
        assert_eq!(promoted(3, "......#", 1.0), [(6, 7)]);
        assert_eq!(promoted(3, "#.....#", 1.0 / 3.0), [(0, 3), (6, 7)]);
        // 2/6 reaches a threshold of 1/3: equal quotients are equal numbers.
        assert_eq!(promoted(3, "#..#..", 1.0 / 3.0), [(0, 6)]);
    }

    #[test]
    fn no_leaf_one_leaf_and_no_critical_leaf_promote_nothing() {
        assert_eq!(promoted(2, "", 0.5), [(0, 0); 0]);
        assert_eq!(promoted(2, "#", 0.5), [(0, 0); 0]);
        assert_eq!(promoted(2, ".....", 0.5), [(0, 0); 0]);
    }
}
