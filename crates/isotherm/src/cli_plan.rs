//! `PlanArgs` declares the flags of `isotherm plan`, which makes a plan of a profile.

use std::path::PathBuf;

use clap::Args;

use crate::cli_devices::DevicesChoice;
use crate::cli_tiers::TiersChoice;
use crate::flag_values::{SITE_POLICIES, VALUES, WEIGHTS};
use crate::input;
use crate::split::Split;

/// Flags of `isotherm plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The profile
    pub profile: PathBuf,
    #[command(flatten)]
    pub tiers: TiersChoice,
    /// In place of --fast: how much slower than with all its data in fast memory the program may be, such as 2%. The plan then has the
    /// least fast memory with which that is expected, and a sentence says how much it is; 0% for as much as all data takes that the
    /// program waits for
    #[arg(long, value_name = "SHARE", value_parser = input::slowdown, conflicts_with = "fast")]
    pub slowdown: Option<f64>,
    /// With --slowdown: print how much fast memory that is as JSON, in place of the sentence
    #[arg(long, requires = "slowdown")]
    pub json: bool,
    /// The policy: thermos, thermos-density, knapsack, hotset, static-ratio[=FAST:SLOW],
    /// size-threshold[=SIZE], size-threshold-larger[=SIZE], cold-set[=SHARE], balance, first-touch, all-fast, all-slow, fractional,
    /// atmem[=PARAMETERS]
    #[arg(long, default_value = "thermos", value_parser = SITE_POLICIES, hide_possible_values = true)]
    pub policy: String,
    /// Whether sites are placed in parts where the profile proves that their objects are hot in some places only: `auto`, where that
    /// pays, or `never`
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub split: Split,
    /// The value of a site: `accesses` (in the profile's unit: accesses, misses or samples of
    /// the time waiting for memory), `bandwidth` (bytes a second, from the runs of `isotherm record --isolate sites`),
    /// `sampled-bandwidth` (estimated from the samples) or `latency` (measured by the processor; sources pebs, ibs and spe)
    /// [default: accesses; with --policy balance bandwidth, or the estimate where it was not measured]
    #[arg(long, value_parser = VALUES, hide_possible_values = true)]
    pub value: Option<String>,
    /// The weight of a site: `peak-rss` or `peak-requested`
    #[arg(long, default_value = "peak-rss", value_parser = WEIGHTS, hide_possible_values = true)]
    pub weight: String,
    #[command(flatten)]
    pub devices: DevicesChoice,
    /// Where to write the plan; `-` for standard output [default: the profile's name with .plan]
    #[arg(short, long, value_name = "PLAN")]
    pub output: Option<PathBuf>,
    /// Java programs: also write the plan as the guide file of a heap with colours (docs/java-heap.md), a line for each method and bytecode index
    /// that the plan does not put in the fastest tier; `-` for standard output. `isotherm run --java` needs no such file
    #[arg(long, value_name = "FILE")]
    pub guide: Option<PathBuf>,
}
