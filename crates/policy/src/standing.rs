//! [`standing`] computes the value that a plan serves from the fastest tier, and the values that it is compared with: first touch, which a
//! bad plan may fall below, the fractional bound, which no plan exceeds, and the total. [`by_hotness`], the order by hotness that site
//! policies share, is here too.

use isotherm_model::plan::{Item, PlanBounds};
use isotherm_model::units::{Bytes, portion};

/// Indexes of the items, hottest first. Items are sorted with their indexes. Sorting the indexes
/// alone would jump through memory at each comparison and take twice as long.
pub(crate) fn by_hotness(items: &[Item]) -> Vec<usize> {
    let mut order: Vec<(Item, usize)> = items.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|(a, _), (b, _)| a.hotter_first(b));
    order.into_iter().map(|(_, index)| index).collect()
}

/// Value that a tier of this capacity serves when the sites fill it in the given order: whole sites while they fit, a share of the site
/// that crosses, rounded down, and nothing of the others.
fn filled<'a>(sites: impl Iterator<Item = &'a Item>, capacity: Bytes) -> u64 {
    let mut room = capacity.0;
    let mut value = 0_u64;
    for item in sites {
        let fits = item.weight.0.min(room);
        room -= fits;
        let served = if fits == item.weight.0 {
            item.value
        } else {
            portion(item.value, fits, item.weight.0)
        };
        value = value.saturating_add(served);
    }
    value
}

/// The fractional bound: greedy by hotness with the last site split (Dantzig). No placement, whole
/// or not, serves more at this capacity. Rounded down, sums saturate.
#[must_use]
pub fn bound(items: &[Item], capacity: Bytes) -> u64 {
    filled(by_hotness(items).into_iter().map(|i| &items[i]), capacity)
}

/// Value served when these sites fill the tier in the order of first allocation and then spill, by
/// page, as in the kernel's placement without a plan.
#[must_use]
pub fn first_touch_value(items: &[Item], capacity: Bytes) -> u64 {
    let mut order: Vec<&Item> = items.iter().collect();
    // Parts of one site keep their order.
    order.sort_by_key(|item| (item.order, item.site));
    filled(order.into_iter(), capacity)
}

/// The value of a plan that puts `taken` into the fastest tier, with its bounds over all `items`.
#[must_use]
pub fn standing(items: &[Item], taken: &[Item], capacity: Bytes) -> PlanBounds {
    PlanBounds {
        planned: first_touch_value(taken, capacity),
        first_touch: first_touch_value(items, capacity),
        bound: bound(items, capacity),
        total: items
            .iter()
            .fold(0, |sum, item| sum.saturating_add(item.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::{bound, first_touch_value};
    use crate::properties::items;
    use isotherm_model::units::Bytes;

    #[test]
    fn the_bound_splits_the_site_that_crosses_and_rounds_down() {
        let sites = items(&[(10, 3), (9, 3)]);
        assert_eq!(bound(&sites, Bytes(4)), 13);
        assert_eq!(bound(&sites, Bytes(5)), 16);
        assert_eq!(bound(&sites, Bytes(99)), 19);
        assert_eq!(bound(&[], Bytes(99)), 0);
    }

    #[test]
    fn first_touch_follows_the_order_and_serves_part_of_the_site_that_crosses() {
        let sites = items(&[(10, 10), (100, 10), (1000, 1)]);
        assert_eq!(first_touch_value(&sites, Bytes(15)), 60);
    }
}
