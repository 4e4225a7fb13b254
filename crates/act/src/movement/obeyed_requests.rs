//! [`ObeyedRequests`] wraps an executor of page requests and waits until the programs have obeyed them; demotions that a program does not
//! obey in time are reported as busy. The daemon needs this executor where several runs share one emulated fast tier.
//!
//! A run's own fast tier keeps its limit by itself, because its runtime obeys requests in their order. Of two runs, one may obey a
//! promotion before the other has made the room for it.

use std::collections::BTreeSet;

use isotherm_model::batch::Process;
use isotherm_model::movement::{NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::{Clock, RangeExecutor};
use isotherm_model::units::Nanos;

use super::page_requests::PageRequestWriter;

/// Time without progress after which a program counts as not running. A running program obeys every few milliseconds, or when the scheduler
/// of a busy machine lets it.
const PATIENCE: Nanos = Nanos(100_000_000);

/// The outcome of a demotion that the program has not obeyed.
const NOT_OBEYED: &str = "the program does not run, so it has not obeyed yet";

/// An executor of page requests whose moves are made when it returns.
#[derive(Debug)]
pub struct ObeyedRequests<E, C> {
    inner: E,
    requests: PageRequestWriter,
    clock: C,
    fast: NodeId,
    /// Processes that did not obey in time, for which later calls do not wait.
    idle: BTreeSet<Process>,
}

impl<E: RangeExecutor, C: Clock> ObeyedRequests<E, C> {
    /// Wraps an executor whose requests go to session files that `requests` finds as well. Moves to `fast` are promotions.
    pub const fn new(inner: E, requests: PageRequestWriter, clock: C, fast: NodeId) -> Self {
        Self {
            inner,
            requests,
            clock,
            fast,
            idle: BTreeSet::new(),
        }
    }

    /// Waits for the processes, and returns those that have not obeyed.
    fn behind(&mut self, processes: BTreeSet<Process>) -> BTreeSet<Process> {
        let mut is_behind = |process: &Process| {
            if !self.idle.contains(process) {
                self.requests.wait(&[*process], &self.clock, PATIENCE);
            }
            // A process without a session has ended, with its memory.
            self.requests.waiting(*process).unwrap_or(0) > 0
        };
        let processes = processes.into_iter();
        let behind: BTreeSet<Process> = processes.filter(|process| is_behind(process)).collect();
        self.idle.extend(&behind);
        behind
    }
}

impl<E: RangeExecutor, C: Clock> RangeExecutor for ObeyedRequests<E, C> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let outcomes = self.execute(&[action]);
        let first = outcomes.into_iter().next();
        first.unwrap_or_else(|| RangeOutcome::begin(action))
    }

    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let mut outcomes = self.inner.execute(actions);
        let behind = self.behind(actions.iter().map(|action| action.process).collect());
        let fast = self.fast;
        let is_left = |action: RangeAction| action.node != fast && behind.contains(&action.process);
        for outcome in outcomes
            .iter_mut()
            .filter(|outcome| is_left(outcome.action))
        {
            for part in &mut outcome.parts {
                if part.fate == Fate::Requested {
                    part.fate = Fate::Busy(NOT_OBEYED.into());
                }
            }
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::ObeyedRequests;
    use crate::movement::page_requests::PageRequestWriter;
    use crate::session_bytes::{POOL, SessionBytes};
    use isotherm_abi::page_tiers::PageTable;
    use isotherm_abi::session::SessionHeader;
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
    use isotherm_model::outcome::Fate;
    use isotherm_model::port::{Clock, RangeExecutor};
    use isotherm_model::units::{Bytes, Nanos};
    use std::cell::Cell;
    use std::fs::OpenOptions;
    use std::mem::offset_of;
    use std::os::unix::fs::FileExt;
    use std::path::{Path, PathBuf};

    const FAST: NodeId = NodeId(0);
    const SLOW: NodeId = NodeId(1);

    /// Time in which one process obeys a request in each millisecond.
    struct Program {
        now: Cell<u64>,
        session: PathBuf,
        obeyed: Cell<u64>,
    }

    impl Clock for Program {
        fn now(&self) -> Nanos {
            Nanos(self.now.get())
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, time: Nanos) {
            self.now.set(self.now.get() + time.0);
            self.obeyed.set(self.obeyed.get() + 1);
            let at = offset_of!(SessionHeader, pages) + offset_of!(PageTable, obeyed);
            let file = OpenOptions::new().write(true).open(&self.session).unwrap();
            let obeyed = self.obeyed.get().min(2).to_ne_bytes();
            file.write_all_at(&obeyed, at as u64).unwrap();
        }
    }

    fn action(pid: u32, page: u64, node: NodeId) -> RangeAction {
        RangeAction {
            process: Process { pid, image: 0 },
            range: AddressRange {
                start: POOL + page * 4096,
                bytes: Bytes(4096),
            },
            node,
        }
    }

    fn executor(directory: &Path) -> ObeyedRequests<PageRequestWriter, Program> {
        for pid in [7, 8] {
            SessionBytes::new(pid, pid, 0).save(&directory.join(format!("{pid}.0")));
        }
        let writer = || PageRequestWriter::new(directory.to_owned());
        let program = Program {
            now: Cell::new(0),
            session: directory.join("7.0"),
            obeyed: Cell::new(0),
        };
        ObeyedRequests::new(writer(), writer(), program, FAST)
    }

    #[test]
    fn demotions_of_a_program_that_does_not_run_are_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let mut executor = executor(directory.path());
        let demotions = [action(7, 0, SLOW), action(8, 0, SLOW), action(7, 1, SLOW)];
        let outcomes = executor.execute(&demotions);
        let fates: Vec<bool> = outcomes
            .iter()
            .map(|outcome| outcome.parts[0].fate == Fate::Requested)
            .collect();
        assert_eq!(fates, [true, false, true]);
        assert!(matches!(outcomes[1].parts[0].fate, Fate::Busy(_)));
        let then = executor.clock.now();
        let outcome = executor.carry_out(action(8, 1, SLOW));
        assert!(matches!(outcome.parts[0].fate, Fate::Busy(_)));
        assert_eq!(executor.clock.now(), then, "it is not waited for again");
    }

    #[test]
    fn a_promotion_is_waited_for_and_stays_requested() {
        let directory = tempfile::tempdir().unwrap();
        let mut executor = executor(directory.path());
        for (pid, waits) in [(7, 1_000_000), (8, 100_000_000)] {
            let then = executor.clock.now();
            let outcome = executor.carry_out(action(pid, 0, FAST));
            assert_eq!(outcome.parts[0].fate, Fate::Requested);
            assert_eq!(executor.clock.now(), Nanos(then.0 + waits));
        }
    }
}
