//! `SensitivityArgs` declares the flags of `isotherm sensitivity`, which measures the benefit of data objects in fast memory.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use isotherm_model::units::{Bytes, Nanos};

use crate::{input, time_limit};

/// Flags of `isotherm sensitivity`.
#[derive(Debug, Args)]
pub(crate) struct SensitivityArgs {
    /// The tiers, as for `isotherm plan`: `detect`, `emulated`, `emulated:PRESET`, `emulated:B:FACTOR,L:FACTOR`, `emulated:B:SHARE,L:FACTOR`
    /// (CoMerge's machines, such as B:0.2,L:5) or a tiers file. The fastest and the slowest are compared
    #[arg(long, value_name = "TIERS", default_value = "detect")]
    pub tiers: String,
    /// Rounds; in each every placement runs once
    #[arg(long, default_value_t = 3, conflicts_with = "predict", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// The longest that a run of the program may take, such as 10min: one that takes longer is ended, and its placement has no time
    #[arg(long, value_name = "TIME", value_parser = time_limit::read)]
    pub time_limit: Option<Nanos>,
    /// Data objects that are alone fast in turn: those with most predicted benefit, and of equal ones the largest
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub objects: u32,
    /// A profile of the program by the source timer [default: the program is recorded first, into a temporary directory]
    #[arg(long, value_name = "PROFILE")]
    pub profile: Option<PathBuf>,
    /// Keep the profile with the measured times in it, from which `isotherm colocate` takes them: that of --profile itself, or a copy
    /// of it; without --profile, the one that is recorded
    #[arg(short, long, value_name = "PROFILE", conflicts_with = "predict")]
    pub output: Option<PathBuf>,
    /// Replace another profile at --output
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Only predict, from the profile: nothing is timed, and with --profile no program is run
    #[arg(long)]
    pub predict: bool,
    /// Bytes of cache that the program has for itself, as for `isotherm record`: in the run that is recorded and, on machines emulated by
    /// time, in those that are timed [default: of the processors that it may use, as far as sysfs lists them]
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Bytes>)]
    pub cache: Option<Bytes>,
    /// Fail if the program's output differs between the timed runs
    #[arg(long, conflicts_with = "predict")]
    pub check_output: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page for a browser with the benefit of each object, measured and predicted, as a chart and a table
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
    /// The program to run and its arguments, after `--`
    #[arg(last = true, required_unless_present_all = ["predict", "profile"], value_name = "PROGRAM")]
    pub words: Vec<OsString>,
}
