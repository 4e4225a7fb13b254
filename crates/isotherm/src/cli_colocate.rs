//! `ColocateArgs` declares the flags of `isotherm colocate`, which divides fast memory among programs.

use std::path::PathBuf;

use clap::Args;
use isotherm_model::units::{Bytes, Nanos};

use crate::cli_tiers::TiersChoice;
use crate::flag_values::{SHARING_POLICIES, WEIGHTS};
use crate::known_values::one_of;
use crate::sharing::{self, Fairness, SharedObjects};
use crate::{input, time_limit};

/// Flags of `isotherm colocate`.
#[derive(Debug, Args)]
pub(crate) struct ColocateArgs {
    /// The profiles of the programs, one each; a program that runs twice is named twice
    #[arg(required = true, num_args = 1.., value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
    #[command(flatten)]
    pub tiers: TiersChoice,
    /// The policy: least-slowdown, or one of CoMerge's: equal-split, proportional-split, fair-merge, blind-merge, comerge, comerge-printed
    #[arg(long, default_value = "least-slowdown", value_parser = SHARING_POLICIES, hide_possible_values = true)]
    pub policy: String,
    /// What the policy shares: whole `sites`, as CoMerge does, or `chunks` of them [default: chunks for least-slowdown, sites for the
    /// others, and on tiers that place no parts]
    #[arg(long, value_name = "OBJECTS", value_parser = one_of(SharedObjects::ALL.map(|it| (it.word(), it))), hide_possible_values = true)]
    pub share: Option<SharedObjects>,
    /// The size of a chunk; larger where a program would have more than 4,096, smaller where a site's heat changes
    #[arg(long, value_name = "SIZE", default_value = "2MiB")]
    pub chunk: Bytes,
    /// The least that a program must get, in percent of the most that fast memory can gain it; may be given several times
    /// (policy least-slowdown)
    #[arg(long = "floor", value_name = "PROGRAM=PERCENT", value_parser = sharing::floor)]
    pub floors: Vec<(String, u32)>,
    /// The most that a program may be slowed, in percent of what equal split slows it, 100 to 1,000, or `none`; the floors come first
    /// (policy least-slowdown) [default: 125]
    #[arg(long, value_name = "PERCENT", value_parser = sharing::fairness)]
    pub fairness: Option<Fairness>,
    /// The weight of a site: `peak-rss` or `peak-requested`
    #[arg(long, default_value = "peak-rss", value_parser = WEIGHTS, hide_possible_values = true)]
    pub weight: String,
    /// Where to write the plans, each with the name of its program [default: beside each profile]
    #[arg(short, long, value_name = "DIRECTORY")]
    pub output: Option<PathBuf>,
    /// Run the recorded programs, too: each alone with all data fast, alone by its plan, and all together by their plans
    #[arg(long)]
    pub run: bool,
    /// With --run: how often everything runs
    #[arg(long, value_name = "N", default_value_t = 1, requires = "run", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// With --run: the longest that a program may run, such as 10min; one that takes longer ends all others and the command
    #[arg(long, value_name = "TIME", requires = "run", value_parser = time_limit::read)]
    pub time_limit: Option<Nanos>,
    /// With --run, on machines emulated by time: bytes of cache that each program has for itself, as for `isotherm record` [default: of the
    /// processors that it may use, as far as sysfs lists them]
    #[arg(long, value_name = "SIZE", requires = "run", value_parser = input::size::<Bytes>)]
    pub cache: Option<Bytes>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
