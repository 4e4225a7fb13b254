//! [`Parallel`] moves ranges between nodes by several threads, as many as the process has processors ([`processors_of`]), for the moves of
//! an optimization: each thread takes the next piece of a list until there is none.
//!
//! ```text
//! actions   |      a       |  b  |      c       |
//! pieces    | a1 | a2 | a3 | b   | c1 | c2 | c3 |
//! threads     1    2    1    2     1    1    2          outcomes are joined in the order of the pieces
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use isotherm_model::batch::Process;
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::port::RangeExecutor;
use isotherm_sys::affinity;

use super::pieces::{PIECE, in_pieces};

/// Moves by several executors at a time; `make` makes each executor within its thread.
#[derive(Debug)]
pub struct Parallel<F> {
    make: F,
    threads: fn(Process) -> usize,
}

/// The processors that a process may use, at least one.
#[must_use]
pub fn processors_of(process: Process) -> usize {
    affinity::allowed_to(process.pid).map_or(1, |allowed| allowed.len())
}

impl<E: RangeExecutor, F: Fn() -> E + Sync> Parallel<F> {
    /// Moves by as many threads as `threads` (such as [`processors_of`]) returns for the process of the first action.
    pub const fn new(make: F, threads: fn(Process) -> usize) -> Self {
        Self { make, threads }
    }

    /// One outcome for each piece.
    fn all(&self, pieces: &[RangeAction]) -> Vec<RangeOutcome> {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(pieces.len()));
        let work = || {
            let mut executor = (self.make)();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(number) else {
                    break;
                };
                let outcome = executor.carry_out(*piece);
                done.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push((number, outcome));
            }
        };
        std::thread::scope(|scope| {
            let threads = pieces
                .first()
                .map_or(1, |piece| (self.threads)(piece.process));
            let more = threads.min(pieces.len()).saturating_sub(1);
            for _ in 0..more {
                // If a thread cannot be started, the present threads do the work.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|(number, _)| *number);
        done.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

impl<E: RangeExecutor, F: Fn() -> E + Sync> RangeExecutor for Parallel<F> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let mut outcomes = self.execute(&[action]);
        outcomes
            .pop()
            .unwrap_or_else(|| RangeOutcome::begin(action))
    }

    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        in_pieces(actions, PIECE, |pieces| self.all(pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::Parallel;
    use crate::movement::pieces::PIECE;
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::Fate;
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;
    use std::sync::Mutex;

    /// Moves each piece whose number is even; keeps the threads that called.
    struct Mover<'a>(&'a Mutex<Vec<std::thread::ThreadId>>);

    impl RangeExecutor for Mover<'_> {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            self.0.lock().unwrap().push(std::thread::current().id());
            std::thread::sleep(std::time::Duration::from_millis(1));
            let fate = match action.range.start / PIECE % 2 {
                0 => Fate::Moved,
                _ => Fate::Busy("odd".into()),
            };
            RangeOutcome::whole(action, fate)
        }
    }

    fn action(start: u64, bytes: u64) -> RangeAction {
        RangeAction {
            process: Process::default(),
            range: AddressRange {
                start,
                bytes: Bytes(bytes),
            },
            node: NodeId(1),
        }
    }

    #[test]
    fn outcomes_are_those_of_one_thread_in_order() {
        let actions = [
            action(PIECE / 2, 3 * PIECE),
            action(9 * PIECE, 4096),
            action(u64::MAX - 4095, 4095),
            action(0, 0),
        ];
        for (most, threads) in [(1, (|_| 1) as fn(Process) -> usize), (4, |_| 4)] {
            let seen = Mutex::default();
            let outcomes = Parallel::new(|| Mover(&seen), threads).execute(&actions);
            let parts: Vec<Vec<u64>> = outcomes
                .iter()
                .map(|it| it.parts.iter().map(|part| part.bytes.0).collect())
                .collect();
            let half = PIECE / 2;
            assert_eq!(
                parts,
                [
                    vec![half, PIECE, PIECE, half],
                    vec![4096],
                    vec![4095],
                    vec![]
                ]
            );
            assert!(outcomes.iter().all(|it| it.left() == Bytes(0)));
            let mut threads_seen = seen.into_inner().unwrap();
            threads_seen.sort_unstable_by_key(|id| format!("{id:?}"));
            threads_seen.dedup();
            assert!(threads_seen.len() <= most);
        }
    }
}
