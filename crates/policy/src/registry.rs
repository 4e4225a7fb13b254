//! The policies by name, for the command line and its help.

use isotherm_model::port::SitePolicy;

use crate::size_threshold::{FastSide, SizeThreshold};
use crate::thermos::Displaced;
use crate::{AllFast, AllSlow, FirstTouch, Fractional, Hotset, Knapsack, StaticRatio, Thermos};

/// A policy and its line of help.
pub struct PolicyEntry {
    /// The policy; its name is [`SitePolicy::name`].
    pub policy: &'static (dyn SitePolicy + Sync),
    /// One line of help.
    pub summary: &'static str,
}

impl std::fmt::Debug for PolicyEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.policy.name(), self.summary)
    }
}

/// Every site policy, the recommended one first.
pub static POLICIES: [PolicyEntry; 11] = [
    PolicyEntry {
        policy: &Thermos {
            displaced: Displaced::Hottest,
        },
        summary: "hottest sites; one that overflows must beat the hottest bytes it could displace",
    },
    PolicyEntry {
        policy: &Thermos {
            displaced: Displaced::Average,
        },
        summary: "thermos, but compares with the average density of the taken sites",
    },
    PolicyEntry {
        policy: &Knapsack::DEFAULT,
        summary: "the most value in whole sites that fit (exact, page-granular)",
    },
    PolicyEntry {
        policy: &Hotset,
        summary: "hottest sites until just past the capacity",
    },
    PolicyEntry {
        policy: &StaticRatio { ratio: None },
        summary: "sites by a hash of their id up to a share of the bytes, regardless of hotness",
    },
    PolicyEntry {
        policy: &SizeThreshold {
            side: FastSide::Smaller,
            threshold: None,
        },
        summary: "sites up to a size, the largest at which they fit together",
    },
    PolicyEntry {
        policy: &SizeThreshold {
            side: FastSide::Larger,
            threshold: None,
        },
        summary: "sites from a size on, the smallest at which they fit together",
    },
    PolicyEntry {
        policy: &FirstTouch,
        summary: "sites as they were first allocated, until full: what happens without a plan",
    },
    PolicyEntry {
        policy: &AllFast,
        summary: "everything to the fastest tier, regardless of its capacity",
    },
    PolicyEntry {
        policy: &AllSlow,
        summary: "everything to the slowest tier",
    },
    PolicyEntry {
        policy: &Fractional,
        summary: "the fractional bound's whole sites, up to the one it splits",
    },
];

/// The policy with this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn SitePolicy> {
    POLICIES
        .iter()
        .find(|entry| entry.policy.name() == name)
        .map(|entry| entry.policy as &dyn SitePolicy)
}

/// All names, in the order of [`POLICIES`].
pub fn names() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|entry| entry.policy.name())
}
