//! Lists the epoch policies by name ([`POLICIES`]) and makes them, for the command line, the daemon and the simulator; [`LoadBalance`]
//! is not among them, and is made for runs and the daemon only.

use isotherm_model::port::EpochPolicy;

use super::{FirstComeFirstAllocated, History, LoadBalance, MoveCosts, Oracle, Payback};

/// Makes a policy without observations. The costs are for policies that use them.
pub type MakeEpochPolicy = fn(MoveCosts) -> Box<dyn EpochPolicy>;

/// Every epoch policy by its name on the command line, the recommended one first.
pub static POLICIES: [(&str, MakeEpochPolicy); 4] = [
    ("payback", |costs| Box::new(Payback::new(costs))),
    ("history", |_| Box::new(History::default())),
    ("oracle", |_| Box::new(Oracle::default())),
    ("first-come-first-allocated", |_| {
        Box::new(FirstComeFirstAllocated)
    }),
];

/// The short form of `first-come-first-allocated`, the baseline of most comparisons.
pub const FIRST_COME: &str = "first-come";

/// Whether this is a name of the baseline: the short or the long form.
#[must_use]
pub fn is_first_come(name: &str) -> bool {
    [FIRST_COME, "first-come-first-allocated"].contains(&name)
}

/// Makes the policy with this name, which may be [`FIRST_COME`].
#[must_use]
pub fn by_name(name: &str, costs: MoveCosts) -> Option<Box<dyn EpochPolicy>> {
    let is_meant = |known: &str| known == name || is_first_come(known) && is_first_come(name);
    let found = POLICIES.iter().find(|(known, _)| is_meant(known));
    found.map(|(_, make)| make(costs))
}

/// As [`by_name`], for a run or the daemon: also [`LoadBalance`], and [`Payback`] for a name of no policy.
#[must_use]
pub fn of_run(name: &str, costs: MoveCosts) -> Box<dyn EpochPolicy> {
    match name == LoadBalance::NAME {
        true => Box::new(LoadBalance::default()),
        false => by_name(name, costs).unwrap_or_else(|| Box::new(Payback::new(costs))),
    }
}

/// All names, in the order of [`POLICIES`].
pub fn names() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|(name, _)| *name)
}

/// The pages that a policy wants, ascending.
#[cfg(test)]
pub(super) fn decided(
    policy: &mut dyn EpochPolicy,
    previous_ranks: &[u64],
    next_ranks: Option<&[u64]>,
    fast: &[bool],
    capacity: u32,
) -> Vec<u32> {
    let view = isotherm_model::page::EpochView {
        previous_ranks,
        next_ranks,
        fast,
        capacity,
        hit: 1,
        loads: None,
    };
    let mut wanted = Vec::new();
    policy.decide(&view, &mut wanted);
    let mut pages: Vec<u32> = wanted.iter().map(|page| page.0).collect();
    pages.sort_unstable();
    pages
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{POLICIES, by_name, decided, names};
    use crate::epoch::MoveCosts;
    use isotherm_model::page::EpochView;
    use proptest::prelude::*;

    /// Eight epochs of ranks of twelve pages.
    fn epochs() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let rank = prop_oneof![4 => 0_u64..60, 1 => Just(0), 1 => Just(u64::MAX)];
        prop::collection::vec(prop::collection::vec(rank, 12), 8)
    }

    /// The page that a policy keeps fast, which page 2 is now: page 1 was hotter by a little, then by much, and page 0 will be the hottest.
    fn kept(name: &str) -> [Vec<u32>; 2] {
        [10, 1 << 40].map(|hottest| {
            let mut policy = by_name(name, MoveCosts::TYPICAL).expect(name);
            let previous_ranks = [1, hottest, 5];
            let next_ranks = [hottest, 0, 0];
            let fast = [false, false, true];
            decided(&mut *policy, &previous_ranks, Some(&next_ranks), &fast, 1)
        })
    }

    #[test]
    fn every_policy_is_found_by_its_name() {
        assert_eq!(kept("payback"), [[2], [1]]);
        assert_eq!(kept("history"), [[1], [1]]);
        assert_eq!(kept("oracle"), [[0], [0]]);
        assert_eq!(kept("first-come-first-allocated"), [[2], [2]]);
        assert_eq!(kept(super::FIRST_COME), [[2], [2]]);
        assert_eq!(names().count(), 4);
        assert!(by_name("clairvoyance", MoveCosts::TYPICAL).is_none());
    }

    proptest! {
        #[test]
        fn no_policy_wants_more_than_fits_a_page_twice_or_a_page_nobody_touched(
            epochs in epochs(), capacity in 0_u32..14
        ) {
            for (name, make) in &POLICIES {
                let mut policy = make(MoveCosts::TYPICAL);
                let mut fast = vec![false; 12];
                let mut wanted = Vec::new();
                for pair in epochs.windows(2) {
                    let next_ranks = Some(pair[1].as_slice());
                    let view = EpochView { previous_ranks: &pair[0], next_ranks, fast: &fast, capacity, hit: 1, loads: None };
                    policy.decide(&view, &mut wanted);
                    prop_assert!(wanted.len() <= capacity as usize, "{}", name);
                    let once: BTreeSet<_> = wanted.iter().collect();
                    prop_assert_eq!(once.len(), wanted.len(), "{}", name);
                    prop_assert!(wanted.iter().all(|page| page.0 < 12), "{}", name);
                    fast.fill(false);
                    for page in &wanted {
                        fast[page.at()] = true;
                    }
                }
            }
        }

        #[test]
        fn the_same_epochs_give_the_same_answers(epochs in epochs(), capacity in 0_u32..14) {
            for (name, make) in &POLICIES {
                let run = || {
                    let mut policy = make(MoveCosts::TYPICAL);
                    let mut answers = Vec::new();
                    for previous_ranks in &epochs {
                        let fast = [false; 12];
                        let view = EpochView { previous_ranks, next_ranks: None, fast: &fast, capacity, hit: 1, loads: None };
                        let mut wanted = Vec::new();
                        policy.decide(&view, &mut wanted);
                        answers.push(wanted);
                    }
                    answers
                };
                prop_assert_eq!(run(), run(), "{}", name);
            }
        }
    }
}
