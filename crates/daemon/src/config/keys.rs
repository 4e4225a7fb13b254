//! [`Config`] has the keys of the daemon's configuration file: one structure for each TOML table, with the type of each value.
//!
//! `daemon.toml` has the default of each key and its full description. `checks` validates the values, and `config`
//! converts them into the types of the other crates.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_pipeline::Combine;
use serde::de::{Deserialize, Deserializer, Error};

/// The file with every key, its default and its comment.
pub const COMMENTED: &str = include_str!("../daemon.toml");

/// A value that the file gives as text with a unit: `"2MiB"`, `"1s"`, `"1%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// The cache of a watched process: a size, or `None` for what sysfs lists, written `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheChoice(pub Option<Bytes>);

impl FromStr for CacheChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self(None));
        }
        let bytes = text.parse::<Bytes>();
        bytes
            .map(|bytes| Self(Some(bytes)))
            .map_err(|error| format!("{error}; or auto"))
    }
}

macro_rules! section {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    };
}

section!(
    /// The whole file: its keys outside of tables, then its tables.
    Config {
        /// Length of an epoch.
        epoch: Written<Nanos>,
        /// Name of the epoch policy.
        policy: String,
        /// The tiers, and the size of the units that are moved.
        memory: Memory,
        /// Selection and filter of processes.
        processes: Processes,
        /// Sources of samples and accessed bits.
        sources: Sources,
        /// Limits of moves.
        moves: Moves,
        /// Memory nodes that may be empty, to save energy.
        energy: Energy,
        /// Compressed memory as the slow tier.
        compressed: Compressed,
        /// Limits of control groups, by name.
        groups: BTreeMap<String, Group>,
        /// Socket, metrics and state of the daemon.
        serve: Serve,
    }
);
section!(
    /// The tiers, and the size of the units that are moved.
    Memory {
        /// `detect`, `emulated`, `compressed`, or the path of a tiers file.
        tiers: String,
        /// Fast memory that watched processes may use: a size, or a share of the fast tier.
        fast: Written<Capacity>,
        /// Size of a unit, the address range that is ranked and moved as a whole.
        unit: Written<Bytes>,
        /// Epochs for which a new process keeps a fair share of the fast memory.
        fair_start: u32,
    }
);
section!(
    /// Selection and filter of processes.
    Processes {
        /// Process ids.
        pids: Vec<u32>,
        /// Owners of processes.
        users: Vec<User>,
        /// Patterns of program names or paths, with `*` for any text.
        programs: Vec<String>,
        /// Control groups (version 2); the groups below them are included.
        control_groups: Vec<String>,
        /// Whether child processes are selected too.
        children: bool,
        /// Which of the selected processes are watched.
        filter: FilterName,
        /// Most processes that the strict filter passes.
        strict_at_most: usize,
    }
);
section!(
    /// Sources of samples and accessed bits.
    Sources {
        /// Source of accessed bits.
        accessed_bits: BitsName,
        /// Source of trace samples.
        trace_samples: SamplesName,
        /// Timer samples per second and processor, at most.
        sample_hz: u32,
        /// Cache that a watched process has for itself.
        cache: Written<CacheChoice>,
        /// Upper limit of the rate of PMU samples, as a multiple of the default rate.
        pmu_rate: u32,
        /// How accessed bits and trace samples are combined into one rank of a unit.
        #[serde(with = "CombineName")]
        combine: Combine,
        /// Limit of the cost of watching: a share of one processor, for each processor that the watched processes use.
        budget: Written<Capacity>,
    }
);
section!(
    /// Limits of moves.
    Moves {
        /// Whether the daemon alone promotes, or the kernel too.
        mover: MoverName,
        /// Bytes moved per second, at most, on average over an epoch.
        rate: Written<Bytes>,
        /// Time spent on moves in each second, at most.
        time: Written<Nanos>,
        /// Whether a huge page of which little is hot is split, and its hot part moved alone.
        split: bool,
    }
);
section!(
    /// Memory nodes that may be empty, to save energy.
    Energy {
        /// Nodes whose memory may be taken offline.
        offline: Vec<u32>,
        /// Memory of the other nodes that stays free: a size, or a share of theirs.
        reserve: Written<Capacity>,
    }
);
section!(
    /// Compressed memory as the slow tier.
    Compressed {
        /// Share of the time that watched processes may lose to pages that come back.
        slowdown: Written<Capacity>,
        /// Memory of watched processes that stays whatever the budget allows: a size, or a share of theirs.
        keep: Written<Capacity>,
    }
);
section!(
    /// Limits of the processes of a control group, and of the groups below it without limits of their own.
    Group {
        /// Fast memory that other groups cannot take from it.
        floor: Option<Written<Bytes>>,
        /// Most fast memory that it may use; has precedence over the floor.
        cap: Option<Written<Bytes>>,
        /// Factor by which its accesses are multiplied in a comparison with those of other groups; 1 by default.
        priority: Option<f64>,
    }
);
section!(
    /// Socket, metrics and state of the daemon.
    Serve {
        /// Path of the socket for `isotherm status` and `isotherm top`.
        socket: PathBuf,
        /// Address and port of the Prometheus endpoint; empty for none.
        metrics: String,
        /// Directory of the state that a daemon needs when it is restarted after a crash.
        state: PathBuf,
    }
);

/// A user by name or number.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(untagged)]
pub enum User {
    /// By number.
    Number(u32),
    /// By name.
    Name(String),
}

/// Which of the selected processes are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterName {
    /// Processes that use at least 5 % of a processor or 10 % of memory (TMP, section III).
    Tmp,
    /// As `tmp`, but at most `strict_at_most` processes: first those that pass both conditions, then by memory.
    Strict,
    /// All selected processes.
    Off,
}

/// The source of accessed bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BitsName {
    /// Hint faults where the kernel promotes; else DAMON where available, else as `mappings` if trace samples deliver nothing.
    Auto,
    /// DAMON on the virtual addresses of each process (`vaddr`).
    Damon,
    /// DAMON on physical addresses (`paddr`), for all processes at once.
    #[serde(rename = "damon-paddr")]
    DamonPhysical,
    /// Accessed bits of whole mappings: cleared through `clear_refs`, read from `smaps`.
    Mappings,
    /// The kernel's idle page tracking (`/sys/kernel/mm/page_idle/bitmap`).
    #[serde(rename = "page-idle")]
    PageIdle,
    /// Page faults of slow memory that the kernel's NUMA balancing unmapped.
    #[serde(rename = "hint-faults")]
    HintFaults,
    /// No accessed bits.
    Off,
}

/// Whether the daemon alone promotes, or the kernel too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MoverName {
    /// The kernel too, where the daemon may set its promotion and no other program uses it.
    Auto,
    /// The daemon, at the end of an epoch.
    Pages,
    /// The kernel at the touch, under the daemon's settings, and the daemon.
    Kernel,
}

/// The source of trace samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplesName {
    /// The processor's own sampling where available, else the timer.
    Auto,
    /// A `cpu-clock` event; the instruction is decoded to find the data address.
    Timer,
    /// Intel: Processor Event-Based Sampling.
    Pebs,
    /// AMD: Instruction-Based Sampling.
    Ibs,
    /// Arm: Statistical Profiling Extension.
    Spe,
    /// No trace samples.
    Off,
}

/// How accessed bits and trace samples are combined into one rank.
#[derive(serde::Deserialize)]
#[serde(remote = "Combine", rename_all = "lowercase")]
enum CombineName {
    /// A sum in which each sample and each accessed bit is weighted by the number of accesses it represents.
    Balanced,
    /// The plain sum of both counts, as in TMP.
    Sum,
}
