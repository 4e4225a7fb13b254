//! [`Config`] is the daemon's configuration: the defaults, overwritten by the file, which is taken as a whole or not at all. Its methods
//! convert the values into the types of the other crates. An error in a value names the line, unless values conflict with each other. When
//! a running daemon reads the file again, the keys in `AT_START` keep their values.

mod checks;
mod keys;
mod overlay;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::{Bytes, Capacity};
use isotherm_observe::doctor;
use isotherm_observe::probe::KernelProbe;
use isotherm_observe::watch::candidates::{Filter, ProcessSelection};
use isotherm_observe::watch::watcher::AccessedBitChoice;
use isotherm_pipeline::{GroupLimit, Priority};
use isotherm_policy::epoch::LoadBalance;
use isotherm_sys::files::read_input_text;
use isotherm_topology::{caches, cpu_list};

use keys::Group;
pub use keys::{
    BitsName, COMMENTED, CacheChoice, Config, FilterName, MoverName, SamplesName, User, Written,
};
use overlay::{KeyPositions, check_keys, merge};

/// Largest configuration file that is read; one that names every control group of a large machine takes a tenth.
const FILE_BYTES: u64 = 4 << 20;

/// Valid priorities: beyond them, noise of one group would outweigh hot pages of another.
const PRIORITIES: std::ops::RangeInclusive<f64> = 0.01..=100.0;

impl Config {
    /// Reads a file over the defaults; without one, the defaults.
    ///
    /// # Errors
    /// The file cannot be read or is not valid; the sentence names the line.
    pub fn read(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Self::parse("");
        };
        let shown = path.display();
        let text = read_input_text(path, FILE_BYTES).with_context(|| {
            format!(
                "{shown}: cannot be read; `isotherm daemon --print-config` prints one to begin with"
            )
        })?;
        Self::parse(&text).with_context(|| shown.to_string())
    }

    /// Reads a text over the defaults.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn parse(text: &str) -> Result<Self> {
        let mut whole: toml::Table = COMMENTED.parse()?;
        // The text alone first, so that the line of an error is that of the file.
        let given: toml::Table = text.parse()?;
        let places = KeyPositions::of(text)?;
        check_keys(&places, &mut Vec::new(), &given, &whole)?;
        merge(&mut whole, given.clone());
        Self::checked(whole).or_else(|wrong| bail!("{}", places.tell(&given, &wrong)))
    }

    /// Makes the directory of the state.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_state(&self) -> Result<()> {
        let state = &self.serve.state;
        std::fs::create_dir_all(state).with_context(|| {
            format!(
                "{}: cannot be made; name another directory in serve.state",
                state.display()
            )
        })
    }

    /// The limits of control groups.
    ///
    /// # Errors
    /// A name that is not a control group's, or a priority out of range.
    pub fn groups(&self) -> Result<BTreeMap<String, GroupLimit>> {
        let limit = |(name, group): (&String, &Group)| {
            if !name.starts_with('/') {
                bail!(
                    "groups.\"{name}\": the name of a control group begins with /, as in /system.slice"
                );
            }
            let priority = group.priority.unwrap_or(1.0);
            if !PRIORITIES.contains(&priority) {
                bail!("groups.\"{name}\": priority = {priority}: a priority is from 0.01 to 100");
            }
            let limit = GroupLimit {
                cap: group.cap.map(|cap| cap.0),
                floor: group.floor.map_or(Bytes::ZERO, |floor| floor.0),
                // At most 100,000.
                priority: Priority((priority * f64::from(Priority::NORMAL.0)).round() as u32),
            };
            Ok((name.clone(), limit))
        };
        self.groups.iter().map(limit).collect()
    }

    /// Checks that all floors together fit the usable fast memory.
    ///
    /// # Errors
    /// They exceed it.
    pub fn check_floors(&self, fast: Bytes) -> Result<()> {
        let floors = self.groups.values().filter_map(|group| group.floor);
        let sum: Bytes = floors.map(|floor| floor.0).sum();
        if sum > fast {
            bail!(
                "groups: the floors of all groups are {} together, and memory.fast is {}: not all of them \
                 could be kept; lower some, or raise memory.fast",
                sum.exact(),
                fast.exact()
            );
        }
        Ok(())
    }

    /// The source of samples; None for no samples. `auto` tries the sources of this machine, so it
    /// is called once, at the start.
    pub fn samples(&self) -> Option<SourceKind> {
        match self.sources.trace_samples {
            SamplesName::Auto => Some(doctor::best_samples(Path::new("/"), &KernelProbe)),
            SamplesName::Timer => Some(SourceKind::Timer),
            SamplesName::Pebs => Some(SourceKind::Pebs),
            SamplesName::Ibs => Some(SourceKind::Ibs),
            SamplesName::Spe => Some(SourceKind::Spe),
            SamplesName::Off => None,
        }
    }

    /// Bytes of cache that a watched process has for itself; zero where they are not known or not to be estimated.
    pub fn cache(&self) -> Bytes {
        let root = Path::new("/");
        let known = || caches::expected(root, &cpu_list::online_cpus(root));
        let CacheChoice(given) = self.sources.cache.0;
        given.or_else(known).unwrap_or_default()
    }

    /// Address of the metrics; None for none.
    ///
    /// # Errors
    /// Not an address.
    pub fn metrics(&self) -> Result<Option<SocketAddr>> {
        let text = self.serve.metrics.as_str();
        if text.is_empty() {
            return Ok(None);
        }
        let address = text.parse().with_context(|| {
            format!("serve.metrics = \"{text}\": is no address such as 127.0.0.1:9464")
        })?;
        Ok(Some(address))
    }

    /// The processes that may be watched.
    ///
    /// # Errors
    /// A user that does not exist.
    pub fn selection(&self) -> Result<ProcessSelection> {
        let processes = &self.processes;
        let users: Result<Vec<u32>> = processes.users.iter().map(number_of).collect();
        Ok(ProcessSelection {
            pids: processes.pids.clone(),
            users: users?,
            programs: processes.programs.clone(),
            control_groups: processes.control_groups.clone(),
            children: processes.children,
        })
    }

    /// The filter of the selected processes.
    pub const fn filter(&self) -> Filter {
        match self.processes.filter {
            FilterName::Tmp => Filter::Tmp,
            FilterName::Strict => Filter::Strict(self.processes.strict_at_most),
            FilterName::Off => Filter::Off,
        }
    }

    /// The source of accessed bits. Where the kernel promotes and there are trace samples, `auto` takes its hint faults, which occur in any
    /// case.
    pub const fn bits(&self, kernel_promotes: bool) -> AccessedBitChoice {
        match self.sources.accessed_bits {
            BitsName::Auto
                if kernel_promotes && !matches!(self.sources.trace_samples, SamplesName::Off) =>
            {
                AccessedBitChoice::Source(SourceKind::HintFaults)
            }
            BitsName::Auto => AccessedBitChoice::Auto,
            BitsName::Damon => AccessedBitChoice::Source(SourceKind::Damon),
            BitsName::DamonPhysical => AccessedBitChoice::Source(SourceKind::DamonPhysical),
            BitsName::Mappings => AccessedBitChoice::Source(SourceKind::AccessedBits),
            BitsName::PageIdle => AccessedBitChoice::Source(SourceKind::PageIdle),
            BitsName::HintFaults => AccessedBitChoice::Source(SourceKind::HintFaults),
            BitsName::Off => AccessedBitChoice::Off,
        }
    }

    /// Whether the policy needs future accesses, which only a recording has.
    pub fn foresees(&self) -> bool {
        self.policy == "oracle"
    }

    /// Whether the policy needs the loads of both tiers.
    pub fn balances(&self) -> bool {
        self.policy == LoadBalance::NAME
    }

    /// Whether a source needs page frame numbers.
    pub const fn sees_frames(&self) -> bool {
        matches!(
            self.sources.accessed_bits,
            BitsName::PageIdle | BitsName::DamonPhysical
        )
    }

    /// Whether the kernel is to promote, if it can.
    pub fn lets_kernel_promote(&self) -> bool {
        match self.moves.mover {
            MoverName::Kernel => true,
            MoverName::Auto => !self.balances(),
            MoverName::Pages => false,
        }
    }

    /// The cost limit of watching, in millionths of one processor.
    pub fn budget_ppm(&self) -> u64 {
        self.sources.budget.0.of(Bytes(1_000_000)).0
    }

    /// The stall budget of compressed memory, as a share of the time.
    pub fn slowdown(&self) -> f64 {
        match self.compressed.slowdown.0 {
            Capacity::Share(share) => share,
            // Refused when the file is read.
            Capacity::Bytes(_) => 1.0,
        }
    }

    /// Keeps the values of the running daemon for keys that are read at the start only.
    pub fn keep_started(&mut self, started: &Self) {
        for (_, keep) in AT_START {
            keep(self, started);
        }
    }

    /// The keys that differ and are read at the start only.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let differs = |(key, keep): (&'static str, Keep)| {
            let mut kept = other.clone();
            keep(&mut kept, self);
            (kept != *other).then_some(key)
        };
        AT_START.into_iter().filter_map(differs).collect()
    }
}

/// Takes a key's value from the configuration of the running daemon.
type Keep = fn(&mut Config, &Config);

/// The names of keys or tables, each with what keeps its value.
macro_rules! kept {
    ($($($field:ident).+,)*) => {
        [$((
            stringify!($($field).+),
            |new: &mut Config, old: &Config| new.$($field).+ = old.$($field).+.clone(),
        )),*]
    };
}

/// The keys that are read at the start only.
const AT_START: [(&str, Keep); 14] = kept![
    policy,
    memory.tiers,
    memory.unit,
    sources.accessed_bits,
    sources.trace_samples,
    sources.sample_hz,
    sources.cache,
    sources.pmu_rate,
    sources.combine,
    moves.mover,
    moves.split,
    compressed.slowdown,
    energy,
    serve,
];

/// The number of a user, by `/etc/passwd`.
fn number_of(user: &User) -> Result<u32> {
    let name = match user {
        User::Number(number) => return Ok(*number),
        User::Name(name) => name,
    };
    let text = std::fs::read_to_string("/etc/passwd").context("/etc/passwd: cannot be read")?;
    let number = |line: &str| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    };
    text.lines().find_map(number).with_context(|| {
        format!("processes.users: there is no user \"{name}\" in /etc/passwd; a number works for users from elsewhere")
    })
}

#[cfg(test)]
mod tests;
