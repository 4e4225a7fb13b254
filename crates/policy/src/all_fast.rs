//! [`AllFast`] is the site policy that puts every site into the fastest tier, regardless of its capacity: the upper end of every
//! comparison. It is an upper bound only if the capacity is at least the footprint; in a smaller tier the rest spills, and all fast becomes
//! first touch.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

/// Puts every site into the fastest tier.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllFast;

impl SitePolicy for AllFast {
    fn name(&self) -> &'static str {
        "all-fast"
    }

    fn tier_of_all(&self, _tiers: &Tiers) -> Option<TierIndex> {
        Some(TierIndex::FASTEST)
    }

    fn overfills(&self) -> Option<&'static str> {
        Some("all-fast takes everything")
    }

    fn choose(&self, items: &[Item], _capacity: Bytes) -> Vec<Choice> {
        (0..items.len())
            .map(|item| {
                Choice::new(
                    item,
                    true,
                    "taken: all fast takes every site, regardless of the capacity",
                )
            })
            .collect()
    }
}
