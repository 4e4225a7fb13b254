//! [`Undo`] reverts moves between nodes (`isotherm run --undo`): it records the nodes of pages before an executor moves them, and moves the
//! pages back when the run ends or is interrupted, in the processes that live on.
//!
//! It records addresses, not objects: data that the program has since put at an address goes to the node of the earlier page. The first
//! node is kept, however often a page moves, so undoing restores the state before the first move. Memory allocated since stays on its node.

use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::RangeExecutor;

use super::system::{PAGE_BYTES, PageSystem};

/// Pages whose nodes are queried in one call.
const ASKED: u64 = 4096;

/// Moves by an executor, and can revert the moves.
#[derive(Debug)]
pub struct Undo<E, S> {
    inner: E,
    system: S,
    origins: BTreeMap<Process, Origins>,
}

impl<E: RangeExecutor, S: PageSystem> Undo<E, S> {
    /// Moves by `inner`; queries `system` for the nodes of pages before they move.
    pub const fn new(inner: E, system: S) -> Self {
        Self {
            inner,
            system,
            origins: BTreeMap::new(),
        }
    }

    /// Moves all moved pages back to their first node, and forgets them. Skips a process that has
    /// ended.
    pub fn undo(&mut self) -> Vec<RangeOutcome> {
        let mut outcomes = Vec::new();
        for (process, origins) in std::mem::take(&mut self.origins) {
            if self.system.has_ended(process.pid) {
                continue;
            }
            let back = |(start, run): (u64, Run)| RangeAction {
                process,
                range: AddressRange::between(start, run.end),
                node: run.node,
            };
            let actions: Vec<_> = origins.0.into_iter().map(back).collect();
            outcomes.extend(self.inner.execute(&actions));
        }
        outcomes
    }

    /// The nodes of the pages of a range; absent pages, and those without a known node, are left
    /// out.
    fn places(&mut self, process: Process, range: AddressRange) -> Origins {
        let mut places = Origins::default();
        let first = range.start / PAGE_BYTES * PAGE_BYTES;
        let pages = (range.end() - first).div_ceil(PAGE_BYTES);
        for batch in (0..pages).step_by(ASKED as usize) {
            let count = (pages - batch).min(ASKED);
            let address = |page: u64| first + (batch + page) * PAGE_BYTES;
            let addresses: Vec<usize> = (0..count).map(|page| address(page) as usize).collect();
            let mut status = vec![-1; addresses.len()];
            let asked = self.system.nodes_of(process.pid, &addresses, &mut status);
            if asked.is_err() {
                break;
            }
            for (start, node) in addresses.iter().zip(&status) {
                if let Ok(node) = u32::try_from(*node) {
                    let end = *start as u64 + PAGE_BYTES;
                    let node = NodeId(node);
                    places.add(*start as u64, Run { end, node });
                }
            }
        }
        places
    }
}

impl<E: RangeExecutor, S: PageSystem> RangeExecutor for Undo<E, S> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let before = self.places(action.process, action.range);
        let outcome = self.inner.carry_out(action);
        let origins = self.origins.entry(action.process).or_default();
        for (range, _) in outcome.ranges().filter(|(_, fate)| **fate == Fate::Moved) {
            before.within(range.start, range.end(), |start, run| {
                origins.add(start, run)
            });
        }
        outcome
    }
}

/// A run of pages of one node, from its key in [`Origins`] to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    end: u64,
    node: NodeId,
}

/// Runs that do not overlap, by their first address.
#[derive(Debug, Default)]
struct Origins(BTreeMap<u64, Run>);

impl Origins {
    /// Adds a run where no node is recorded yet.
    fn add(&mut self, start: u64, run: Run) {
        let mut at = start;
        if let Some((_, known)) = self.0.range(..=start).next_back() {
            at = at.max(known.end);
        }
        while at < run.end {
            if let Some(known) = self.0.get(&at) {
                at = known.end;
                continue;
            }
            let next = self.0.range(at..run.end).next();
            let end = next.map_or(run.end, |(start, _)| *start);
            self.join(at, Run { end, ..run });
            at = end;
        }
    }

    /// Fills a gap with a run; it extends the run before if both are on one node.
    fn join(&mut self, start: u64, run: Run) {
        if let Some((_, before)) = self.0.range_mut(..start).next_back()
            && before.end == start
            && before.node == run.node
        {
            before.end = run.end;
            return;
        }
        self.0.insert(start, run);
    }

    /// Calls `each` with every part of a run that lies between two addresses.
    fn within(&self, start: u64, end: u64, mut each: impl FnMut(u64, Run)) {
        let first = self
            .0
            .range(..=start)
            .next_back()
            .map_or(start, |run| *run.0);
        for (from, run) in self.0.range(first..end) {
            let (from, to) = ((*from).max(start), run.end.min(end));
            if from < to {
                each(from, Run { end: to, ..*run });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Origins, Run, Undo};
    use crate::movement::migration::Migration;
    use crate::movement::test_machine::{Machine, Shared, action};
    use isotherm_model::movement::NodeId;
    use isotherm_model::outcome::Fate;
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;

    const PAGE: u64 = 4096;

    #[test]
    fn what_was_moved_to_and_fro_goes_back_to_where_it_was_first() {
        let before = [0, 0, 1, -1, 0, 1, 0, 0];
        let machine = Shared::new(Machine::with_pages(&before));
        let mut undo = Undo::new(Migration::new(machine.clone()), machine.clone());
        undo.execute(&[action(7, 0, 6, NodeId(1)), action(7, 0, 3, NodeId(0))]);
        assert_eq!(machine.nodes(), [0, 0, 0, -1, 1, 1, 0, 0]);
        let outcomes = undo.undo();
        assert_eq!(machine.nodes(), before);
        let moved = |fate: &Fate| *fate == Fate::Moved;
        let bytes: Bytes = outcomes.iter().map(|outcome| outcome.bytes_of(moved)).sum();
        assert_eq!(bytes, Bytes(2 * PAGE), "pages 2 and 4");
        assert!(undo.undo().is_empty(), "nothing is left to undo");
    }

    #[test]
    fn what_could_not_be_moved_is_not_taken_back() {
        let mut machine = Machine::with_pages(&[0; 4]);
        machine.busy = vec![1];
        let machine = Shared::new(machine);
        let mut undo = Undo::new(Migration::new(machine.clone()), machine.clone());
        undo.execute(&[action(7, 0, 4, NodeId(1))]);
        assert_eq!(machine.nodes(), [1, 0, 1, 1]);
        let ranges: Vec<_> = undo
            .undo()
            .iter()
            .map(|outcome| outcome.action.range.bytes)
            .collect();
        assert_eq!(ranges, [Bytes(PAGE), Bytes(2 * PAGE)]);
        assert_eq!(machine.nodes(), [0; 4]);
    }

    #[test]
    fn a_process_that_has_ended_is_left_alone() {
        let mut machine = Machine::with_pages(&[0; 4]);
        machine.ends_after_calls = Some(1);
        let machine = Shared::new(machine);
        let mut undo = Undo::new(Migration::new(machine.clone()), machine.clone());
        undo.execute(&[action(7, 0, 4, NodeId(1))]);
        assert!(undo.undo().is_empty());
    }

    #[test]
    fn the_first_origin_of_an_address_is_kept() {
        let mut origins = Origins::default();
        let run = |end, node| Run {
            end,
            node: NodeId(node),
        };
        origins.add(10, run(20, 0));
        origins.add(30, run(40, 0));
        origins.add(0, run(50, 1));
        origins.add(0, run(50, 2));
        let all: Vec<_> = origins.0.into_iter().collect();
        assert_eq!(
            all,
            [
                (0, run(10, 1)),
                (10, run(20, 0)),
                (20, run(30, 1)),
                (30, run(40, 0)),
                (40, run(50, 1)),
            ]
        );
    }
}
