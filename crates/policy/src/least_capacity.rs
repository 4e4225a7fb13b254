//! [`least_capacity`] searches, by sixteenths of the largest capacity and then by halving, for the least fast memory with which a plan is
//! good enough, for `isotherm plan --slowdown`: the inverse of a plan for a given capacity. The caller gives the function that makes the
//! plan, and the test.
//!
//! Capacities are whole steps. The halving is between the first sixteenth that is enough and the one before it:
//!
//! ```text
//! of 64 steps, at most 2 % slower wanted
//! sixteenths    4 (9 %), 8 (8 %), 12 (6 %), 16 (4 %), 20 (1 %)
//! halves        18 (3 %), 19 (2 %)
//! found         19
//! ```
//!
//! The capacity that it finds is enough, and one step less is not, whatever the policy. Of capacities with equal plans it finds the
//! smallest. It finds the least of all if more memory never makes a plan worse. Some policies do worse with a little more: a large cold
//! site fits, and takes the room of small hot ones. The search then misses a smaller capacity that is enough if it lies between two
//! sixteenths that are not.

use isotherm_model::units::Bytes;

/// Parts of the most that are tried first.
const PARTS: u64 = 16;

/// The least capacity for which the result of `make` is enough, with that result. Capacities are whole steps, from one step up to `most`.
/// `None` if no capacity that was tried is enough; `most` is always tried.
///
/// # Errors
/// The first error of `make`.
pub fn least_capacity<T, E>(
    (most, step): (Bytes, Bytes),
    mut make: impl FnMut(Bytes) -> Result<T, E>,
    is_enough: impl Fn(&T) -> bool,
) -> Result<Option<(Bytes, T)>, E> {
    let step = step.0.max(1);
    let steps = (most.0 / step).max(1);
    let mut too_little = 0;
    for part in 1..=PARTS {
        let tried = steps / PARTS * part + steps % PARTS * part / PARTS;
        if tried == too_little {
            continue;
        }
        let made = make(Bytes(tried * step))?;
        if !is_enough(&made) {
            too_little = tried;
            continue;
        }
        let (mut enough, mut least) = (tried, made);
        while enough - too_little > 1 {
            let middle = u64::midpoint(too_little, enough);
            let made = make(Bytes(middle * step))?;
            match is_enough(&made) {
                true => (enough, least) = (middle, made),
                false => too_little = middle,
            }
        }
        return Ok(Some((Bytes(enough * step), least)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use isotherm_model::plan::Plan;
    use isotherm_model::units::Bytes;
    use proptest::prelude::*;

    use super::least_capacity;
    use crate::properties::{items, node_tiers};
    use crate::{PAGE, PlanRequest, by_name, names, plan};

    /// The number of steps that is found, and those that were tried. The answers are those for 1, 2, 3 ... steps.
    fn found(enough: &[bool]) -> (Option<usize>, Vec<usize>) {
        let mut tried = Vec::new();
        let make = |capacity: Bytes| {
            tried.push((capacity.0 / PAGE) as usize);
            Ok::<_, Infallible>(enough[(capacity.0 / PAGE) as usize - 1])
        };
        let most = Bytes(enough.len() as u64 * PAGE);
        let least = least_capacity((most, Bytes(PAGE)), make, |enough| *enough);
        let Ok(least) = least;
        (least.map(|(bytes, _)| (bytes.0 / PAGE) as usize), tried)
    }

    #[test]
    fn a_need_is_found_by_few_plans() {
        let enough: Vec<bool> = (1..=100_000).map(|steps| steps >= 40_123).collect();
        let (least, tried) = found(&enough);
        assert_eq!(least, Some(40_123));
        assert!(tried.len() <= 16 + 13, "{}", tried.len());
    }

    #[test]
    fn one_step_is_the_least_and_too_little_is_none() {
        assert_eq!(found(&[true; 5]).0, Some(1));
        assert_eq!(found(&[false, false, false, false, true]).0, Some(5));
        assert_eq!(found(&[false; 5]), (None, vec![1, 2, 3, 4, 5]));
        assert_eq!(found(&[true]), (Some(1), vec![1]));
    }

    #[test]
    fn an_error_ends_the_search() {
        let make = |_: Bytes| Err::<(), _>("no plan");
        let least = least_capacity((Bytes(64), Bytes(1)), make, |()| true);
        assert_eq!(least, Err("no plan"));
    }

    proptest! {
        /// However the answers change with the capacity.
        #[test]
        fn what_is_found_is_enough_and_one_step_less_is_not(
            enough in prop::collection::vec(any::<bool>(), 1..200)
        ) {
            match found(&enough).0 {
                Some(least) => {
                    prop_assert!(enough[least - 1]);
                    prop_assert!(least == 1 || !enough[least - 2]);
                }
                None => prop_assert!(!enough[enough.len() - 1]),
            }
        }

        #[test]
        fn the_least_is_found_where_more_is_never_worse(steps in 1_usize..3_000, least in 1_usize..3_000) {
            let enough: Vec<bool> = (1..=steps).map(|number| number >= least).collect();
            prop_assert_eq!(found(&enough).0, (least <= steps).then_some(least));
        }

        /// By the value that plans of random sites serve, under every policy.
        #[test]
        fn a_plan_for_what_is_found_serves_enough_and_one_for_a_page_less_does_not(
            sites in prop::collection::vec((0_u64..100, 0_u64..40), 1..12),
            percent in 0_u64..=100,
        ) {
            let sites: Vec<_> = sites.iter().map(|&(value, pages)| (value, pages * PAGE)).collect();
            let sites = items(&sites);
            let all: Bytes = sites.iter().map(|item| item.weight).sum();
            let total: u64 = sites.iter().map(|item| item.value).sum();
            let serves_enough = |plan: &Plan| plan.standing.planned * 100 >= total * percent;
            for policy in names().filter_map(by_name) {
                let at = |capacity: Bytes| {
                    let tiers = node_tiers(&[capacity.0, u64::MAX]);
                    plan(&PlanRequest::new(policy, &sites, &tiers))
                };
                let make = |capacity| Ok::<_, Infallible>(at(capacity));
                let Ok(least) = least_capacity((all, Bytes(PAGE)), make, serves_enough);
                let Some((capacity, made)) = least else {
                    prop_assert!(!serves_enough(&at(Bytes(all.0.max(PAGE)))), "{}", policy.name());
                    continue;
                };
                prop_assert!(serves_enough(&made), "{}", policy.name());
                prop_assert_eq!(made, at(capacity));
                let less = capacity.saturating_sub(Bytes(PAGE));
                prop_assert!(
                    less == Bytes::ZERO || !serves_enough(&at(less)),
                    "{} at {}",
                    policy.name(),
                    less
                );
            }
        }
    }
}
