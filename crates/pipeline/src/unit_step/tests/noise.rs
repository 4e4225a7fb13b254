//! Tests the step with sources of random noise, such as DAMON: moves are bounded by real changes,
//! and fast memory is not left empty while known hot data is slow.

use isotherm_model::batch::ObservedAccess;
use isotherm_model::outcome::{Fate, NO_ROOM, Reason};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::Unit;
use isotherm_policy::epoch::{MoveCosts, by_name};
use proptest::prelude::*;

use super::{Machine, UNIT, config, limits, unit};
use crate::unit_step::{StepLimits, UnitStep};

/// Units of each of two hot sets, of all memory, and of the fast tier: 24, 128 and 57 MiB.
const SET: u64 = 12;
const ALL: u64 = 64;
const CAPACITY: u64 = 28;

/// Scans of a report, and pages of a unit.
const LOOKS: u32 = 20;
const PAGES: u64 = UNIT / 4096;

/// Where the sets begin.
const SETS: [u64; 2] = [8, 40];

fn is_hot(number: u64, set: usize) -> bool {
    (SETS[set]..SETS[set] + SET).contains(&number)
}

/// DAMON: each scan checks one page of a region for all of it. After a report, neighbours with
/// similar accesses are merged, and each region is split at a random point. A page of the hot set
/// is found accessed in three of four scans.
struct Damon {
    /// End of each region, in pages.
    ends: Vec<u64>,
    random: u64,
}

impl Damon {
    fn next(&mut self, below: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below.max(1)
    }

    fn report(&mut self, set: usize) -> Vec<ObservedAccess> {
        let (mut begin, mut regions) = (0, Vec::<(u64, u64, u64)>::new());
        for end in self.ends.clone() {
            let mut accesses = 0;
            for _ in 0..LOOKS {
                let page = begin + self.next(end - begin);
                accesses += u64::from(is_hot(page / PAGES, set) && self.next(4) > 0);
            }
            regions.push((begin, end, accesses));
            begin = end;
        }
        self.adapt(&regions);
        let seen = regions.iter().filter(|(_, _, accesses)| *accesses > 0);
        seen.map(|(begin, end, accesses)| access(*begin, *end, *accesses))
            .collect()
    }

    fn adapt(&mut self, regions: &[(u64, u64, u64)]) {
        let mut joined: Vec<(u64, u64, u64)> = Vec::new();
        for (begin, end, accesses) in regions.iter().copied() {
            match joined.last_mut() {
                Some((first, last, before))
                    if before.abs_diff(accesses) <= u64::from(LOOKS) / 10
                        && end - *first <= ALL * PAGES / 10 =>
                {
                    let (old, new) = (*last - *first, end - begin);
                    *before = (*before * old + accesses * new) / (old + new);
                    *last = end;
                }
                _ => joined.push((begin, end, accesses)),
            }
        }
        self.ends.clear();
        for (begin, end, _) in joined {
            if end - begin > 1 {
                let middle = begin + 1 + self.next(end - begin - 1);
                self.ends.push(middle);
            }
            self.ends.push(end);
        }
    }
}

fn access(begin: u64, end: u64, accesses: u64) -> ObservedAccess {
    let (source, start) = (SourceKind::Damon, (unit(7, 0).process, begin * 4096));
    ObservedAccess {
        bytes: Bytes((end - begin) * 4096),
        ..ObservedAccess::at(
            start,
            source,
            ((end - begin) * accesses, source.unit(false)),
        )
    }
}

/// A program with two hot sets, now one and now the other.
struct Program {
    machine: Machine,
    damon: Damon,
}

impl Program {
    fn new(seed: u64) -> Self {
        Self {
            machine: Machine::with((0..ALL).map(|number| unit(7, number))),
            damon: Damon {
                ends: (1..=10).map(|tenth| ALL * PAGES * tenth / 10).collect(),
                random: seed,
            },
        }
    }

    /// The observation of an epoch in which this set is hot.
    fn epoch(&mut self, epoch: u32, set: usize) -> isotherm_model::watch::Observation {
        let mut seen = self.machine.observation(epoch, CAPACITY, &[]);
        // A second is ten reports, of which the last is read.
        for _ in 0..9 {
            self.damon.report(set);
        }
        seen.accesses = self.damon.report(set);
        seen
    }

    /// Units of a set that are fast.
    fn fast_of(&self, set: usize) -> u64 {
        let fast = self.machine.fast_units();
        let hot = fast.iter().filter(|unit| is_hot(unit.start / UNIT, set));
        hot.count() as u64
    }
}

/// A step whose moves cost the time to move a unit.
fn step_of_units() -> UnitStep {
    let costs = MoveCosts {
        moved_page: Nanos(2_000 * PAGES),
        ..MoveCosts::TYPICAL
    };
    let make = move || by_name("payback", costs).expect("a policy");
    UnitStep::new(config(false), Box::new(make))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_promoted_is_bounded_and_hot_sets_that_fit_together_stay_fast(seed in any::<u64>()) {
        let mut program = Program::new(seed);
        let mut step = step_of_units();
        let mut promoted = 0;
        for epoch in 0..60 {
            let set = (epoch as usize / 10) % 2;
            let seen = program.epoch(epoch, set);
            let report = step.run(&seen, &limits(), &mut program.machine);
            promoted += report.moves.promoted.0 / UNIT;
            if epoch % 10 == 9 {
                let fast = program.fast_of(set);
                // Samples are few: of 15,000 looks at random seeds 132 missed one unit of the set, and 9 missed two.
                prop_assert!(fast >= SET - 3, "epoch {epoch}: {fast} of {SET} units are fast");
            }
        }
        // Both sets once, and twice that for memory that shares a region with them by chance.
        prop_assert!(promoted <= 6 * SET, "{promoted} units were promoted");
    }

    #[test]
    fn what_the_node_or_the_epoch_had_no_room_for_is_tried_again_as_soon_as_it_may(
        seed in any::<u64>(),
        refusal in prop::sample::select(vec![
            Fate::Busy(NO_ROOM.into()),
            Fate::NotAttempted(Reason::OutOfTime),
        ]),
    ) {
        let mut program = Program::new(seed);
        let mut step = step_of_units();
        program.machine.refusal = Some(refusal);
        for epoch in 0..12 {
            let seen = program.epoch(epoch, 0);
            step.run(&seen, &limits(), &mut program.machine);
            prop_assert_eq!(program.fast_of(0), 0);
        }
        program.machine.refusal = None;
        for epoch in 12..16 {
            let seen = program.epoch(epoch, 0);
            step.run(&seen, &limits(), &mut program.machine);
        }
        let fast = program.fast_of(0);
        prop_assert!(fast >= SET - 1, "{fast} of {SET} units are fast");
    }
}

/// A source that is slowed to an eighth scans in one epoch of eight. Memory without hits in the
/// others is not cold: a policy that learnt so would expect that heat never stays, and would not
/// move newly hot data.
#[test]
fn an_epoch_in_which_no_source_looked_changes_nothing_and_teaches_nothing() {
    let mut program = Program::new(1);
    let mut step = step_of_units();
    let one_access_a_sample = StepLimits {
        accesses_per_sample: 1,
        ..limits()
    };
    for epoch in 0..80 {
        let set = epoch as usize / 40;
        let looked = epoch % 8 == 0;
        // A move pays within four epochs of this many accesses.
        let hot = (SETS[set]..SETS[set] + SET).map(|number| (unit(7, number), 2_000));
        let hot: Vec<(Unit, u64)> = hot.filter(|_| looked).collect();
        let seen = program.machine.observation(epoch, CAPACITY, &hot);
        let before = program.machine.log.len();
        let report = step.run(&seen, &one_access_a_sample, &mut program.machine);
        if !looked {
            assert_eq!(program.machine.log.len(), before, "epoch {epoch}");
            assert_eq!(report.hit_rate(), None);
            assert_eq!(report.wanted, report.fast);
        }
        if epoch % 40 == 24 {
            let fast = program.fast_of(set);
            assert!(fast >= SET - 1, "epoch {epoch}: {fast} of {SET} are fast");
        }
    }
}
