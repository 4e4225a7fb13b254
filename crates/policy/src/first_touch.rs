//! [`FirstTouch`] is the kernel's placement without a plan as a site policy: sites enter the tier in the order of first allocation
//! ([`Item::order`], then site) while there is room.
//!
//! The site that crosses the capacity is taken, as in the kernel's preferred placement: its first pages fill the room and the others spill.
//! Every later site spills whole, even a small one. So the tier is overfilled by less than the last site taken, and the bounds of the plan
//! count only the part that fits.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

/// Sites in the order of first allocation until the tier is full.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstTouch;

impl SitePolicy for FirstTouch {
    fn name(&self) -> &'static str {
        "first-touch"
    }

    fn tier_of_all(&self, _tiers: &Tiers) -> Option<TierIndex> {
        Some(TierIndex::FASTEST)
    }

    fn overfills(&self) -> Option<&'static str> {
        Some("first-touch takes the site that fills the tier, of which a part fits")
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_unstable_by_key(|&i| (items[i].order, items[i].site));
        let mut room = capacity;
        let mut full = false;
        order
            .into_iter()
            .map(|item| {
                let weight = items[item].weight;
                let taken = weight == Bytes::ZERO || !full && room > Bytes::ZERO;
                let reason = match (taken, weight <= room) {
                    (true, true) => "taken: allocated while there was room".to_owned(),
                    (true, false) => {
                        format!("taken: its first {room} fill the tier, the rest spills")
                    }
                    _ => "left out: the tier was full when it was allocated".to_owned(),
                };
                full |= weight > room;
                room = room.saturating_sub(weight);
                Choice::new(item, taken, reason)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::FirstTouch;
    use crate::properties::{items, taken};
    use isotherm_model::units::Bytes;

    #[test]
    fn the_site_that_runs_out_of_room_is_taken_and_later_ones_spill_though_they_would_fit() {
        let sites = items(&[(1, 60), (1, 60), (100, 1)]);
        assert_eq!(taken(&FirstTouch, &sites, Bytes(100)), [0, 1]);
        assert_eq!(taken(&FirstTouch, &sites, Bytes(120)), [0, 1]);
        assert_eq!(taken(&FirstTouch, &sites, Bytes(121)), [0, 1, 2]);
        assert_eq!(taken(&FirstTouch, &sites, Bytes(0)), [0usize; 0]);
    }
}
