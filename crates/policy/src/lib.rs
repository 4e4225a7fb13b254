//! Policies: they decide which data goes to which memory. Site policies take the sites of a profile and the tiers, and make a plan; the
//! modules [`epoch`], [`chunks`], [`energy`] and [`sharing`] decide about pages, ranges, devices and programs. Other types decide during a
//! run which units are paged out, which classes of a Java heap and parts of a unit are hot, and how fast the kernel promotes. Pure: no I/O,
//! clock or threads.
//!
//! A file of a policy has its definition, steps and tests. [`plan`](plan()) runs a site policy over any number of tiers and reports the
//! result between first touch and the fractional bound. [`least_capacity()`] is the inverse: the least fast memory for a good plan.
//!
//! ```
//! use isotherm_model::plan::{Item, Value, Weight};
//! use isotherm_model::{emulation::Emulation, site::SiteId, tier::{TierIndex, Tiers}, units::Bytes};
//! use isotherm_policy::{PlanRequest, by_name, plan};
//!
//! let items = [
//!     Item { site: SiteId(2), value: 10, weight: Bytes(4096), order: 1 },
//!     Item { site: SiteId(3), value: 90, weight: Bytes(4096), order: 0 },
//! ];
//! let tiers = Tiers::emulated(Bytes(4096), Bytes(1 << 30), Emulation::TMP);
//! let policy = by_name("knapsack").unwrap();
//! let plan = plan(&PlanRequest::new(policy, &items, &tiers));
//! assert_eq!(plan.tier_of(SiteId(3)), TierIndex::FASTEST);
//! assert_eq!(plan.tier_of(SiteId(2)), TierIndex(1));
//! ```
//!
//! [`epoch`] decides by page and epoch instead of by site. [`UnitSavings`] chooses the memory that is paged out within a budget of time.
//!
//! Not part of this crate: reading profiles (the pipeline turns one into items), and the moves.
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

mod all_fast;
mod all_slow;
mod first_touch;
mod standing;
mod size_threshold;
mod static_ratio;
mod fractional;
mod minknap;
mod knapsack;
mod hotset;
mod balance;
mod thermos;
mod pieces;
mod fill;
mod plan;
mod least_capacity;
pub mod chunks;
pub mod energy;
pub mod epoch;
mod promotion_pace;
mod registry;
mod policy_text;
pub mod sharing;
mod class_colours;
mod hot_parts;
mod pressure_reclaim;
mod replacement_duel;
mod slow_surge;
mod stall_budget;
mod unit_reuse;
mod unit_savings;

pub use all_fast::AllFast;
pub use all_slow::AllSlow;
pub use balance::Balance;
pub use class_colours::{ClassColours, ClassSample};
pub use first_touch::FirstTouch;
pub use fractional::Fractional;
pub use hot_parts::{PARTS, PartHits, Parts};
pub use hotset::Hotset;
pub use knapsack::{Knapsack, PAGE};
pub use least_capacity::least_capacity;
pub use plan::{PlanRequest, plan, plan_selected};
pub use policy_text::{ATMEM, PolicyTextError, chunk_parameters_from_text, policy_from_text};
pub use pressure_reclaim::{PressureReclaim, RECLAIM_A_SECOND};
pub use promotion_pace::{PromotionControl, PromotionEpoch, PromotionPace};
pub use registry::{POLICIES, by_name, names};
pub use replacement_duel::{ProgramTime, ReplacementDuel, ReplacementOrder};
pub use size_threshold::{FastSide, SizeThreshold};
pub use slow_surge::SlowSurge;
pub use stall_budget::StallBudget;
pub use standing::{bound, first_touch_value, standing};
pub use static_ratio::{Ratio, StaticRatio};
pub use thermos::{Displaced, Thermos};
pub use unit_reuse::TOUCHED_PARTS;
pub use unit_savings::{EpochSaving, ReturningUnits, SavingsConfig, UnitSavings, first_units};

#[cfg(test)]
mod properties;
