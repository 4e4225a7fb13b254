//! The keys of the configuration file, with the type of each value. `daemon.toml` documents them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use isotherm_model::units::{Bytes, Capacity, Nanos};
use serde::de::{Deserialize, Deserializer, Error};

/// The file with every key, its default and its comment.
pub const COMMENTED: &str = include_str!("../daemon.toml");

/// A value with a text form: `"2MiB"`, `"1s"`, `"1%"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written<T>(pub T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
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
    /// The file. `daemon.toml` documents each key.
    Config {
        /// Length of an epoch.
        epoch: Written<Nanos>,
        /// Name of the epoch policy.
        policy: String,
        /// Tiers and units.
        memory: Memory,
        /// Selection and filter of processes.
        processes: Processes,
        /// Sources of samples and accessed bits.
        sources: Sources,
        /// Limits of moves.
        moves: Moves,
        /// Limits of control groups, by name.
        groups: BTreeMap<String, Group>,
        /// Socket, metrics and state of the daemon.
        serve: Serve,
    }
);
section!(
    /// Tiers and units.
    Memory {
        /// `detect` or a file.
        tiers: String,
        /// A size, or a share of the fast tier.
        fast: Written<Capacity>,
        /// Size of a unit.
        unit: Written<Bytes>,
    }
);
section!(
    /// Selection and filter of processes.
    Processes {
        /// Process ids.
        pids: Vec<u32>,
        /// Names or numbers of users.
        users: Vec<User>,
        /// Patterns of programs.
        programs: Vec<String>,
        /// Control groups.
        control_groups: Vec<String>,
        /// Whether child processes are selected too.
        children: bool,
        /// The filter of selected processes.
        filter: FilterName,
        /// Limit of the strict filter.
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
        /// Timer samples a second and processor.
        sample_hz: u32,
        /// PMU samples, as a multiple of the default rate.
        pmu_rate: u32,
        /// How both sources add up to one rank.
        combine: CombineName,
        /// Cost limit: a share of one processor.
        budget: Written<Capacity>,
    }
);
section!(
    /// Limits of moves.
    Moves {
        /// Bytes moved a second.
        rate: Written<Bytes>,
        /// Time spent on moves in each second.
        time: Written<Nanos>,
    }
);
section!(
    /// Limits of a control group.
    Group {
        /// Fast memory that it keeps.
        floor: Option<Written<Bytes>>,
        /// Most fast memory that it may have.
        cap: Option<Written<Bytes>>,
        /// Weight of its accesses.
        priority: Option<f64>,
    }
);
section!(
    /// Socket, metrics and state of the daemon.
    Serve {
        /// Path of its socket.
        socket: PathBuf,
        /// Address of the metrics; empty for none.
        metrics: String,
        /// Directory of its state.
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

/// A filter by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterName {
    /// 5 % of a processor or 10 % of memory.
    Tmp,
    /// As `tmp`, with a limit on their number.
    Strict,
    /// No filter.
    Off,
}

/// A source of accessed bits by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BitsName {
    /// The best available source.
    Auto,
    /// DAMON.
    Damon,
    /// DAMON by frame.
    #[serde(rename = "damon-paddr")]
    DamonPhysical,
    /// Mappings.
    Mappings,
    /// The bitmap of idle pages.
    #[serde(rename = "page-idle")]
    PageIdle,
    /// No accessed bits.
    Off,
}

/// A source of trace samples by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplesName {
    /// The best available source.
    Auto,
    /// A timer.
    Timer,
    /// Intel's PEBS.
    Pebs,
    /// AMD's IBS.
    Ibs,
    /// Arm's SPE.
    Spe,
    /// No trace samples.
    Off,
}

/// A method to combine both sources, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CombineName {
    /// Weighted by the accesses that they stand for.
    Balanced,
    /// Unweighted.
    Sum,
}
