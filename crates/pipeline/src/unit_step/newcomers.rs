//! `Newcomers` finds the processes that appeared after the first observation and have been watched for a few epochs only, and `fair_share`
//! computes the fast memory that each of them keeps.
//!
//! Heat that one epoch showed proves little, and a program that has filled the fast tier for hours has much of it. So a newcomer without an
//! entry of its own has a floor at first, its *fair share*: the part of the fast tier without configured floors, divided among the
//! processes with heat.
//!
//! ```text
//! capacity 12 units, a floor of 2, three processes with heat      fair share (12 - 2) / 3 = 3
//! epochs watched     1 ... fair_start      fair_start + 1 ...
//! floor              3                     none: heat alone decides
//! ```
//!
//! Processes of the first observation are no newcomers: a daemon that is restarted moves nothing for their sake. A process that the filter
//! drops for a while is not new when it returns.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::Process;
use isotherm_model::watch::Watched;

use super::index::Index;

/// Epochs for which a process that is no longer watched is remembered: longer than a program pauses, at the cost of little memory.
const REMEMBERED: u32 = 256;

/// The number of epochs for which each process has been watched.
#[derive(Clone, Debug, Default)]
pub(super) struct Newcomers {
    /// `None` before the first observation.
    ages: Option<BTreeMap<Process, Age>>,
}

/// The number of epochs for which one process has been watched.
#[derive(Clone, Copy, Debug, Default)]
struct Age {
    /// Epochs with an observed access, of any process, in which it was watched.
    watched: u32,
    /// Epochs since it was watched last.
    absent: u32,
}

impl Newcomers {
    /// Counts an epoch. `is_blind`: no access was observed, so nothing was learnt of any process.
    pub(super) fn observe(&mut self, processes: &[Watched], is_blind: bool) {
        let age_of_new = match self.ages {
            None => u32::MAX,
            Some(_) => 0,
        };
        let ages = self.ages.get_or_insert_default();
        for age in ages.values_mut() {
            age.absent = age.absent.saturating_add(1);
        }
        for watched in processes {
            let age = ages.entry(watched.process).or_insert(Age {
                watched: age_of_new,
                absent: 0,
            });
            age.absent = 0;
            age.watched = age.watched.saturating_add(u32::from(!is_blind));
        }
        ages.retain(|_, age| age.absent <= REMEMBERED);
    }

    /// Number of processes that are remembered.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.ages.as_ref().map_or(0, BTreeMap::len)
    }

    /// True in the first epochs of a process.
    pub(super) fn has(&self, process: Process, fair_start: u32) -> bool {
        let age = self.ages.as_ref().and_then(|ages| ages.get(&process));
        age.is_some_and(|age| age.watched <= fair_start && fair_start > 0)
    }
}

/// The fair share of each process with heat, in units, and these processes; nothing where one process has all heat.
pub(super) fn fair_share(index: &Index, units: usize) -> (usize, BTreeSet<Process>) {
    let known = index.known();
    let processes = index.warm().filter_map(|page| known[page.at()].unit);
    let processes: BTreeSet<Process> = processes.map(|unit| unit.process).collect();
    match processes.len() {
        0 | 1 => (0, processes),
        several => (units / several, processes),
    }
}

#[cfg(test)]
mod tests {
    use super::{Newcomers, REMEMBERED};
    use isotherm_model::batch::Process;
    use isotherm_model::watch::Watched;

    const START: u32 = 3;

    fn process(pid: u32) -> Process {
        Process { pid, image: 0 }
    }

    fn watched(pids: &[u32]) -> Vec<Watched> {
        let one = |pid: &u32| Watched {
            process: process(*pid),
            name: String::new(),
            control_group: String::new(),
            warning: String::new(),
        };
        pids.iter().map(one).collect()
    }

    /// The epochs in which the process counts as new, given the processes of each epoch.
    fn new_in(pid: u32, epochs: &[(&[u32], bool)]) -> Vec<usize> {
        let mut newcomers = Newcomers::default();
        let mut found = Vec::new();
        for (epoch, (pids, is_blind)) in epochs.iter().enumerate() {
            newcomers.observe(&watched(pids), *is_blind);
            found.extend(newcomers.has(process(pid), START).then_some(epoch));
        }
        found
    }

    #[test]
    fn a_process_is_new_for_some_epochs_unless_it_was_there_before_the_first() {
        let both = (&[1, 2][..], false);
        let epochs = [(&[1][..], false), both, both, both, both, both];
        assert_eq!(new_in(2, &epochs), [1, 2, 3]);
        assert_eq!(new_in(1, &epochs), []);
        let epochs = [(&[][..], true), both, both, both, both];
        assert_eq!(new_in(1, &epochs), [1, 2, 3], "the daemon was first");
    }

    #[test]
    fn an_epoch_without_accesses_does_not_count() {
        let (blind, seen) = ((&[2][..], true), (&[2][..], false));
        let epochs = [(&[][..], true), seen, blind, blind, seen, seen, seen];
        assert_eq!(new_in(2, &epochs), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_process_with_pauses_is_new_once_and_one_that_ended_is_forgotten() {
        let mut newcomers = Newcomers::default();
        newcomers.observe(&[], false);
        for epoch in 0..20 {
            newcomers.observe(&watched(&[7]), false);
            assert_eq!(newcomers.has(process(7), START), epoch < START);
            newcomers.observe(&[], false);
        }
        for _ in 0..REMEMBERED {
            newcomers.observe(&[], false);
        }
        assert_eq!(newcomers.kept(), 0);
    }

    #[test]
    fn without_a_fair_start_no_process_is_new() {
        let mut newcomers = Newcomers::default();
        newcomers.observe(&[], false);
        newcomers.observe(&watched(&[7]), true);
        assert!(!newcomers.has(process(7), 0));
    }
}
