//! Holds the computations between observers, policies and executors: the steps of an epoch (of a live run, of the daemon, of page-out), one
//! optimization within a run, the number of devices for hot data, the conversions of profiles into inputs of policies, predicted times and
//! other profiles, and the comparison of sites between plans, runs and builds. Pure: no I/O, clock or threads.
//!
//! ```text
//! Observer --Batch--> Attribution --Segment--> Recorder
//!                          |
//!                          +--> Online (decides) --Action--> Executor --Outcome-->
//! ```
//!
//! [`Step`] implements this picture for one epoch. It is generic over the ports, so the same step serves a live run, a recorded profile and
//! a simulated machine. A complete profile becomes the input of a policy through [`items()`], or of the simulator through
//! [`data_objects()`]. [`merge()`] joins the profiles of the ranks of a parallel program. [`regroup()`] renames the sites of a profile that
//! another tool recorded. [`matched_calls()`] finds the sites of a plan in a rebuilt program, [`site_pairs()`] those of a profile in a
//! profile of another build. [`without_regions()`] takes the mappings that no run can place out of a profile.
//!
//! [`optimize()`] makes one decision within a run, for the living data of its processes; [`Settling`] detects when an iteration has been
//! observed, and [`sampling_rate()`] chooses how often it is sampled.
//!
//! [`UnitStep`] is the daemon's step: it handles units of memory of any process instead of sites of one. [`TierDemand`] computes the loads
//! of the tiers for it. [`PagedStep`] uses [`UnitStep`] to decide which units of a program are paged out, within a budget of lost time.
//!
//! Not part of this crate: waiting for the next epoch (a clock), and reading or writing profiles.
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

#[cfg(test)]
#[path = "../../profile/tests/support/absorb.rs"]
mod absorb;
mod division;
mod access_counts;
mod live_objects;
mod heat_bins;
mod code_accesses;
mod attribute;
mod count_worth;
mod coverage;
mod data_objects;
mod without_regions;
mod site_bandwidths;
mod sampled_bandwidths;
mod items;
mod blocks;
mod place_tree;
mod places;
mod parts;
mod chunk_parts;
mod site_chunks;
mod settling;
mod sampling_rate;
mod optimization;
#[cfg(test)]
mod waiting_profile;
mod expected;
mod predicted_runs;
mod measured_runs;
mod retry_backoff;
mod recorded_future;
mod tier_demand;
mod merge;
mod rebuilt;
mod site_pairs;
mod regroup;
mod online;
mod unit_step;
mod paged_step;
mod device_count;
mod remapping;
mod class_samples;
mod step;

pub use access_counts::AccessCounts;
pub use attribute::Attribution;
pub use chunk_parts::{ChunkParts, chunk_parts};
pub use class_samples::class_samples;
pub use count_worth::{CountWorth, count_worth};
pub use coverage::{Coverage, coverage};
pub use data_objects::{CountedObject, data_objects};
pub use device_count::{
    AddedDevices, BANDWIDTH_INTERVAL, DeviceCount, DeviceDecision, RemapSample,
};
pub use expected::expected_times;
pub use items::{items, labels};
pub use measured_runs::{MeasuredRuns, measured_runs};
pub use merge::{MergeError, merge};
pub use online::{Online, OnlineConfig};
pub use optimization::{
    CarriedOut, ChunkChoice, HeatHint, HeatHints, ObjectOutcome, Optimization, OptimizationFigures,
    OptimizationInput, ProcessRange, bytes_in_tier, object_outcomes, optimize, parts_in_tier,
};
pub use paged_step::{GroupShortage, PagedConfig, PagedLimits, PagedReport, PagedStep, SavingRule};
pub use parts::{SitePart, SiteParts, part_items, site_parts};
pub use places::{PlaceCount, SitePlaces, sample_period, site_places};
pub use predicted_runs::{Unpredicted, predicted_runs};
pub use rebuilt::{MatchedCall, matched_calls, same_function};
pub use recorded_future::{NextAccesses, NoFuture, RecordedFuture};
pub use regroup::regroup;
pub use remapping::{LONGEST_EPOCH, RemapDecision, Remapping};
pub use sampled_bandwidths::{BytesPerCount, sampled_bandwidths};
pub use sampling_rate::{OTHER_HZ, SamplingNeed, USUAL_HZ, at_highest_rate, sampling_rate};
pub use settling::Settling;
pub use site_bandwidths::{hottest_sites, site_bandwidths, sites_without_bandwidth};
pub use site_chunks::{SiteChunks, site_of_object};
pub use site_pairs::site_pairs;
pub use step::{Step, StepReport};
pub use tier_demand::TierDemand;
pub use unit_step::{
    Combine, EpochReport, GroupLimit, GroupShare, MakePolicy, Priority, ProcessShare, StepLimits,
    Sums, UnitStep, UnitStepConfig,
};
pub use without_regions::{WithoutRegions, without_regions};
