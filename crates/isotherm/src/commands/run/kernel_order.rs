//! The kernel's choice of what leaves a run that has a limit and no budget, and when memory leaves by reuse instead.
//!
//! ```text
//! pages that the program waited for --> ReplacementDuel --> the kernel's order, or that of reuse
//! memory beyond the limit --> RunGroup --memory.reclaim--> kernel
//! ```

use std::collections::BTreeMap;

use isotherm_act::movement::page_out::run_group::RunGroup;
use isotherm_console::Console;
use isotherm_model::outcome::Fate;
use isotherm_model::paged::PagedUnit;
use isotherm_model::port::Clock;
use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_observe::clock::MachineClock;
use isotherm_policy::{ProgramTime, ReplacementDuel, ReplacementOrder};

/// A 64th of the limit is reclaimed beyond what exceeds it, so that the kernel is asked less often.
const RESERVE: u64 = 64;
/// Time for which the kernel may reclaim nothing before memory leaves by reuse: `vm.swappiness` may keep it from paging out.
const FRUITLESS: Nanos = Nanos(1_000_000_000);

/// The kernel's part in one run.
pub(super) struct KernelOrder {
    /// The group that the kernel reclaims from, where it can be had.
    group: Option<RunGroup>,
    duel: ReplacementDuel,
    /// The time since which the kernel reclaimed nothing of what exceeds the limit.
    fruitless_since: Option<Nanos>,
    console: Console,
}

impl KernelOrder {
    /// The kernel chooses nothing until there is a group.
    pub(super) fn new(console: Console) -> Self {
        Self {
            group: None,
            duel: ReplacementDuel::default(),
            fruitless_since: None,
            console,
        }
    }

    /// The kernel reclaims from this group.
    pub(super) fn begin(&mut self, group: RunGroup) {
        self.group = Some(group);
    }

    /// True where the kernel may choose.
    pub(super) const fn is_possible(&self) -> bool {
        self.group.is_some()
    }

    /// True where the kernel chooses now.
    pub(super) fn chooses(&self) -> bool {
        self.group.is_some() && self.duel.order() == ReplacementOrder::LeastRecent
    }

    /// True while the order of reuse is tried, which is short.
    pub(super) fn is_trial(&self) -> bool {
        self.group.is_some() && self.duel.is_trial()
    }

    /// Compares the orders by what the program did since the last look. True where another one chooses from now on.
    pub(super) fn follow(&mut self, time: ProgramTime) -> bool {
        let before = self.duel.order();
        self.duel.follow(time) != before
    }

    /// Leaves the group alone if the process with the most memory has left it.
    pub(super) fn check(&mut self, units: &[PagedUnit]) {
        let Some(group) = &self.group else { return };
        let mut memory: BTreeMap<u32, Bytes> = BTreeMap::new();
        for held in units {
            *memory.entry(held.unit.process.pid).or_default() += held.all();
        }
        let largest = memory.into_iter().max_by_key(|(_, bytes)| *bytes);
        if largest.is_some_and(|(process, _)| !group.holds(process)) {
            self.end("the program left its control group");
        }
    }

    /// From now on memory leaves by reuse.
    fn end(&mut self, why: &str) {
        self.group = None;
        self.console
            .info(&format!("the kernel no longer chooses what leaves: {why}"));
    }

    /// Has the kernel reclaim what exceeds this much, and returns what left; it is asked no more after `longest`.
    pub(super) fn reclaim(&mut self, fast: Capacity, longest: Nanos) -> Bytes {
        let Some(group) = &self.group else {
            return Bytes::ZERO;
        };
        let end = MachineClock.now().saturating_add(longest);
        let before = group.memory();
        let mut memory = before;
        let mut answer = Fate::Requested;
        while answer == Fate::Requested && MachineClock.now() < end {
            let limit = fast.of(memory.present.saturating_add(memory.out));
            let excess = memory.present.saturating_sub(limit);
            if excess == Bytes::ZERO {
                break;
            }
            answer = group.reclaim(excess.saturating_add(Bytes(limit.0 / RESERVE)));
            memory = group.memory();
        }
        let left = memory.out.saturating_sub(before.out);
        self.fruitless_since = match answer != Fate::Requested && left == Bytes::ZERO {
            true => self.fruitless_since.or(Some(end)),
            false => None,
        };
        let is_late = |since: Nanos| MachineClock.now().saturating_sub(since) > FRUITLESS;
        if answer.lacks_room() || self.fruitless_since.is_some_and(is_late) {
            let why = match answer {
                Fate::Busy(why) | Fate::Denied(why) => why,
                _ => "it reclaims nothing".to_owned(),
            };
            self.end(&why);
        }
        left
    }
}
