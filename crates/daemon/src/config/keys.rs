//! The keys of the configuration file, with the type of each value. Their meaning stands in `daemon.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use isotherm_model::units::{Bytes, Capacity, Nanos};
use serde::de::{Deserialize, Deserializer, Error};

/// The file with every key, its default and what it means.
pub const COMMENTED: &str = include_str!("../daemon.toml");

/// A value that is written as text: `"2MiB"`, `"1s"`, `"1%"`.
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
    /// The file. The comments on each key stand in `daemon.toml`.
    Config {
        /// Length of an epoch.
        epoch: Written<Nanos>,
        /// Name of the epoch policy.
        policy: String,
        /// Tiers and units.
        memory: Memory,
        /// Which processes.
        processes: Processes,
        /// Where accesses are seen.
        sources: Sources,
        /// How much is moved.
        moves: Moves,
        /// What holds for control groups, by name.
        groups: BTreeMap<String, Group>,
        /// Where the daemon is asked.
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
    /// Which processes.
    Processes {
        /// By number.
        pids: Vec<u32>,
        /// By user.
        users: Vec<User>,
        /// By program.
        programs: Vec<String>,
        /// By control group.
        control_groups: Vec<String>,
        /// And what they start.
        children: bool,
        /// Which of them.
        filter: FilterName,
        /// Limit of the strict filter.
        strict_at_most: usize,
    }
);
section!(
    /// Where accesses are seen.
    Sources {
        /// Accessed bits.
        accessed_bits: BitsName,
        /// Trace samples.
        trace_samples: SamplesName,
        /// Samples of the timer a second.
        sample_hz: u32,
        /// Samples of a PMU, beside what it takes by default.
        pmu_rate: u32,
        /// How both become one rank.
        combine: CombineName,
        /// A share of one processor.
        budget: Written<Capacity>,
    }
);
section!(
    /// How much is moved.
    Moves {
        /// Bytes a second.
        rate: Written<Bytes>,
        /// Time of a second.
        time: Written<Nanos>,
    }
);
section!(
    /// What holds for a control group.
    Group {
        /// What it keeps.
        floor: Option<Written<Bytes>>,
        /// The most that it may have.
        cap: Option<Written<Bytes>>,
        /// What its accesses weigh.
        priority: Option<f64>,
    }
);
section!(
    /// Where the daemon is asked.
    Serve {
        /// Its socket.
        socket: PathBuf,
        /// Address of the metrics; empty for none.
        metrics: String,
        /// Its state.
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
    /// Likewise, and a limit.
    Strict,
    /// All.
    Off,
}

/// A source of accessed bits by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BitsName {
    /// The best there is.
    Auto,
    /// DAMON.
    Damon,
    /// DAMON, by frame.
    #[serde(rename = "damon-paddr")]
    DamonPhysical,
    /// By mappings.
    Mappings,
    /// The bitmap of idle pages.
    #[serde(rename = "page-idle")]
    PageIdle,
    /// None.
    Off,
}

/// A source of trace samples by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SamplesName {
    /// The best there is.
    Auto,
    /// A timer.
    Timer,
    /// Intel's.
    Pebs,
    /// AMD's.
    Ibs,
    /// Arm's.
    Spe,
    /// None.
    Off,
}

/// A way to add by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CombineName {
    /// As accesses.
    Balanced,
    /// As they are.
    Sum,
}
