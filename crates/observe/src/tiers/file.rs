//! The tiers file: TOML, fastest tier first.
//!
//! ```toml
//! [[tier]]
//! name = "fast"
//! nodes = [0]                 # or: emulated = "fast"
//! capacity = "16GiB"          # all that the nodes have, where it is left out
//! latency = "90ns"            # optional, like the next three
//! read-bandwidth = "100GB/s"
//! write-bandwidth = "80GB/s"
//! placement = "preferred"     # spills when full; or "bind", which fails
//!
//! [[tier]]
//! name = "slow"
//! nodes = [2]                 # or: emulated = "slow", and its costs:
//! # emulation = { period = "100ms", access = "10us", hot = "13us", migrate = "50us" }
//! ```

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use isotherm_model::tier::{Emulation, Placement, Tier, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use toml::Spanned;

/// Why a tiers file was refused: `machine.toml:4: "12" is not a size ...`.
#[derive(Debug, PartialEq, Eq)]
pub struct FileError {
    path: String,
    line: Option<usize>,
    why: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.why),
            None => write!(f, "{}: {}", self.path, self.why),
        }
    }
}

impl std::error::Error for FileError {}

/// Largest tiers file read: a description of a thousand nodes is far smaller.
const FILE_AT_MOST: u64 = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadFile {
    #[serde(default)]
    tier: Vec<Spanned<ReadTier>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReadTier {
    name: String,
    nodes: Option<Vec<u32>>,
    emulated: Option<Spanned<String>>,
    emulation: Option<ReadEmulation>,
    capacity: Option<Spanned<String>>,
    latency: Option<Spanned<String>>,
    read_bandwidth: Option<Spanned<String>>,
    write_bandwidth: Option<Spanned<String>>,
    placement: Option<Spanned<String>>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadEmulation {
    period: Option<Spanned<String>>,
    access: Option<Spanned<String>>,
    hot: Option<Spanned<String>>,
    migrate: Option<Spanned<String>>,
}

#[derive(Serialize)]
struct WriteFile {
    tier: Vec<WriteTier>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WriteTier {
    name: String,
    nodes: Option<Vec<u32>>,
    emulated: Option<&'static str>,
    capacity: Option<String>,
    latency: Option<String>,
    read_bandwidth: Option<String>,
    write_bandwidth: Option<String>,
    placement: &'static str,
    reason: String,
    emulation: Option<WriteEmulation>,
}

#[derive(Serialize)]
struct WriteEmulation {
    period: String,
    access: String,
    hot: String,
    migrate: String,
}

/// Reads a tiers file.
///
/// # Errors
/// It cannot be read, or says something that is no tiers; the error names the line.
pub fn read_file(path: &Path) -> Result<Tiers, FileError> {
    let wrong = |why: String| FileError {
        path: path.display().to_string(),
        line: None,
        why,
    };
    let metadata = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > FILE_AT_MOST {
        return Err(wrong("it is not a text file of at most 1 MiB".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    parse(&text, &path.display().to_string())
}

/// Writes a tiers file that [`read_file`] reads back the same.
///
/// # Errors
/// It cannot be written.
pub fn write_file(path: &Path, tiers: &Tiers) -> std::io::Result<()> {
    std::fs::write(path, print(tiers))
}

/// Reads the text of a tiers file; `path` is for errors.
///
/// # Errors
/// As [`read_file`].
pub fn parse(text: &str, path: &str) -> Result<Tiers, FileError> {
    let at = Place { text, path };
    let file: ReadFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map(|span| span.start);
        at.error(start, error.message().to_owned())
    })?;
    let mut tiers = Vec::with_capacity(file.tier.len());
    for tier in file.tier {
        let start = tier.span().start;
        tiers.push(at.tier(start, tier.into_inner())?);
    }
    Tiers::new(tiers).map_err(|error| at.error(None, error.to_string()))
}

/// Text and path of the file at hand, for errors.
struct Place<'a> {
    text: &'a str,
    path: &'a str,
}

impl Place<'_> {
    fn error(&self, start: Option<usize>, why: String) -> FileError {
        let line = start.map(|start| {
            let before = self.text.as_bytes().get(..start).unwrap_or_default();
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        });
        FileError {
            path: self.path.to_owned(),
            line,
            why,
        }
    }

    fn value<T: FromStr<Err: fmt::Display>>(
        &self,
        text: Option<Spanned<String>>,
    ) -> Result<Option<T>, FileError> {
        let parse = |text: Spanned<String>| {
            let value = text.as_ref().parse();
            value.map_err(|error: T::Err| self.error(Some(text.span().start), error.to_string()))
        };
        text.map(parse).transpose()
    }

    fn bandwidth(&self, text: Option<Spanned<String>>) -> Result<Option<u64>, FileError> {
        let parse = |text: Spanned<String>| {
            let bytes = text
                .as_ref()
                .trim()
                .strip_suffix("/s")
                .map(str::parse::<Bytes>);
            let wrong = || {
                let why = format!("\"{}\" is not a bandwidth such as 25GB/s", text.as_ref());
                self.error(Some(text.span().start), why)
            };
            match bytes {
                Some(Ok(bytes)) => Ok(bytes.0),
                _ => Err(wrong()),
            }
        };
        text.map(parse).transpose()
    }

    fn tier(&self, start: usize, read: ReadTier) -> Result<Tier, FileError> {
        let wrong = |why: &str| self.error(Some(start), format!("tier \"{}\": {why}", read.name));
        let has_emulation = read.emulation.is_some();
        let kind = match (&read.nodes, &read.emulated) {
            (Some(nodes), None) if nodes.is_empty() => return Err(wrong("it has no nodes")),
            (Some(nodes), None) => TierKind::Nodes(nodes.clone()),
            (None, Some(half)) => match half.as_ref().as_str() {
                "fast" => TierKind::EmulatedFast,
                "slow" => TierKind::EmulatedSlow(self.emulation(read.emulation)?),
                _ => return Err(wrong("`emulated` is \"fast\" or \"slow\"")),
            },
            _ => return Err(wrong("it has either `nodes` or `emulated`")),
        };
        if has_emulation && !matches!(kind, TierKind::EmulatedSlow(_)) {
            return Err(wrong(
                "`emulation` is for the slow half of the emulated pair",
            ));
        }
        let placement = match read.placement.as_ref().map(|it| it.as_ref().as_str()) {
            None | Some("preferred") => Placement::Preferred,
            Some("bind") => Placement::Bind,
            Some(_) => return Err(wrong("`placement` is \"preferred\" or \"bind\"")),
        };
        let reason = read
            .reason
            .unwrap_or_else(|| format!("as {} says", self.path));
        Ok(Tier {
            name: read.name,
            kind,
            capacity: self.value(read.capacity)?.unwrap_or(Bytes(u64::MAX)),
            placement,
            latency: self.value(read.latency)?,
            read_bandwidth: self.bandwidth(read.read_bandwidth)?,
            write_bandwidth: self.bandwidth(read.write_bandwidth)?,
            reason,
        })
    }

    /// What is left out is as in TMP's paper.
    fn emulation(&self, read: Option<ReadEmulation>) -> Result<Emulation, FileError> {
        let Some(read) = read else {
            return Ok(Emulation::PAPER);
        };
        Ok(Emulation {
            period: self.value(read.period)?.unwrap_or(Emulation::PAPER.period),
            access: self.value(read.access)?.unwrap_or(Emulation::PAPER.access),
            hot: self.value(read.hot)?.unwrap_or(Emulation::PAPER.hot),
            migrate: self
                .value(read.migrate)?
                .unwrap_or(Emulation::PAPER.migrate),
        })
    }
}

/// The text of a tiers file.
#[must_use]
pub fn print(tiers: &Tiers) -> String {
    let tier = tiers.all().iter().map(written).collect();
    // Only maps with keys that are no strings cannot be written, and there are none here.
    toml::to_string(&WriteFile { tier }).unwrap_or_default()
}

fn written(tier: &Tier) -> WriteTier {
    let bandwidth = |bytes: u64| format!("{}/s", exact_bytes(bytes));
    WriteTier {
        name: tier.name.clone(),
        nodes: match &tier.kind {
            TierKind::Nodes(nodes) => Some(nodes.clone()),
            TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => None,
        },
        emulated: match &tier.kind {
            TierKind::Nodes(_) => None,
            TierKind::EmulatedFast => Some("fast"),
            TierKind::EmulatedSlow(_) => Some("slow"),
        },
        capacity: (tier.capacity != Bytes(u64::MAX)).then(|| exact_bytes(tier.capacity.0)),
        latency: tier.latency.map(exact_time),
        read_bandwidth: tier.read_bandwidth.map(bandwidth),
        write_bandwidth: tier.write_bandwidth.map(bandwidth),
        placement: match tier.placement {
            Placement::Preferred => "preferred",
            Placement::Bind => "bind",
        },
        reason: tier.reason.clone(),
        emulation: match &tier.kind {
            TierKind::EmulatedSlow(emulation) => Some(WriteEmulation {
                period: exact_time(emulation.period),
                access: exact_time(emulation.access),
                hot: exact_time(emulation.hot),
                migrate: exact_time(emulation.migrate),
            }),
            TierKind::Nodes(_) | TierKind::EmulatedFast => None,
        },
    }
}

/// In the largest unit that leaves a whole number, so that reading it back gives the same.
fn exact_bytes(bytes: u64) -> String {
    exact(
        bytes,
        &[
            ("GiB", 1 << 30),
            ("MiB", 1 << 20),
            ("KiB", 1 << 10),
            ("B", 1),
        ],
    )
}

fn exact_time(time: Nanos) -> String {
    exact(
        time.0,
        &[
            ("s", 1_000_000_000),
            ("ms", 1_000_000),
            ("us", 1_000),
            ("ns", 1),
        ],
    )
}

fn exact(value: u64, units: &[(&str, u64)]) -> String {
    let unit = units
        .iter()
        .find(|(_, factor)| value.is_multiple_of(*factor) && value >= *factor);
    let (name, factor) = unit.or(units.last()).copied().unwrap_or(("", 1));
    format!("{}{name}", value / factor)
}

#[cfg(test)]
mod tests {
    use super::{parse, print};
    use isotherm_model::tier::{Emulation, Placement, TierKind, Tiers};
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn a_file_is_read_with_its_units() {
        let text = "[[tier]]\nname = 'near'\nnodes = [0, 1]\ncapacity = '4GiB'\nlatency = '90ns'\n\
                    read-bandwidth = '100GB/s'\nplacement = 'bind'\n\n[[tier]]\nname = 'far'\nnodes = [2]\n";
        let tiers = parse(text, "m.toml").expect("reads");
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
    fn what_is_written_is_read_back_the_same() {
        let pair = Tiers::emulated(
            Bytes((1 << 30) + 7),
            Bytes(u64::MAX),
            Emulation {
                period: Nanos(1_500_000),
                ..Emulation::PAPER
            },
        );
        assert_eq!(parse(&print(&pair), "x"), Ok(pair));
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
            ("[[tier]\n", "m.toml:1: ", ""),
            ("", "m.toml: ", "no tier"),
            (
                "[[tier]]\nname = 'a'\nemulated = 'fast'\n",
                "m.toml: ",
                "pair",
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
