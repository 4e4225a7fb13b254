//! [`Hotset`] is the site policy that takes sites by hotness descending until their sum first exceeds the capacity (MemBrain, section
//! III-A). The site that crosses is taken, so the tier is overfilled by less than that site.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::units::Bytes;

use crate::standing::by_hotness;

/// The hottest sites, up to the first that crosses the capacity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hotset;

impl SitePolicy for Hotset {
    fn name(&self) -> &'static str {
        "hotset"
    }

    fn overfills(&self) -> Option<&'static str> {
        Some("hotset takes the site that crosses the capacity")
    }

    fn fills(&self) -> bool {
        true
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let limit = u128::from(capacity.0);
        let mut used = 0_u128;
        by_hotness(items)
            .into_iter()
            .enumerate()
            .map(|(rank, item)| {
                let taken = used <= limit;
                let before = used;
                if taken {
                    used += u128::from(items[item].weight.0);
                }
                let rank = rank + 1;
                let reason = if !taken {
                    format!("left out: rank {rank} by hotness, and hotter sites went past {capacity}")
                } else if used <= limit {
                    format!("taken: rank {rank} by hotness, and it fits")
                } else {
                    let over = Bytes(u64::try_from(used - limit).unwrap_or(u64::MAX));
                    let room = Bytes(u64::try_from(limit - before).unwrap_or(u64::MAX));
                    format!(
                        "taken: rank {rank} by hotness; {room} were left, so it is the one that goes \
                         past the capacity, by {over}"
                    )
                };
                Choice::new(item, taken, reason)
            })
            .collect()
    }
}
