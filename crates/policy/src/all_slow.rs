//! [`AllSlow`] is the site policy that puts every site into the slowest tier: the lower end of every comparison.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;

/// Puts every site into the slowest tier.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllSlow;

impl SitePolicy for AllSlow {
    fn name(&self) -> &'static str {
        "all-slow"
    }

    fn tier_of_all(&self, tiers: &Tiers) -> Option<TierIndex> {
        Some(tiers.slowest())
    }

    fn choose(&self, items: &[Item], _capacity: Bytes) -> Vec<Choice> {
        (0..items.len())
            .map(|item| Choice::new(item, false, "left out: all slow takes nothing"))
            .collect()
    }
}
