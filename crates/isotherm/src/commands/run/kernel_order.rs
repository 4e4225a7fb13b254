//! `KernelOrder` lets the kernel choose the pages that leave memory, the least recently used ones of the run's control group, where
//! `isotherm run --tiers compressed` has a limit (`--fast`) and no stall budget (`--slowdown 100%`). The run's own order, by measured
//! reuse, is tried where the program waits for much of its time, and kept if it then waits for less (set dueling). It also takes over for
//! good if the program leaves the group, swap is full, or the kernel reclaims nothing for a second.
//!
//! ```text
//! pages that the program waited for --> ReplacementDuel --> the kernel's order, or that of reuse
//! memory beyond the limit --> RunGroup --memory.reclaim--> kernel
//! ```

use std::collections::BTreeMap;

use isotherm_act::movement::page_out::run_group::{GroupMemory, RunGroup};
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

/// The control group from which the kernel reclaims memory.
pub(super) trait Reclaimed {
    /// As [`RunGroup::holds`].
    fn holds(&self, process: u32) -> bool;

    /// As [`RunGroup::memory`].
    fn memory(&self) -> GroupMemory;

    /// As [`RunGroup::reclaim`].
    fn reclaim(&self, bytes: Bytes) -> Fate;
}

impl Reclaimed for RunGroup {
    fn holds(&self, process: u32) -> bool {
        Self::holds(self, process)
    }

    fn memory(&self) -> GroupMemory {
        Self::memory(self)
    }

    fn reclaim(&self, bytes: Bytes) -> Fate {
        Self::reclaim(self, bytes)
    }
}

/// The kernel's part in one run.
pub(super) struct KernelOrder<G = RunGroup, C = MachineClock> {
    /// The group that the kernel reclaims from, where it can be had.
    group: Option<G>,
    clock: C,
    duel: ReplacementDuel,
    /// The time since which the kernel reclaimed nothing of what exceeds the limit.
    fruitless_since: Option<Nanos>,
    console: Console,
}

impl<G: Reclaimed, C: Clock> KernelOrder<G, C> {
    /// The kernel chooses nothing until there is a group.
    pub(super) fn new(clock: C, console: Console) -> Self {
        Self {
            group: None,
            clock,
            duel: ReplacementDuel::default(),
            fruitless_since: None,
            console,
        }
    }

    /// The kernel reclaims from this group.
    pub(super) fn begin(&mut self, group: G) {
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

    /// Ends the kernel's part if the process with the most memory has left the group.
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
        let end = self.clock.now().saturating_add(longest);
        let before = group.memory();
        let mut memory = before;
        let mut answer = Fate::Requested;
        while answer == Fate::Requested && self.clock.now() < end {
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
        let is_late = |since: Nanos| self.clock.now().saturating_sub(since) > FRUITLESS;
        if answer.lacks_room() || self.fruitless_since.is_some_and(is_late) {
            let why = match answer {
                Fate::Busy(why) | Fate::Denied(why) => why,
                _ => "it reclaims nothing".into(),
            };
            self.end(&why);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelOrder, Reclaimed};
    use isotherm_act::movement::page_out::run_group::GroupMemory;
    use isotherm_console::Console;
    use isotherm_model::batch::Process;
    use isotherm_model::outcome::{Fate, NO_SWAP_ROOM};
    use isotherm_model::paged::PagedUnit;
    use isotherm_model::port::Clock;
    use isotherm_model::units::{Bytes, Capacity, Nanos};
    use isotherm_model::watch::Unit;
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;

    const MIB: u64 = 1 << 20;

    /// A group of which each request takes at most 10 MiB and 50 ms, and what was asked for.
    struct Machine {
        now: Cell<Nanos>,
        memory: Cell<GroupMemory>,
        answer: RefCell<Fate>,
        asked: RefCell<Vec<u64>>,
    }

    impl Clock for Machine {
        fn now(&self) -> Nanos {
            self.now.get()
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, span: Nanos) {
            self.now.set(self.now.get().saturating_add(span));
        }
    }

    impl Reclaimed for Rc<Machine> {
        fn holds(&self, process: u32) -> bool {
            process == 7
        }

        fn memory(&self) -> GroupMemory {
            self.memory.get()
        }

        fn reclaim(&self, bytes: Bytes) -> Fate {
            self.sleep(Nanos(50_000_000));
            self.asked.borrow_mut().push(bytes.0 / MIB);
            let answer = self.answer.borrow().clone();
            if answer == Fate::Requested {
                let GroupMemory { present, out } = self.memory.get();
                let leaves = bytes.min(Bytes(10 * MIB));
                let (present, out) = (present.saturating_sub(leaves), out.saturating_add(leaves));
                self.memory.set(GroupMemory { present, out });
            }
            answer
        }
    }

    fn begun() -> (Rc<Machine>, KernelOrder<Rc<Machine>, Rc<Machine>>) {
        let machine = Rc::new(Machine {
            now: Cell::new(Nanos::ZERO),
            memory: Cell::new(GroupMemory {
                present: Bytes(164 * MIB),
                out: Bytes::ZERO,
            }),
            answer: RefCell::new(Fate::Requested),
            asked: RefCell::default(),
        });
        let mut order = KernelOrder::new(Rc::clone(&machine), Console::new(true));
        assert!(!order.is_possible() && !order.chooses());
        order.begin(Rc::clone(&machine));
        (machine, order)
    }

    fn reclaim(order: &mut KernelOrder<Rc<Machine>, Rc<Machine>>, ms: u64) -> u64 {
        let limit = Capacity::Bytes(Bytes(128 * MIB));
        order.reclaim(limit, Nanos(ms * 1_000_000)).0 / MIB
    }

    #[test]
    fn what_exceeds_the_limit_leaves_and_a_64th_of_it_beside() {
        let (machine, mut order) = begun();
        assert_eq!(reclaim(&mut order, 1_000), 38);
        assert_eq!(*machine.asked.borrow(), [38, 28, 18, 8]);
        assert_eq!(reclaim(&mut order, 1_000), 0);
        assert_eq!(machine.asked.borrow().len(), 4, "nothing exceeds it");
        assert!(order.is_possible());
    }

    #[test]
    fn the_kernel_is_asked_for_no_longer_than_there_is_time() {
        let (machine, mut order) = begun();
        assert_eq!(reclaim(&mut order, 100), 20);
        assert_eq!(machine.asked.borrow().len(), 2);
    }

    #[test]
    fn memory_leaves_by_reuse_once_the_kernel_reclaimed_nothing_for_a_second() {
        let (machine, mut order) = begun();
        let short = Fate::Busy("the kernel found less to reclaim".into());
        machine.answer.replace(short);
        assert_eq!(reclaim(&mut order, 100), 0);
        machine.sleep(Nanos(900_000_000));
        reclaim(&mut order, 100);
        assert!(order.is_possible());
        // What left meanwhile starts the second anew.
        machine.answer.replace(Fate::Requested);
        assert_eq!(reclaim(&mut order, 100), 20);
        let denied = Fate::Denied("not ours".into());
        machine.answer.replace(denied);
        reclaim(&mut order, 100);
        assert!(order.is_possible());
        machine.sleep(Nanos(1_200_000_000));
        reclaim(&mut order, 100);
        assert!(!order.is_possible());
        assert_eq!(reclaim(&mut order, 100), 0);
    }

    #[test]
    fn full_swap_is_no_reason_to_wait() {
        let (machine, mut order) = begun();
        machine.answer.replace(Fate::Busy(NO_SWAP_ROOM.into()));
        reclaim(&mut order, 100);
        assert!(!order.is_possible());
    }

    #[test]
    fn a_program_that_leaves_its_group_is_left_alone() {
        let unit = |pid, mib| PagedUnit {
            unit: Unit {
                process: Process { pid, image: 0 },
                start: 0,
            },
            present: Bytes(mib * MIB),
            out: Bytes::ZERO,
            returned: Bytes::ZERO,
            grain: Bytes(MIB),
            has_huge: false,
        };
        let (_, mut order) = begun();
        order.check(&[unit(7, 90), unit(8, 10)]);
        assert!(order.is_possible(), "a small process is elsewhere");
        order.check(&[unit(7, 10), unit(8, 90)]);
        assert!(!order.is_possible());
    }
}
