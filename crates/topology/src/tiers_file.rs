//! Reads and prints the tiers file ([`TiersFile`]; TOML, fastest tier first) with the tiers of a machine and the measurements behind them:
//! `isotherm tiers -o` or the user writes it, and the commands' `--tiers` option or the daemon's `memory.tiers` names it. [`FileError`] and
//! the readers of values serve the devices file, too.
//!
//! ```toml
//! [[tier]]
//! name = "fast"
//! nodes = [0]                 # or: emulated = "fast"
//! capacity = "16GiB"          # optional: all memory of the nodes without it
//! latency = "90ns"            # optional, like all lines below it
//! read-bandwidth = "100GB/s"
//! write-bandwidth = "80GB/s"
//! load = ["1GB/s", "60GB/s"]  # optional: latencies under load
//! loaded-latency = ["90ns", "140ns"]
//! placement = "preferred"     # spills when full; or "bind", which fails
//!
//! [[tier]]
//! name = "slow"
//! nodes = [2]                 # or: emulated = "slow", and its costs:
//! # emulation = { latency = "2.3", bandwidth = "2", migrate = "5us", limit = "5GiB/s", fast-limit = "10GiB/s", machine = "lab" }
//! # emulation = { period = "100ms", access = "10us", hot = "13us", migrate = "50us" }
//!
//! [[measured]]                # results of `isotherm tiers --measure`, one a pair of nodes
//! cpu-node = 0
//! memory-node = 2
//! latency = "260ns"
//! threads = [1, 2, 4]         # numbers of threads, one for each bandwidth below
//! read = ["9GB/s", "18GB/s", "25GB/s"]
//! write = ["5GB/s", "10GB/s", "12GB/s"]
//! triad = ["8GB/s", "15GB/s", "20GB/s"]
//! load = ["1GB/s", "12GB/s", "24GB/s"]
//! loaded-latency = ["260ns", "280ns", "450ns"]
//! ```
//!
//! `docs/tiers.md` describes the file for its authors.

mod write;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use isotherm_model::emulation::{Emulation, PageTrapCosts, TimeCosts};
use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::shared_bandwidth::SharedBandwidth;
use isotherm_model::tier::{Placement, Tier, TierKind, Tiers};
use isotherm_model::units::Bytes;
use isotherm_sys::files::read_input_text;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::measure::{Pair, Rates};
pub use write::print;

/// Why a tiers or a devices file was rejected: `machine.toml:4: "12" is not a size ...`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct FileError {
    /// The file, and the line where it has one.
    place: String,
    why: String,
}

/// The contents of a tiers file.
#[derive(Clone, Debug, PartialEq)]
pub struct TiersFile {
    /// The tiers, which programs use.
    pub tiers: Tiers,
    /// The measurements behind the tiers, for users.
    pub measured: Vec<Pair>,
}

/// Largest tiers file read. Sixty-four nodes with processors and sixty-four with memory, measured
/// with ten numbers of threads, take two megabytes.
const FILE_AT_MOST: u64 = 16 << 20;

/// A size, time, bandwidth or word, with its place where it was read.
pub(crate) type Text = Spanned<String>;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct FileTables {
    #[serde(default)]
    tier: Vec<Spanned<TierTable>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Spanned<PairTable>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PairTable {
    cpu_node: u32,
    memory_node: u32,
    latency: Text,
    threads: Vec<u32>,
    read: Vec<Text>,
    write: Vec<Text>,
    triad: Vec<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    load: Vec<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    loaded_latency: Vec<Text>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TierTable {
    name: String,
    nodes: Option<Vec<u32>>,
    emulated: Option<Text>,
    capacity: Option<Text>,
    latency: Option<Text>,
    read_bandwidth: Option<Text>,
    write_bandwidth: Option<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    load: Vec<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    loaded_latency: Vec<Text>,
    placement: Option<Text>,
    reason: Option<String>,
    emulation: Option<EmulationTable>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EmulationTable {
    latency: Option<Text>,
    bandwidth: Option<Text>,
    period: Option<Text>,
    access: Option<Text>,
    hot: Option<Text>,
    migrate: Option<Text>,
    limit: Option<Text>,
    fast_limit: Option<Text>,
    machine: Option<Text>,
}

/// Reads a tiers file.
///
/// # Errors
/// It cannot be read, or its contents are invalid; the error names the line.
pub fn read_file(path: &Path) -> Result<TiersFile, FileError> {
    let shown = path.display().to_string();
    parse(&text_of(path)?, &shown)
}

/// The text of a file that describes the machine.
pub(crate) fn text_of(path: &Path) -> Result<String, FileError> {
    read_input_text(path, FILE_AT_MOST).map_err(|error| FileError {
        place: path.display().to_string(),
        why: error.to_string(),
    })
}

/// Parses the text of a tiers file; `path` is for errors.
///
/// # Errors
/// As [`read_file`].
pub fn parse(text: &str, path: &str) -> Result<TiersFile, FileError> {
    let at = Place { text, path };
    let file: FileTables = at.tables()?;
    let mut tiers = Vec::with_capacity(file.tier.len());
    for tier in file.tier {
        let start = tier.span().start;
        tiers.push(at.tier(start, tier.into_inner())?);
    }
    let mut measured = Vec::with_capacity(file.measured.len());
    for pair in file.measured {
        let start = pair.span().start;
        measured.push(at.pair(start, pair.into_inner())?);
    }
    let tiers = Tiers::new(tiers).map_err(|error| at.error(None, error.to_string()))?;
    Ok(TiersFile { tiers, measured })
}

/// Text and path of the current file, for errors.
pub(crate) struct Place<'a> {
    pub(crate) text: &'a str,
    pub(crate) path: &'a str,
}

impl Place<'_> {
    /// The tables of the file.
    pub(crate) fn tables<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        toml::from_str(self.text).map_err(|error| {
            let start = error.span().map(|span| span.start);
            self.error(start, error.message().to_owned())
        })
    }

    pub(crate) fn error(&self, start: Option<usize>, why: String) -> FileError {
        let mut place = self.path.to_owned();
        if let Some(start) = start {
            let before = self.text.as_bytes().get(..start).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            place += &format!(":{line}");
        }
        FileError { place, why }
    }

    pub(crate) fn value<T: FromStr<Err: fmt::Display>>(
        &self,
        text: Option<Text>,
    ) -> Result<Option<T>, FileError> {
        let parse = |text: Text| {
            let value = text.as_ref().parse();
            value.map_err(|error: T::Err| self.error(Some(text.span().start), error.to_string()))
        };
        text.map(parse).transpose()
    }

    fn bandwidth(&self, text: Text) -> Result<u64, FileError> {
        let bytes = text.as_ref().trim().strip_suffix("/s");
        match bytes.map(str::parse::<Bytes>) {
            Some(Ok(bytes)) => Ok(bytes.0),
            _ => {
                let why = format!("\"{}\" is not a bandwidth such as 25GB/s", text.as_ref());
                Err(self.error(Some(text.span().start), why))
            }
        }
    }

    fn loaded(
        &self,
        start: usize,
        loads: Vec<Text>,
        latencies: Vec<Text>,
    ) -> Result<Vec<LoadPoint>, FileError> {
        if loads.len() != latencies.len() {
            let why = "`load` and `loaded-latency` must be of one length";
            return Err(self.error(Some(start), why.to_owned()));
        }
        let points = loads.into_iter().zip(latencies);
        let point = |(load, latency)| {
            Ok(LoadPoint {
                bandwidth: self.bandwidth(load)?,
                latency: self.value(Some(latency))?.unwrap_or_default(),
            })
        };
        points.map(point).collect()
    }

    fn pair(&self, start: usize, read: PairTable) -> Result<Pair, FileError> {
        let lengths = [&read.read, &read.write, &read.triad].map(Vec::len);
        if lengths != [read.threads.len(); 3] {
            let why = "`threads`, `read`, `write` and `triad` must be of one length";
            return Err(self.error(Some(start), why.to_owned()));
        }
        let latency = self.value(Some(read.latency))?.unwrap_or_default();
        let bandwidths = read.read.into_iter().zip(read.write).zip(read.triad);
        let rates = read.threads.into_iter().zip(bandwidths);
        let rates = rates.map(|(threads, ((read, write), triad))| {
            Ok(Rates {
                threads,
                read: self.bandwidth(read)?,
                write: self.bandwidth(write)?,
                triad: self.bandwidth(triad)?,
            })
        });
        Ok(Pair {
            cpu_node: read.cpu_node,
            memory_node: read.memory_node,
            latency,
            rates: rates.collect::<Result<_, FileError>>()?,
            loaded: self.loaded(start, read.load, read.loaded_latency)?,
        })
    }

    fn tier(&self, start: usize, read: TierTable) -> Result<Tier, FileError> {
        let wrong = |why: &str| self.error(Some(start), format!("tier \"{}\": {why}", read.name));
        let has_emulation = read.emulation.is_some();
        let kind = match (&read.nodes, &read.emulated) {
            (Some(nodes), None) if nodes.is_empty() => return Err(wrong("it has no nodes")),
            (Some(nodes), None) => TierKind::Nodes(nodes.clone()),
            (None, Some(half)) => match half.as_ref().as_str() {
                "fast" => TierKind::EmulatedFast,
                "slow" => {
                    TierKind::EmulatedSlow(self.emulation(read.emulation.unwrap_or_default())?)
                }
                _ => return Err(wrong("`emulated` is \"fast\" or \"slow\"")),
            },
            _ => return Err(wrong("it has either `nodes` or `emulated`")),
        };
        if has_emulation && !matches!(kind, TierKind::EmulatedSlow(_)) {
            return Err(wrong(
                "`emulation` is for the slow half of the emulated pair",
            ));
        }
        if matches!(&kind, TierKind::EmulatedSlow(Emulation::PageTrap(costs)) if costs.is_never_paid())
        {
            return Err(wrong(
                "with a `period` of zero it would never be slowed; give a time above zero",
            ));
        }
        if let TierKind::EmulatedSlow(costs) = &kind
            && let Some((name, number, most)) = costs.out_of_range()
        {
            return Err(wrong(&format!(
                "`{name}` of {number} is out of range; give at most {most}"
            )));
        }
        let placement = match read.placement.as_ref().map(|it| it.as_ref().as_str()) {
            None | Some("preferred") => Placement::Preferred,
            Some("bind") => Placement::Bind,
            Some(_) => return Err(wrong("`placement` is \"preferred\" or \"bind\"")),
        };
        let reason = read
            .reason
            .unwrap_or_else(|| format!("as {} says", self.path));
        let bandwidth = |text: Option<_>| text.map(|text| self.bandwidth(text)).transpose();
        Ok(Tier {
            name: read.name,
            kind,
            capacity: self.value(read.capacity)?.unwrap_or(Bytes(u64::MAX)),
            placement,
            latency: self.value(read.latency)?,
            read_bandwidth: bandwidth(read.read_bandwidth)?,
            write_bandwidth: bandwidth(read.write_bandwidth)?,
            loaded: self.loaded(start, read.load, read.loaded_latency)?,
            reason,
        })
    }

    fn shared_bandwidth(
        &self,
        fast: Option<Text>,
        slow: Option<Text>,
        machine: Option<Text>,
    ) -> Result<Option<SharedBandwidth>, FileError> {
        let place = machine.as_ref().map(|machine| machine.span().start);
        let machine = self.value(machine)?;
        let shared = SharedBandwidth::new(self.value(fast)?, self.value(slow)?, machine);
        if shared.is_none() && machine.is_some() {
            let why = "the programs of a machine share nothing without a `limit` or a `fast-limit`";
            return Err(self.error(place, why.to_owned()));
        }
        Ok(shared)
    }

    /// An emulation by page trap where one of its keys is given, with the costs of TMP's paper for missing keys; else by time,
    /// with the costs of the preset `cxl` for missing keys.
    fn emulation(&self, read: EmulationTable) -> Result<Emulation, FileError> {
        let is_trap = read.period.is_some() || read.access.is_some() || read.hot.is_some();
        if !is_trap {
            let default = TimeCosts::CXL;
            return Ok(Emulation::Time(TimeCosts {
                latency: self.value(read.latency)?.unwrap_or(default.latency),
                bandwidth: self.value(read.bandwidth)?.unwrap_or(default.bandwidth),
                migrate: self.value(read.migrate)?.unwrap_or(default.migrate),
                shared: self.shared_bandwidth(read.fast_limit, read.limit, read.machine)?,
            }));
        }
        let by_time = [
            read.latency,
            read.bandwidth,
            read.limit,
            read.fast_limit,
            read.machine,
        ];
        if let Some(time) = by_time.into_iter().flatten().next() {
            let why = "an emulation is by time (`latency`, `bandwidth`, `limit`) or by page trap (`period`, `access`, `hot`), not both";
            return Err(self.error(Some(time.span().start), why.to_owned()));
        }
        let default = PageTrapCosts::PAPER;
        Ok(Emulation::PageTrap(PageTrapCosts {
            period: self.value(read.period)?.unwrap_or(default.period),
            access: self.value(read.access)?.unwrap_or(default.access),
            hot: self.value(read.hot)?.unwrap_or(default.hot),
            migrate: self.value(read.migrate)?.unwrap_or(default.migrate),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use isotherm_model::tier::{Placement, TierKind};
    use isotherm_model::units::Bytes;
    use isotherm_model::units::Nanos;

    #[test]
    fn a_file_is_read_with_its_units() {
        let text = "[[tier]]\nname = 'near'\nnodes = [0, 1]\ncapacity = '4GiB'\nlatency = '90ns'\n\
                    read-bandwidth = '100GB/s'\nplacement = 'bind'\n\n[[tier]]\nname = 'far'\nnodes = [2]\n";
        let tiers = parse(text, "m.toml").expect("reads").tiers;
        let near = &tiers.all()[0];
        assert_eq!(near.kind, TierKind::Nodes(vec![0, 1]));
        assert_eq!(
            (near.capacity, near.latency),
            (Bytes(4 << 30), Some(Nanos(90)))
        );
        assert_eq!(near.read_bandwidth, Some(100_000_000_000));
        assert_eq!(near.placement, Placement::Bind);
        assert_eq!(tiers.all()[1].capacity, Bytes(u64::MAX));
    }

    #[test]
    fn an_error_names_file_and_line() {
        let cases = [
            (
                "[[tier]]\nname = 'a'\nnodes = [0]\ncapacity = '12'\n",
                "m.toml:4: ",
                "12",
            ),
            ("[[tier]]\nname = 'a'\nnodez = [0]\n", "m.toml:3: ", "nodez"),
            ("[[tier]]\nname = 'a'\n", "m.toml:1: ", "either"),
            (
                "\n[[tier]]\nname = 'a'\nnodes = [0]\nread-bandwidth = '5GB'\n",
                "m.toml:5: ",
                "bandwidth",
            ),
            (
                "[[tier]]\nname = 'a'\nemulated = 'medium'\n",
                "m.toml:1: ",
                "emulated",
            ),
            (
                "[[tier]]\nname = 'a'\nemulated = 'slow'\nemulation = { period = '0s' }\n",
                "m.toml:1: ",
                "never be slowed",
            ),
            ("[[tier]\n", "m.toml:1: ", ""),
            ("", "m.toml: ", "no tier"),
            (
                "[[tier]]\nname = 'a'\nemulated = 'fast'\n",
                "m.toml: ",
                "pair",
            ),
            (
                "[[tier]]\nname = 'a'\nnodes = [0]\n[[measured]]\ncpu-node = 0\nmemory-node = 0\n\
                 latency = '1ns'\nthreads = [1]\nread = []\nwrite = ['1B/s']\ntriad = ['1B/s']\n",
                "m.toml:4: ",
                "one length",
            ),
        ];
        for (text, start, word) in cases {
            let error = parse(text, "m.toml").expect_err(text).to_string();
            assert!(error.starts_with(start) && error.contains(word), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(\\[\\[tier\\]\\]|name = 'a'|nodes = \\[0\\]|capacity = |'1GiB'|\n|.){0,40}") {
            let _ = parse(&text, "x");
        }
    }
}
