//! [`Cli`] and [`Command`] declare the commands of `isotherm` and their flags (those of some commands, and groups of flags, in `cli_*`), as
//! types that `clap` parses the command line into; help, man pages and completions are generated from the same types.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use isotherm_abi::accesses::PERIOD_MAX;
use isotherm_abi::config::Mover;
use isotherm_console::shell_quoting::SOCKET;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_sim::MonitorSource;

use crate::cli_attaching::Attaching;
use crate::cli_colocate::ColocateArgs;
use crate::cli_devices::FitBandwidthArgs;
use crate::cli_diff::DiffArgs;
use crate::cli_export::Exporting;
use crate::cli_isolation::Isolating;
use crate::cli_java::JavaHeapChoice;
use crate::cli_plan::PlanArgs;
use crate::cli_sensitivity::SensitivityArgs;
use crate::cli_tiers::{TiersArgs, TiersChoice};
use crate::flag_values::{
    ALL_POLICIES, GENERATORS, OPTIMIZE_AFTER, POWER_MODELS, RUN_POLICIES, SOURCES,
};
use crate::input::{self, FORMATS, InputFormat, Reading};
use crate::known_values::one_of;
use crate::optimize_after::OptimizeAfter;
use crate::power_models::PowerModels;
use crate::static_data::StaticPlacement;

/// The machine that `isotherm simulate` models by default.
pub(crate) const SIMULATED_TIERS: &str = "cxl";

/// The memory power model that `isotherm simulate` uses by default.
pub(crate) const SIMULATED_POWER: &str = "flat";

/// Decides which data is stored in which memory.
///
/// Isotherm measures which data of a program is hot, chooses a memory tier for each allocation site,
/// and places the data there. Try: isotherm record -o app.iso -- ./app
#[derive(Debug, Parser)]
#[command(
    name = "isotherm",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    /// Print only errors and warnings on standard error.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, in the order of a user's first steps.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show which features work on this machine, and what the others need
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the tiers: detected, measured, from a file, or the emulated pair
    Tiers(TiersArgs),
    /// List the allocation sites of a program that isotherm-cc compiled
    Sites(SitesArgs),
    /// Profile a program, or a process that runs already
    #[command(override_usage = "isotherm record [OPTIONS] <-- <PROGRAM>...|--pid <PID>>")]
    Record(RecordArgs),
    /// Make a profile from a recording of another tool
    Import(ImportArgs),
    /// Choose a tier for each site, from a profile
    Plan(PlanArgs),
    /// Run a program: by a plan, or profiling and placing in one run
    Run(RunArgs),
    /// Explain a plan's decision about a site
    Explain {
        /// The plan
        plan: PathBuf,
        /// A site: its identifier or the beginning of it (hexadecimal), or a part of its label
        site: String,
    },
    /// Share fast memory among programs: a plan for each, from their profiles
    Colocate(ColocateArgs),
    /// Time a program with each of its data objects alone in fast memory, beside the prediction from one profile
    Sensitivity(SensitivityArgs),
    /// Merge the profiles of a parallel program's ranks into one
    Merge(MergeArgs),
    /// Show a profile: one self-contained page, text or JSON
    Report(ReportArgs),
    /// Compare two profiles: what became hotter, larger and slower
    Diff(DiffArgs),
    /// Replay a profile or a trace under every policy, between first touch and the oracle
    Simulate(SimulateArgs),
    /// Fit the number of memory devices that a bandwidth needs, from runs of a load
    FitBandwidth(FitBandwidthArgs),
    /// Show the share of accesses served, by the size of fast memory
    Curve(CurveArgs),
    /// Time a program all slow, by first touch, guided and all fast, in turn
    Compare(CompareArgs),
    /// Watch the processes of this machine and keep their hot memory fast; programs stay unmodified
    Daemon(DaemonArgs),
    /// Show the state of the daemon
    Status(StatusArgs),
    /// Show the state of the daemon on one screen, updated each epoch
    Top {
        /// The daemon's socket
        #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
        socket: PathBuf,
    },
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory
    Man {
        /// The directory
        directory: PathBuf,
    },
}

/// A program and its arguments.
#[derive(Clone, Debug, Args)]
pub(crate) struct Program {
    /// The program to run and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub words: Vec<OsString>,
}

/// Flags of `isotherm sites`.
#[derive(Debug, Args)]
pub(crate) struct SitesArgs {
    /// The program or shared library; with --contexts, also a profile
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// List the calling contexts that the link distinguished; for a profile, the value of distinguishing each,
    /// for isotherm-cc --isotherm-profile
    #[arg(long)]
    pub contexts: bool,
}

/// The flags of [`Observing`] that a run by a plan, which is not observed, does not have.
const OBSERVING: [&str; 8] = [
    "epoch",
    "depth",
    "source",
    "frequency",
    "period",
    "stores",
    "cache_filter",
    "chunk",
];

/// How to observe a run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Observing {
    /// Length of an epoch
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub epoch: Nanos,
    /// Callers in a calling context, 1 to 8; of Python programs as many functions besides, 4 at most
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=8))]
    pub depth: u32,
    /// Profile sources, joined by commas [default: `instrumented` for a program that
    /// `isotherm-cc --profile` compiled, else the best that `isotherm doctor` finds]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = SOURCES, hide_possible_values = true)]
    pub source: Vec<SourceKind>,
    /// Samples a second and processor [default: 1000; runs without a plan choose the rate by their data, threads and
    /// the cost of a sample]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub frequency: Option<u32>,
    /// One access in N is sampled. Source `pebs`: of slow loads, 10007 by default; `ibs` and `spe`: of operations, 262144 by
    /// default; `instrumented`: of loads and stores, 1 counts each [default: 1024]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=PERIOD_MAX))]
    pub period: Option<u64>,
    /// Sources pebs, ibs and spe: count stores, too, by default only loads that missed the last cache
    #[arg(long)]
    pub stores: bool,
    /// Source `instrumented`: count only accesses that miss a direct-mapped cache of this size, one a thread; a power of two
    /// from 64B to 1MiB. Counts are then close to a cache's misses
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Bytes>)]
    pub cache_filter: Option<Bytes>,
    /// Source `timer`, and machines emulated by time: bytes of cache that the program has for itself. What they served is estimated from
    /// the samples, does not count as heat and is not slowed; `0B`: nothing [default: of the processors that it may use, as far as sysfs
    /// lists them]
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Bytes>)]
    pub cache: Option<Bytes>,
    /// Size of the chunks in which heat is kept; a power of two of at least 4 KiB
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = input::size::<Bytes>)]
    pub chunk: Bytes,
}

/// Flags of `isotherm record`.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where to write the profile
    #[arg(short, long, value_name = "PROFILE", default_value = "app.iso")]
    pub output: PathBuf,
    /// Replace a profile that is already there
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub observing: Observing,
    /// Java programs: bytes that are allocated from one sampled object to the next, on average
    #[arg(long, value_name = "SIZE", default_value = "512KiB", value_parser = input::size::<Bytes>)]
    pub allocation_interval: Bytes,
    /// No agent in Java programs: each of the sites is to be placed, which an unchanged virtual machine cannot
    #[arg(skip)]
    pub without_agent: bool,
    #[command(flatten)]
    pub isolating: Isolating,
    #[command(flatten)]
    pub attaching: Attaching,
    /// The program to run and its arguments, after `--`
    #[arg(last = true, required_unless_present = "pid", value_name = "PROGRAM")]
    pub words: Vec<OsString>,
}

/// Flags of `isotherm import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A recording of LLVM's MemProf, DAMON or damo (see docs/traces.md)
    #[arg(value_name = "FILE")]
    pub input: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
    /// The program that was recorded, and libraries of its own, each with this flag: their code is named by
    /// their debugging information. Needed for memprof-raw
    #[arg(long, value_name = "FILE")]
    pub program: Vec<PathBuf>,
    /// The program that the plan is for, built by isotherm-cc from the same sources: stacks become its sites
    /// [default: those of --program that isotherm-cc built]
    #[arg(long, value_name = "FILE", requires = "program")]
    pub sites: Option<PathBuf>,
    /// Where to write the profile
    #[arg(short, long, value_name = "PROFILE", default_value = "app.iso")]
    pub output: PathBuf,
    /// Replace a profile that is already there
    #[arg(long)]
    pub force: bool,
}

/// Flags of `isotherm run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Place by this plan; without it the program is profiled and placed in one run
    #[arg(long, value_name = "PLAN", conflicts_with = "TiersChoice", conflicts_with_all = OBSERVING)]
    pub plan: Option<PathBuf>,
    /// Write the recording of the run as a profile (runs without a plan)
    #[arg(short, long, value_name = "PROFILE", conflicts_with = "plan")]
    pub output: Option<PathBuf>,
    /// Replace a profile that is already there
    #[arg(long, requires = "output")]
    pub force: bool,
    /// Print the moves without making them (runs without a plan)
    #[arg(long, conflicts_with = "plan")]
    pub dry_run: bool,
    /// How data moves between memory nodes (runs without a plan): `kernel`, page migration from outside
    /// the program, or `staged`, copies by a thread inside it, faster but with the limits in
    /// docs/movers.md; the kernel moves the pages that this thread cannot move
    #[arg(long, value_name = "MOVER", default_value = "kernel", value_parser = one_of([("kernel", Mover::Kernel), ("staged", Mover::Staged)]), hide_possible_values = true, conflicts_with = "plan")]
    pub mover: Mover,
    /// When interrupted (SIGINT, SIGTERM, SIGHUP), or when child processes outlive the program, move
    /// pages back to their original memory nodes (runs without a plan)
    #[arg(long, conflicts_with = "plan")]
    pub undo: bool,
    /// Where the static data of the program and its libraries goes (runs by a plan): `plan`, each variable where the plan says,
    /// `fast` or `slow`, all of it there. What `plan` does not name stays where the kernel puts it [default: plan]
    #[arg(
        long = "static",
        value_name = "WHERE",
        hide_possible_values = true,
        requires = "plan"
    )]
    pub static_data: Option<StaticPlacement>,
    /// Profile the program for this time, then move its hottest data to fast memory once, part by part, and let it go on without
    /// samples; `first-iteration`: until its heat begins to repeat. Memory is fast in the order of first touch before. A share as --fast
    /// is then one of the program's data
    #[arg(long, value_name = "TIME", conflicts_with = "plan", value_parser = OPTIMIZE_AFTER, hide_possible_values = true)]
    pub optimize_after: Option<OptimizeAfter>,
    /// With --optimize-after: what chooses, a policy of `isotherm plan` [default: atmem]. Without it: move pages of the emulated machine
    /// each epoch, as the daemon does, by this epoch policy: payback, history, balance (hot pages are fast until fast memory is as slow
    /// under its load as slow memory; needs limits of both bandwidths), first-come (moves nothing, for comparison), or oracle (needs
    /// --profile). Memory is fast in the order of first touch while the fast tier has room. With none the program runs unobserved, and
    /// `isotherm daemon` may move its pages. With --tiers compressed payback or history, or tmo: the least recently used memory leaves until
    /// the program waits for as much as --slowdown says
    #[arg(long, value_name = "NAME", conflicts_with = "plan", value_parser = RUN_POLICIES, hide_possible_values = true)]
    pub policy: Option<String>,
    /// With --policy oracle: a profile of an earlier run of the program, made by `isotherm record`. The policy expects the same
    /// accesses of this run
    #[arg(
        long,
        value_name = "PROFILE",
        requires = "policy",
        conflicts_with = "optimize_after"
    )]
    pub profile: Option<PathBuf>,
    /// With --policy or --tiers compressed: size of a unit, the memory that is ranked and moved as a whole; a power of two from 4KiB to 1GiB
    /// [default: 2MiB]
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["plan", "optimize_after"], value_parser = input::page)]
    pub unit: Option<Bytes>,
    /// With --tiers compressed: the share of its time that the program may lose while it waits for pages that come back [default: 2%];
    /// 100% for no budget
    #[arg(long, value_name = "SHARE", value_parser = input::share, conflicts_with = "plan")]
    pub slowdown: Option<f64>,
    /// Keep hot data on as many memory devices as its bandwidth needs, by this model (`isotherm fit-bandwidth`), and undo a change that
    /// brings no bandwidth. The fast tier of the emulated machine is the first device, the slow tier all others. Epochs are 0.1 s at most, with
    /// --java 1 s
    #[arg(long, value_name = "MODEL", conflicts_with_all = ["plan", "policy", "optimize_after", "mover", "undo"])]
    pub remap: Option<PathBuf>,
    /// Hot data that one memory device has room for; more of it takes a further device at once, whatever its bandwidth
    #[arg(long, value_name = "SIZE", value_parser = input::device_capacity, requires = "remap")]
    pub device_capacity: Option<Bytes>,
    #[command(flatten)]
    pub java: JavaHeapChoice,
    /// Write the cost and the placement of the run to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    #[command(flatten)]
    pub tiers: TiersChoice,
    #[command(flatten)]
    pub observing: Observing,
    #[command(flatten)]
    pub program: Program,
}

/// Flags of `isotherm merge`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Where to write the merged profile
    #[arg(short, long, value_name = "PROFILE")]
    pub output: PathBuf,
    /// Replace a profile that is already there
    #[arg(long)]
    pub force: bool,
    /// The profiles, one a rank
    #[arg(required = true, value_name = "PROFILE")]
    pub profiles: Vec<PathBuf>,
}

/// Flags of `isotherm report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The profile
    pub profile: PathBuf,
    /// Show this plan beside it
    #[arg(long, value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Add the energy that a power model computes of the run, by tier and by site, with its data where the plan puts it: flat, ddr4, ddr5,
    /// lpddr4, hbm2, cxl, a file (docs/policies/dram-power.md), or two joined by a comma for fast and slow memory. Energy that the machine
    /// measured is shown without this flag
    #[arg(long, value_name = "MODEL", value_parser = POWER_MODELS, hide_possible_values = true)]
    pub power: Option<PowerModels>,
    /// Print text for a terminal
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub exporting: Exporting,
    /// Where to write it; `-` for standard output [default: the page to the profile's name with .html, text
    /// and JSON to standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Flags of `isotherm simulate`.
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// A profile, or a recording of another tool (see docs/traces.md)
    #[arg(required_unless_present = "generate")]
    pub input: Option<PathBuf>,
    /// Replay a generated trace instead: uniform, zipf, sliding-window, phases, scan-and-hot-set,
    /// stencil-sweep or graph-walk
    #[arg(long, value_name = "NAME", conflicts_with = "input", value_parser = GENERATORS, hide_possible_values = true)]
    pub generate: Option<String>,
    /// Seed of the generated trace
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "input")]
    pub seed: u64,
    /// Memory that the generated trace reaches, 64KiB to 1TiB; zipf, phases and graph-walk use up to 16
    /// bytes for each 4 KiB of it, 300 MB at most for graph-walk
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "16MiB",
        conflicts_with = "input",
        value_parser = input::footprint
    )]
    pub footprint: Bytes,
    /// Accesses of the generated trace
    #[arg(long, value_name = "N", default_value_t = 1 << 22, conflicts_with = "input", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub accesses: u64,
    #[command(flatten)]
    pub reading: Reading,
    /// The modelled machine: cxl, nvm, hbm or dimms; or `detect`, `emulated`, `emulated:PRESET` or a tiers file, as
    /// in other commands
    #[arg(long, value_name = "TIERS", default_value = SIMULATED_TIERS)]
    pub tiers: String,
    /// Fast memory: a size (4GiB) or a share of the footprint (25%) [default: 25%, or the
    /// capacity of the tiers]
    #[arg(long, value_name = "SIZE", conflicts_with = "sweep", value_parser = input::size::<Capacity>)]
    pub fast: Option<Capacity>,
    /// Simulate 1/2, 1/4, ... 1/128 of the footprint
    #[arg(long)]
    pub sweep: bool,
    /// A policy, some with a parameter: static-ratio=1:3, atmem=m:4,alpha:0.2,N:5,eq2:printed; may be
    /// given several times [default: all that suit the input]
    #[arg(long = "policy", value_name = "NAME", value_parser = ALL_POLICIES, hide_possible_values = true)]
    pub policies: Vec<String>,
    /// The policies' view of a trace: exact, accessed-bits, trace-samples, both (added, as TMP does) or
    /// balanced (the daemon's rank of both)
    #[arg(long, value_name = "SOURCE", default_value = "exact", value_parser = one_of(MonitorSource::ALL.map(|it| (it.word(), it))), hide_possible_values = true)]
    pub source: MonitorSource,
    /// Accesses of the program for which one recorded access stands [default: the accesses that the slow
    /// tier serves between two samples, if the profile has their interval; else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub accesses_per_sample: Option<u64>,
    /// Power model of the memory: flat (round numbers), ddr4, ddr5, lpddr4, hbm2 (ranks with power states), cxl (ddr5 behind a link), or a file
    /// (docs/policies/dram-power.md); two joined by a comma, as in ddr5,cxl, for fast and slow memory
    #[arg(long, value_name = "MODEL", default_value = SIMULATED_POWER, value_parser = POWER_MODELS, hide_possible_values = true)]
    pub power: PowerModels,
    /// With one power model other than flat: equal memory devices of the machine, which the footprint fills; hot data is packed on those of the
    /// fast tier, and a row `interleaved` has it on all [default: as many ranks as each tier needs, without that row]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub devices: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write a page for a browser with the hit rate by fast memory, as a chart and a table
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,
}

/// Flags of `isotherm curve`.
#[derive(Debug, Args)]
pub(crate) struct CurveArgs {
    /// A profile, or a recording of another tool (see docs/traces.md)
    pub input: PathBuf,
    #[command(flatten)]
    pub reading: Reading,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Flags of `isotherm compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The plan of the guided runs; its tiers are used for all runs
    pub plan: PathBuf,
    /// Rounds; in each every placement runs once
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
    /// Where the static data of the program and its libraries goes in the guided runs: `plan`, each variable where the plan says,
    /// `fast` or `slow`, all of it there. If the plan names static data, or it is `fast` or `slow`, the other placements have all of
    /// it in their tier [default: plan]
    #[arg(long = "static", value_name = "WHERE", hide_possible_values = true)]
    pub static_data: Option<StaticPlacement>,
    /// Machines emulated by time: bytes of cache that the program has for itself, as for `isotherm record` [default: of the processors
    /// that it may use, as far as sysfs lists them]
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Bytes>)]
    pub cache: Option<Bytes>,
    /// Fail if the program's output differs between runs
    #[arg(long)]
    pub check_output: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub program: Program,
}

/// Flags of `isotherm daemon`.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    /// The configuration file [default: /etc/isotherm/daemon.toml, if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Decide and print the moves without making them: a line for each process and direction
    #[arg(long, group = "dry")]
    pub dry_run: bool,
    /// Print each range that a dry run or a recording would move; on real tiers each call to the kernel
    #[arg(long, requires = "dry")]
    pub verbose: bool,
    /// End after one epoch and print its result
    #[arg(long)]
    pub once: bool,
    /// Put back what a daemon that was killed left changed, and end: settings of the kernel's own promotion (moves.mover), memory that is
    /// offline ([energy]). The next start does the same
    #[arg(long, conflicts_with_all = ["dry_run", "verbose", "once", "replay"])]
    pub restore: bool,
    /// Print a configuration file with every key, its default and its meaning
    #[arg(long)]
    pub print_config: bool,
    /// Watch a recording instead of this machine, in epochs and units of the configuration: print the
    /// moves that it would have made (see docs/traces.md)
    #[arg(long, value_name = "FILE", group = "dry", conflicts_with_all = ["dry_run", "once"])]
    pub replay: Option<PathBuf>,
    /// The recording's format: text, perf-script, perf-data, damon-trace, damo-record or memprof
    /// [default: detected from its content]
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS, hide_possible_values = true, requires = "replay", conflicts_with_all = ["dry_run", "once"])]
    pub format: Option<InputFormat>,
    /// Fast memory for the recording: a size (4GiB) or a share of all accessed memory (25%)
    /// [default: memory.fast]
    #[arg(long, value_name = "SIZE", value_parser = input::size::<Capacity>, requires = "replay", conflicts_with_all = ["dry_run", "once"])]
    pub fast: Option<Capacity>,
    /// Accesses for which one sample of the recording stands
    #[arg(long, value_name = "N", default_value_t = 1, requires = "replay", conflicts_with_all = ["dry_run", "once"], value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub accesses_per_sample: u64,
    /// Print the status of each epoch of the recording as a line of JSON
    #[arg(long, requires = "replay", conflicts_with_all = ["dry_run", "once"])]
    pub json: bool,
}

/// Flags of `isotherm status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The daemon's socket
    #[arg(long, value_name = "SOCKET", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Show the accesses of the last epochs by time and address, and their distribution over memory
    #[arg(long)]
    pub heat: bool,
    /// Show the tier of each range of each process's memory, and its accesses in the last epoch
    #[arg(long, conflicts_with_all = ["heat", "page"])]
    pub maps: bool,
    /// Show the ranges of this process only
    #[arg(long, value_name = "PID", requires = "maps")]
    pub pid: Option<u32>,
    /// Write the heat into a page for a browser
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub page: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory;

    #[test]
    fn the_help_of_the_period_names_its_default() {
        let command = Cli::command();
        let record = command.find_subcommand("record").expect("a command");
        let mut arguments = record.get_arguments();
        let period = arguments.find(|argument| argument.get_id() == "period");
        let help = period.and_then(clap::Arg::get_help).expect("a help text");
        let default = isotherm_abi::accesses::DEFAULT_PERIOD;
        let wanted = format!("[default: {default}]");
        assert!(help.to_string().ends_with(&wanted), "{help}");
    }

    /// The values that completions offer for a flag of a command.
    fn offered(command: &str, flag: &str) -> Vec<String> {
        let whole = Cli::command();
        let command = whole.find_subcommand(command).expect("a command");
        let mut arguments = command.get_arguments();
        let known = arguments.find(|argument| argument.get_long() == Some(flag));
        let values = known.expect("a flag").get_possible_values();
        values
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect()
    }

    #[test]
    fn flags_with_a_fixed_set_of_values_offer_each_word_to_completions() {
        for (command, flag, words) in [
            (
                "plan",
                "policy",
                &["thermos", "knapsack", "static-ratio"][..],
            ),
            ("plan", "value", &["accesses", "bandwidth", "latency"]),
            ("plan", "weight", &["peak-rss", "peak-requested"]),
            ("simulate", "policy", &["history", "thermos", "atmem"]),
            ("simulate", "generate", &["zipf", "graph-walk"]),
            ("simulate", "source", &["exact", "both"]),
            ("simulate", "power", &["flat", "ddr5"]),
            ("simulate", "format", &["profile", "perf-data"]),
            ("import", "format", &["memprof-raw"]),
            ("daemon", "format", &["damon-trace"]),
            ("record", "source", &["timer", "instrumented"]),
            ("run", "source", &["pebs"]),
            ("run", "mover", &["kernel", "staged"]),
            ("run", "static", &["plan", "fast", "slow"]),
            ("compare", "static", &["plan", "fast", "slow"]),
            (
                "run",
                "policy",
                &["history", "payback", "balance", "first-come", "none"],
            ),
        ] {
            let offered = offered(command, flag);
            for word in words {
                assert!(
                    offered.iter().any(|it| it == word),
                    "{command} --{flag}: {offered:?}"
                );
                let given = ["isotherm", command, &format!("--{flag}={word}")];
                let parsed = Cli::command()
                    .ignore_errors(true)
                    .try_get_matches_from(given);
                assert!(parsed.is_ok(), "{command} --{flag} {word}");
            }
        }
        let mut script = Vec::new();
        let mut whole = Cli::command();
        clap_complete::generate(
            clap_complete::Shell::Bash,
            &mut whole,
            "isotherm",
            &mut script,
        );
        let script = String::from_utf8_lossy(&script);
        for words in ["thermos thermos-density knapsack", "uniform zipf"] {
            assert!(script.contains(words), "{words}");
        }
    }

    #[test]
    fn a_policy_with_a_parameter_is_taken_beside_the_words_that_are_offered() {
        let words = [
            "isotherm",
            "plan",
            "app.iso",
            "--policy",
            "static-ratio=1:3",
        ];
        assert!(Cli::command().try_get_matches_from(words).is_ok());
    }

    #[test]
    fn the_help_of_plan_names_every_policy_and_no_other() {
        let command = Cli::command();
        let plan = command.find_subcommand("plan").expect("a command");
        let mut arguments = plan.get_arguments();
        let policy = arguments
            .find(|argument| argument.get_id() == "policy")
            .expect("a flag");
        let help = policy.get_help().expect("a help text").to_string();
        let listed = help.trim_start_matches("The policy:").split(',');
        let listed: Vec<&str> = listed
            .map(|name| name.trim().split('[').next().unwrap_or_default())
            .collect();
        let known = isotherm_policy::names().chain([isotherm_policy::ATMEM]);
        assert_eq!(listed, known.collect::<Vec<_>>());
    }
}
