//! `PartMoves` moves the parts of split units, which are 64 equal ranges of each unit: cold ones to the slow tier, or hot ones to the fast
//! tier.

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_policy::PARTS;

use super::index::Index;
use super::report::Sums;
use super::share::{Share, shares};
use super::sparse_units::UnitSplit;

/// The settings of moves of parts to one tier.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartMoves<'a> {
    pub index: &'a Index,
    /// Bytes of a unit.
    pub unit: u64,
    /// The nodes of the target tier, in the order of filling.
    pub nodes: &'a [NodeId],
    /// True if the target is the fast tier.
    pub to_fast: bool,
    /// True if no data really moves.
    pub modelled: bool,
}

impl PartMoves<'_> {
    /// Moves the parts of each unit that belong in the tier to the first of its nodes that accepts them. Returns the outcome by unit.
    pub(super) fn carry_out(
        self,
        splits: &[UnitSplit],
        executor: &mut impl RangeExecutor,
        sums: &mut Sums,
    ) -> Vec<Share> {
        let mut moved = vec![Share::default(); splits.len()];
        let units = splits.iter().enumerate();
        let mut left: Vec<(usize, Process, AddressRange)> = units
            .flat_map(|(at, split)| {
                let parts = self.parts(split);
                parts.map(move |(process, range)| (at, process, range))
            })
            .collect();
        for (turn, node) in self.nodes.iter().enumerate() {
            let is_last = turn + 1 == self.nodes.len();
            let action = |&(_, process, range): &(usize, Process, AddressRange)| RangeAction {
                process,
                range,
                node: *node,
            };
            let actions: Vec<RangeAction> = left.iter().map(action).collect();
            let outcomes = executor.execute(&actions);
            let mut refused = Vec::new();
            for (part, outcome) in left.into_iter().zip(&outcomes) {
                sums.add(outcome, self.to_fast, self.modelled);
                let share = shares(outcome, 1).pop().unwrap_or_default();
                match share.not_there > 0 && !is_last {
                    true => refused.push(part),
                    false => moved[part.0].add(share),
                }
            }
            left = refused;
        }
        moved
    }

    /// The process and addresses of a unit's parts that belong in the tier; neighbouring parts are one range.
    fn parts(self, split: &UnitSplit) -> impl Iterator<Item = (Process, AddressRange)> {
        let unit = self.index.known()[split.page.at()].unit;
        let part = self.unit / PARTS as u64;
        let runs = split.hot.runs();
        runs.filter(move |(.., is_hot)| *is_hot == self.to_fast)
            .filter_map(move |(first, count, _)| {
                let range = AddressRange {
                    start: unit?.start + first as u64 * part,
                    bytes: Bytes(count as u64 * part),
                };
                Some((unit?.process, range))
            })
    }
}
