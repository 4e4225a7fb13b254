//! [`Migration`] moves pages of any process to a node with the kernel's `move_pages`, in batches short enough not to disturb the program;
//! [`Migration::splitting`] first splits a huge page of which a range has only a part.
//!
//! It works on any process that this one may trace, without help of that process; a process that ends in between is an outcome. The nodes
//! of the pages are queried first, so that *moved* and *already there* are distinguished and no page is moved in vain; after a failed call
//! they are queried again, because the kernel's statuses are then unreliable (see [`isotherm_sys::pages`]).
//!
//! Ranges of one process that go to one node share their calls, because each call has a cost of its own (`batch`).

use std::borrow::Cow;
use std::process;

use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, NO_ROOM, Reason, SHARED};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::memory::Errno;

use super::batch::BatchSize;
use super::huge_page_parts::whole_pages;
use super::system::{HUGE_BYTES, PAGE_BYTES, PageRun, PageSystem, Refusal};

/// The longest time of one call: page faults of the program on the same pages wait for it.
const LONGEST_CALL: Nanos = Nanos(20_000_000);
/// Number of immediate retries for the rest of a call.
const TRIES: usize = 3;
/// A status that the kernel never writes.
const UNWRITTEN: i32 = i32::MIN;

const FULL: Fate = Fate::Busy(Cow::Borrowed(NO_ROOM));
const IN_USE: Fate = Fate::Busy(Cow::Borrowed("in use by the kernel or a device"));

/// Moves pages of any process with `move_pages`.
#[derive(Debug)]
pub struct Migration<S> {
    system: S,
    size: BatchSize,
    /// True if a huge page of which a range has only a part is split first; else the whole page moves.
    splits: bool,
}

/// A page to move: small, or a huge one named by its first address.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// The range of the page, as an index among the ranges that move together.
    range: usize,
    address: usize,
    /// Bytes of the range that it covers.
    bytes: u64,
    /// Bytes of the range before this page for which there are no pages.
    gap: u64,
}

/// Pages that are queried and moved together.
#[derive(Debug, Default)]
struct Batch {
    pages: Vec<Page>,
    fates: Vec<Fate>,
    bytes: u64,
}

impl<S: PageSystem> Migration<S> {
    /// Makes batches of at most `LONGEST_CALL`, estimated from the speed of the batches before.
    pub const fn new(system: S) -> Self {
        Self {
            system,
            size: BatchSize::new(LONGEST_CALL.0),
            splits: false,
        }
    }

    /// Splits a huge page of which a range has only a part, so that the rest of the page stays. Where it cannot, nothing of the range
    /// moves.
    #[must_use]
    pub const fn splitting(mut self) -> Self {
        self.splits = true;
        self
    }

    /// Decides every page of the batch. Returns the fate of the rest of the range if going on
    /// is useless.
    fn move_batch(&mut self, process: u32, node: NodeId, batch: &mut Batch) -> Option<Fate> {
        let mut wanted: Vec<usize> = (0..batch.pages.len()).collect();
        if let Err(fate) = self.look(process, node, batch, &mut wanted) {
            return Some(fate);
        }
        for at in &wanted {
            batch.fates[*at] = IN_USE;
        }
        for _ in 0..TRIES {
            let before = wanted.len();
            if before == 0 {
                return None;
            }
            let answer = self.call(process, node, batch, &mut wanted);
            if let Some(stop) = answer {
                return Some(stop);
            }
            if wanted.len() == before {
                return None;
            }
        }
        None
    }

    /// One call of `move_pages`; `wanted` keeps the pages for which another call may succeed.
    fn call(
        &mut self,
        process: u32,
        node: NodeId,
        batch: &mut Batch,
        wanted: &mut Vec<usize>,
    ) -> Option<Fate> {
        let addresses: Vec<usize> = wanted.iter().map(|at| batch.pages[*at].address).collect();
        let bytes = wanted.iter().map(|at| batch.pages[*at].bytes).sum();
        let mut status = vec![UNWRITTEN; wanted.len()];
        let begun_ns = self.system.now_ns();
        let answer = self
            .system
            .move_pages(process, &addresses, node, &mut status);
        let took_ns = self.system.now_ns().saturating_sub(begun_ns);
        if answer == Err(Refusal::DryRun) {
            for at in wanted.drain(..) {
                batch.fates[at] = Fate::NotAttempted(Reason::DryRun);
            }
            return None;
        }
        self.size.learn(bytes, took_ns);
        let mut left = Vec::new();
        for (at, status) in wanted.drain(..).zip(status) {
            match of_status(status, node) {
                None => left.push(at),
                // The second page of a huge page that was moved by its first one has this status, too.
                Some(fate) if fate == IN_USE => left.push(at),
                Some(Fate::AlreadyThere) => batch.fates[at] = Fate::Moved,
                Some(fate) => batch.fates[at] = fate,
            }
        }
        *wanted = left;
        let stop = match answer {
            Ok(_) => None,
            Err(Refusal::Kernel(error)) => of_call(error),
            Err(Refusal::DryRun) => None,
        };
        // The kernel gave no status; some of the pages may be on the node nevertheless.
        let looked = self.look(process, node, batch, wanted);
        for at in wanted.iter() {
            batch.fates[*at] = stop.clone().unwrap_or(IN_USE);
        }
        looked.err().or(stop)
    }

    /// Queries the nodes of the wanted pages, decides those that need no move, and keeps the
    /// others. A page that was wanted before and is on the node now has been moved.
    fn look(
        &mut self,
        process: u32,
        node: NodeId,
        batch: &mut Batch,
        wanted: &mut Vec<usize>,
    ) -> Result<(), Fate> {
        if wanted.is_empty() {
            return Ok(());
        }
        let first = batch.fates.is_empty();
        batch.fates.resize(batch.pages.len(), Fate::NOT_TOUCHED);
        let addresses: Vec<usize> = wanted.iter().map(|at| batch.pages[*at].address).collect();
        let mut status = vec![UNWRITTEN; wanted.len()];
        if let Err(error) = self.system.nodes_of(process, &addresses, &mut status) {
            let fate = of_call(error).unwrap_or(IN_USE);
            for at in wanted.drain(..) {
                batch.fates[at] = fate.clone();
            }
            return Err(fate);
        }
        let mut left = Vec::new();
        for (at, status) in wanted.drain(..).zip(status) {
            match of_status(status, node) {
                None => left.push(at),
                Some(Fate::AlreadyThere) if !first => batch.fates[at] = Fate::Moved,
                Some(fate) => batch.fates[at] = fate,
            }
        }
        *wanted = left;
        Ok(())
    }
}

impl<S: PageSystem> Migration<S> {
    /// Moves ranges of one process to one node.
    fn move_together(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let mut outcomes: Vec<RangeOutcome> =
            actions.iter().copied().map(RangeOutcome::begin).collect();
        let Some(first) = actions.first() else {
            return outcomes;
        };
        let own = first.process.pid == process::id();
        let process = if own { 0 } else { first.process.pid };
        if self.system.has_ended(process) {
            rest_is(&mut outcomes, &Fate::ENDED);
            return outcomes;
        }
        let listed = outcomes.iter_mut().map(|outcome| match self.splits {
            true => whole_pages(&mut self.system, process, outcome),
            false => self.system.resident(process, outcome.action.range),
        });
        let listed: Vec<Option<Vec<PageRun>>> = listed.collect();
        // A huge page moves as a whole, whichever of its addresses is named. If the huge pages are
        // unknown, all parts of a possible huge page are queried before any of it is moved.
        let grain = match listed.iter().all(Option::is_some) {
            true => PAGE_BYTES,
            false => HUGE_BYTES,
        };
        let runs = actions.iter().zip(listed).map(|(action, listed)| {
            let range = action.range;
            listed.unwrap_or_else(|| vec![PageRun { range, huge: false }])
        });
        let runs: Vec<Vec<PageRun>> = runs.collect();
        let walks = actions.iter().zip(&runs).enumerate();
        let mut walks: Vec<Walk<'_>> = walks
            .map(|(number, (action, runs))| Walk::new(number, action.range, runs))
            .collect();
        let mut batch = Batch::default();
        // The range at which the next batch begins: those before it have no further pages.
        let mut at = 0;
        loop {
            batch.fill(&mut walks[at..], self.size.bytes(), grain);
            let Some(last) = batch.pages.last() else {
                break;
            };
            at = last.range;
            let stop = self.move_batch(process, first.node, &mut batch);
            batch.report(&mut outcomes);
            if let Some(fate) = stop {
                rest_is(&mut outcomes[..at], &Fate::NOT_TOUCHED);
                rest_is(&mut outcomes[at..], &fate);
                return outcomes;
            }
        }
        rest_is(&mut outcomes, &Fate::NOT_TOUCHED);
        outcomes
    }
}

/// Gives the parts of these ranges without an outcome this fate.
fn rest_is(outcomes: &mut [RangeOutcome], fate: &Fate) {
    for outcome in outcomes {
        outcome.push(outcome.left(), fate.clone());
    }
}

impl<S: PageSystem> RangeExecutor for Migration<S> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let outcome = self.move_together(&[action]).pop();
        // One action has one outcome.
        outcome.unwrap_or_else(|| RangeOutcome::whole(action, Fate::ENDED))
    }

    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let alike = |one: &RangeAction, other: &RangeAction| {
            (one.process, one.node) == (other.process, other.node)
        };
        let together = actions.chunk_by(alike);
        together
            .flat_map(|actions| self.move_together(actions))
            .collect()
    }
}

impl Batch {
    /// Adds pages of the first ranges that have any, up to `most` bytes and then to the next multiple of `grain`.
    fn fill(&mut self, ranges: &mut [Walk<'_>], most: u64, grain: u64) {
        self.pages.clear();
        self.fates.clear();
        self.bytes = 0;
        for pages in ranges {
            while self.bytes < most || !pages.at.is_multiple_of(grain) {
                let Some(page) = pages.next() else { break };
                self.bytes += page.bytes;
                self.pages.push(page);
            }
            if self.bytes >= most {
                break;
            }
        }
    }

    /// Adds the batch's pages to the outcomes of their ranges.
    fn report(&self, outcomes: &mut [RangeOutcome]) {
        for (page, fate) in self.pages.iter().zip(&self.fates) {
            let outcome = &mut outcomes[page.range];
            outcome.push(Bytes(page.gap), Fate::NOT_TOUCHED);
            outcome.push(Bytes(page.bytes), fate.clone());
        }
    }
}

/// The resident pages of a range, one after the other.
struct Walk<'a> {
    /// The range, as an index among the ranges that move together.
    range: usize,
    at: u64,
    end: u64,
    regions: &'a [PageRun],
}

impl<'a> Walk<'a> {
    const fn new(number: usize, range: AddressRange, regions: &'a [PageRun]) -> Self {
        Self {
            range: number,
            at: range.start,
            end: range.end(),
            regions,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Page;

    fn next(&mut self) -> Option<Page> {
        while let Some((region, rest)) = self.regions.split_first() {
            if region.range.end() <= self.at {
                self.regions = rest;
                continue;
            }
            let start = region.range.start.max(self.at);
            if start >= self.end {
                return None;
            }
            let size = if region.huge { HUGE_BYTES } else { PAGE_BYTES };
            let head = start / size * size;
            let end = (head + size).min(self.end);
            let page = Page {
                range: self.range,
                address: head as usize,
                bytes: end - start,
                gap: start - self.at,
            };
            self.at = end;
            return Some(page);
        }
        None
    }
}

/// The fate of a page's status; `None` if it is on another node, or has no status.
fn of_status(status: i32, node: NodeId) -> Option<Fate> {
    if status == UNWRITTEN {
        return None;
    }
    if status >= 0 {
        return (status as u32 == node.0).then_some(Fate::AlreadyThere);
    }
    Some(match -status {
        libc::ENOENT | libc::EFAULT => Fate::NOT_TOUCHED,
        libc::EACCES => Fate::Denied(SHARED.into()),
        libc::ENOMEM => FULL,
        libc::EIO => Fate::Busy("being written to a disk".into()),
        libc::EBUSY => IN_USE,
        libc::EINVAL => Fate::Denied("the page belongs to no node".into()),
        _ => Fate::Busy("the kernel refused the page for a reason of its own".into()),
    })
}

/// The fate of a failed call on all pages that it did not move; `None` if another call may
/// succeed.
fn of_call(error: Errno) -> Option<Fate> {
    Some(match error {
        Errno::NOMEM => FULL,
        Errno::NODEV => Fate::Denied("the node is not there or has no memory".into()),
        Errno::ACCESS => Fate::Denied("the node is outside the process's cpuset".into()),
        Errno::PERM => Fate::Denied(
            "moving this process's pages is not allowed: it needs the same user or CAP_SYS_NICE, and \
             ptrace rights".into()
        ),
        Errno::SRCH => Fate::ENDED,
        Errno::NOSYS => Fate::Denied("this kernel has no page migration (CONFIG_MIGRATION)".into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::Migration;
    use crate::movement::test_machine::{Machine, action};
    use isotherm_model::movement::NodeId;
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;

    const PAGE: u64 = 4096;

    fn parts(machine: &mut Machine, pages: u64, node: u32) -> Vec<(u64, Fate)> {
        let mut migration = Migration::new(machine);
        let outcome = migration.carry_out(action(7, 0, pages, NodeId(node)));
        assert_eq!(outcome.left(), Bytes(0));
        let part = |part: &isotherm_model::movement::Part| (part.bytes.0 / PAGE, part.fate.clone());
        outcome.parts.iter().map(part).collect()
    }

    #[test]
    fn moved_already_there_and_untouched_are_told_apart_in_order() {
        let mut machine = Machine::with_pages(&[0, 0, 1, 1, -1, 0]);
        assert_eq!(
            parts(&mut machine, 8, 1),
            [
                (2, Fate::Moved),
                (2, Fate::AlreadyThere),
                (1, Fate::NotAttempted(Reason::NotTouched)),
                (1, Fate::Moved),
                (2, Fate::NotAttempted(Reason::NotTouched)),
            ]
        );
        assert_eq!(machine.nodes(), [1, 1, 1, 1, -1, 1]);
    }

    #[test]
    fn a_full_node_leaves_the_statuses_alone_and_the_rest_is_busy() {
        let mut machine = Machine::with_pages(&[0; 6]);
        machine.room = 2;
        let parts = parts(&mut machine, 6, 1);
        // The kernel moves no page of a call whose pages do not all fit.
        assert_eq!(parts, [(6, Fate::Busy("the node has no room".into()))]);
        assert_eq!(machine.nodes(), [0; 6]);
    }

    #[test]
    fn pages_in_use_and_shared_ones_stay_and_the_others_move() {
        let mut machine = Machine::with_pages(&[0; 5]);
        machine.busy = vec![1];
        machine.shared = vec![3];
        let fates: Vec<_> = parts(&mut machine, 5, 1);
        assert_eq!(machine.nodes(), [1, 0, 1, 0, 1]);
        assert!(matches!(&fates[1], (1, Fate::Busy(_))), "{fates:?}");
        assert!(matches!(&fates[3], (1, Fate::Denied(_))), "{fates:?}");
    }

    #[test]
    fn a_node_that_is_not_there_and_a_process_that_ends_stop_the_action() {
        let mut machine = Machine::with_pages(&[0; 4]);
        let denied = parts(&mut machine, 4, 9);
        assert!(
            matches!(denied.as_slice(), [(4, Fate::Denied(_))]),
            "{denied:?}"
        );

        let mut machine = Machine::with_pages(&[0; 4096]);
        machine.ends_after_calls = Some(2);
        let parts = parts(&mut machine, 4096, 1);
        let ended = Fate::NotAttempted("the process has ended".into());
        assert_eq!(parts.last().map(|part| &part.1), Some(&ended), "{parts:?}");
    }

    #[test]
    fn ranges_of_one_process_share_a_call_and_have_an_outcome_each() {
        let mut machine = Machine::with_pages(&[0, 0, -1, 1, 0, 0, 0, -1]);
        let ranges = [(0, 3), (3, 1), (4, 2), (7, 1)];
        let actions = ranges.map(|(first, pages)| action(7, first, pages, NodeId(1)));
        let outcomes = Migration::new(&mut machine).execute(&actions);
        let parts: Vec<Vec<(u64, Fate)>> = outcomes
            .iter()
            .map(|outcome| {
                let parts = outcome.parts.iter();
                parts
                    .map(|part| (part.bytes.0 / PAGE, part.fate.clone()))
                    .collect()
            })
            .collect();
        let not_touched = Fate::NotAttempted(Reason::NotTouched);
        assert_eq!(
            parts,
            [
                vec![(2, Fate::Moved), (1, not_touched.clone())],
                vec![(1, Fate::AlreadyThere)],
                vec![(2, Fate::Moved)],
                vec![(1, not_touched)],
            ]
        );
        assert_eq!(machine.call_ns.len(), 1, "calls");
        // The page between the ranges stays.
        assert_eq!(machine.nodes(), [1, 1, -1, 1, 1, 1, 0, -1]);
    }

    #[test]
    fn a_node_that_is_full_ends_all_ranges_of_the_call_and_leaves_gaps_untouched() {
        let mut machine = Machine::with_pages(&[0, -1, 0, 0]);
        machine.room = 0;
        let actions = [action(7, 0, 2, NodeId(1)), action(7, 2, 2, NodeId(1))];
        let outcomes = Migration::new(&mut machine).execute(&actions);
        let full = Fate::Busy("the node has no room".into());
        assert_eq!(outcomes[0].parts[0].fate, full);
        assert_eq!(
            outcomes[0].parts[1].fate,
            Fate::NotAttempted(Reason::NotTouched)
        );
        assert_eq!(outcomes[1].parts.len(), 1);
        assert_eq!(outcomes[1].parts[0].fate, full);
    }

    #[test]
    fn of_a_huge_page_only_the_first_address_is_named() {
        let mut machine = Machine::with_pages(&[0; 1024]);
        machine.huge = true;
        assert_eq!(parts(&mut machine, 1024, 1), [(1024, Fate::Moved)]);
        assert!(machine.named.iter().all(|address| address % (2 << 20) == 0));
        assert_eq!(machine.named.len(), 2);
    }

    #[test]
    fn a_huge_page_that_nobody_says_is_huge_is_moved_by_its_first_address_all_the_same() {
        let mut machine = Machine::with_pages(&[0; 1024]);
        machine.secretly_huge = true;
        assert_eq!(parts(&mut machine, 1024, 1), [(1024, Fate::Moved)]);
    }

    #[test]
    fn no_call_takes_longer_than_the_limit_once_the_speed_is_known() {
        let mut machine = Machine::with_pages(&[0; 40_000]);
        machine.page_ns = 15_000;
        parts(&mut machine, 40_000, 1);
        let longest = machine.call_ns.iter().max().copied().unwrap();
        assert!(longest <= 20_000_000, "{longest} ns");
        // It also uses the time that it has.
        assert!(
            machine.call_ns.len() < 90,
            "{} calls",
            machine.call_ns.len()
        );
    }
}
