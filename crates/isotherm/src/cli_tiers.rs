//! `TiersChoice` declares the flags that choose the tiers, such as `--tiers` and `--fast`, for `isotherm plan`, `run`, `colocate` and
//! `tiers`. `TiersArgs` declares all flags of `isotherm tiers`, with those that set up and remove compressed memory.

use std::path::PathBuf;

use clap::Args;
use isotherm_model::units::{Bytes, Capacity, Nanos};

use crate::input;

/// Which tiers to use.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TiersChoice {
    /// `detect`, `emulated`, `emulated:PRESET` (cxl, nvm, remote, atmem-nvm, atmem-mcdram, tmp), `emulated:B:FACTOR,L:FACTOR` (how many times
    /// as long accesses wait for the slow tier's bandwidth and latency) or `emulated:B:SHARE,L:FACTOR` (its bandwidth as a share of the fast
    /// tier's, below 1, as in CoMerge; the machines of its table 1, such as B:0.2,L:5, have the factors measured there), each also with
    /// `,limit:5GiB/s` and `,fast-limit:10GiB/s` (slow and fast memory's bandwidth for the whole run, or with a name, as in
    /// `emulated:lab,limit:5GiB/s`, for all runs of that name), `compressed` (runs without a plan: cold memory is paged out to compressed
    /// memory or other swap), or a tiers file. With one kind of memory `detect` falls
    /// back to the emulated pair
    #[arg(long, value_name = "TIERS", default_value = "detect")]
    pub tiers: String,
    /// Fast memory: a size (4GiB) or a share (25%) of the profile's footprint; without a profile, of
    /// this machine's memory. With --tiers compressed the least that stays in memory, a share of the program's own
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Capacity>)]
    pub fast: Option<Capacity>,
    /// emulated:tmp: time between two protections of the slow tier
    #[arg(long, value_name = "TIME")]
    pub slow_period: Option<Nanos>,
    /// emulated:tmp: the delay of the first access to a slow page in a period
    #[arg(long, value_name = "TIME")]
    pub slow_access: Option<Nanos>,
}

impl TiersChoice {
    /// These tiers, without another flag.
    pub(crate) fn named(tiers: &str) -> Self {
        Self {
            tiers: tiers.to_owned(),
            ..Self::default()
        }
    }
}

/// Flags of `isotherm tiers`.
#[derive(Debug, Args)]
pub(crate) struct TiersArgs {
    #[command(flatten)]
    pub tiers: TiersChoice,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the tiers to a file that `--tiers` reads, in TOML; `-` for standard output, in place
    /// of the tables [default with --measure: tiers.toml]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure latency and bandwidth of every pair of processors and memory, and write the resulting
    /// tiers to a file
    #[arg(long, conflicts_with_all = CHOICES)]
    pub measure: bool,
    /// Tiers from the view of this node's processors, where memory of other sockets is slower
    #[arg(long, value_name = "NODE", conflicts_with_all = CHOICES)]
    pub from_node: Option<u32>,
    /// List the memory devices (DIMMs, CXL devices) and memory blocks, too: those that this machine tells, or those of a file, which is
    /// checked against it (docs/tiers.md)
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["measure", "output"])]
    pub devices: Option<Option<PathBuf>>,
    /// Show another machine: a directory with a copy of its /proc and /sys
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = CHOICES, conflicts_with = "measure")]
    pub root: Option<PathBuf>,
    #[command(flatten)]
    pub compressed: CompressedMemory,
}

/// The flags of [`TiersChoice`], which define the tiers; they conflict with flags that detect or measure them.
const CHOICES: [&str; 4] = ["tiers", "fast", "slow_period", "slow_access"];

/// The flags that set up compressed memory and remove it.
#[derive(Debug, Args)]
pub(crate) struct CompressedMemory {
    /// Set up swap of this size in compressed memory (zram), until the machine restarts; needs root
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Bytes>, group = "change", conflicts_with_all = SHOWING)]
    pub make_compressed: Option<Bytes>,
    /// With --make-compressed: the algorithm, such as lz4 or zstd [default: the kernel's]
    #[arg(long, value_name = "ALGORITHM", requires = "make_compressed")]
    pub compressor: Option<String>,
    /// Remove what --make-compressed set up; its pages come back to memory
    #[arg(long, group = "change", conflicts_with_all = SHOWING)]
    pub remove_compressed: bool,
    /// With --make-compressed and --remove-compressed: print the steps and take none
    #[arg(long, requires = "change")]
    pub dry_run: bool,
}

/// Flags of `isotherm tiers` that show or measure; those that set up memory conflict with them.
const SHOWING: [&str; 9] = [
    "tiers",
    "fast",
    "slow_period",
    "slow_access",
    "json",
    "output",
    "measure",
    "from_node",
    "devices",
];
