//! Lists the site policies, each with its default parameters ([`POLICIES`]), and finds one by its name, for the command line.

use isotherm_model::port::SitePolicy;

use crate::energy::ColdSetPolicy;
use crate::size_threshold::{FastSide, SizeThreshold};
use crate::thermos::Displaced;
use crate::{
    AllFast, AllSlow, Balance, FirstTouch, Fractional, Hotset, Knapsack, StaticRatio, Thermos,
};

/// Every site policy, the recommended one first.
pub static POLICIES: [&(dyn SitePolicy + Sync); 13] = [
    &Thermos {
        displaced: Displaced::Hottest,
    },
    &Thermos {
        displaced: Displaced::Average,
    },
    &Knapsack::DEFAULT,
    &Hotset,
    &StaticRatio { ratio: None },
    &SizeThreshold {
        side: FastSide::Smaller,
        threshold: None,
    },
    &SizeThreshold {
        side: FastSide::Larger,
        threshold: None,
    },
    &ColdSetPolicy::DEFAULT,
    &Balance,
    &FirstTouch,
    &AllFast,
    &AllSlow,
    &Fractional,
];

/// The policy with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn SitePolicy> {
    let found = POLICIES.iter().find(|policy| policy.name() == name)?;
    Some(*found)
}

/// All names, in the order of [`POLICIES`].
pub fn names() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|policy| policy.name())
}
