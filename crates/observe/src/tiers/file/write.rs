//! Writing a tiers file; its format stands where it is read.

use std::io::Write as _;
use std::path::Path;

use isotherm_model::tier::{Placement, Tier, TierKind};
use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::TiersFile;
use crate::tiers::measure::{Pair, Rates};

#[derive(Serialize)]
struct WriteFile {
    tier: Vec<WriteTier>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<WritePair>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct WritePair {
    cpu_node: u32,
    memory_node: u32,
    latency: String,
    threads: Vec<u32>,
    read: Vec<String>,
    write: Vec<String>,
    triad: Vec<String>,
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

/// Writes a tiers file that [`super::read_file`] reads back the same. It is written under a hidden name
/// beside `path` and then renamed, so there is never half a file; one that was there is replaced.
///
/// # Errors
/// It cannot be written; nothing is left behind then.
pub fn write_file(path: &Path, file: &TiersFile) -> std::io::Result<()> {
    let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    let hidden = path.with_file_name(hidden);
    let written = std::fs::File::create(&hidden).and_then(|mut output| {
        output.write_all(print(file).as_bytes())?;
        output.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&hidden, path));
    if renamed.is_err() {
        // Where it could not even be made there is nothing to remove.
        let _ = std::fs::remove_file(&hidden);
    }
    renamed
}

/// The text of a tiers file.
#[must_use]
pub fn print(file: &TiersFile) -> String {
    let file = WriteFile {
        tier: file.tiers.all().iter().map(written).collect(),
        measured: file.measured.iter().map(written_pair).collect(),
    };
    // Only maps with keys that are no strings cannot be written, and there are none here.
    toml::to_string(&file).unwrap_or_default()
}

fn bandwidth(bytes: u64) -> String {
    format!("{}/s", Bytes(bytes).exact())
}

fn written_pair(pair: &Pair) -> WritePair {
    let rates = |kind: fn(&Rates) -> u64| pair.rates.iter().map(kind).map(bandwidth).collect();
    WritePair {
        cpu_node: pair.cpu_node,
        memory_node: pair.memory_node,
        latency: pair.latency.exact(),
        threads: pair.rates.iter().map(|rates| rates.threads).collect(),
        read: rates(|rates| rates.read),
        write: rates(|rates| rates.write),
        triad: rates(|rates| rates.triad),
    }
}

fn written(tier: &Tier) -> WriteTier {
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
        capacity: (tier.capacity != Bytes(u64::MAX)).then(|| tier.capacity.exact()),
        latency: tier.latency.map(Nanos::exact),
        read_bandwidth: tier.read_bandwidth.map(bandwidth),
        write_bandwidth: tier.write_bandwidth.map(bandwidth),
        placement: match tier.placement {
            Placement::Preferred => "preferred",
            Placement::Bind => "bind",
        },
        reason: tier.reason.clone(),
        emulation: match &tier.kind {
            TierKind::EmulatedSlow(emulation) => Some(WriteEmulation {
                period: emulation.period.exact(),
                access: emulation.access.exact(),
                hot: emulation.hot.exact(),
                migrate: emulation.migrate.exact(),
            }),
            TierKind::Nodes(_) | TierKind::EmulatedFast => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{print, write_file};
    use crate::tiers::file::{TiersFile, parse, read_file};
    use crate::tiers::measure::{Pair, Rates};
    use isotherm_model::tier::{Emulation, Tiers};
    use isotherm_model::units::{Bytes, Nanos};

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
        let file = TiersFile {
            tiers: pair,
            measured: vec![measured()],
        };
        assert_eq!(parse(&print(&file), "x"), Ok(file));
    }

    fn measured() -> Pair {
        let rates = |threads, read| Rates {
            threads,
            read,
            write: read / 2,
            triad: read - 1,
        };
        Pair {
            cpu_node: 0,
            memory_node: 8,
            latency: Nanos(131),
            rates: vec![rates(1, 8_123_456_789), rates(2, 16 << 30)],
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_a_failure_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("m.toml");
        let names = || {
            let entries = std::fs::read_dir(directory.path()).expect("lists");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            names.collect::<Vec<_>>()
        };
        for fast in [1, 2] {
            let file = TiersFile {
                tiers: Tiers::emulated(Bytes(fast), Bytes(9), Emulation::PAPER),
                measured: vec![measured()],
            };
            write_file(&path, &file).expect("writes");
            assert_eq!(read_file(&path), Ok(file));
            assert_eq!(names(), ["m.toml"]);
        }
        std::fs::remove_file(&path).expect("removes");
        std::fs::create_dir(&path).expect("a directory in the way");
        let file = TiersFile {
            tiers: Tiers::emulated(Bytes(1), Bytes(9), Emulation::PAPER),
            measured: vec![],
        };
        assert!(write_file(&path, &file).is_err());
        assert_eq!(names(), ["m.toml"], "the hidden file is gone");
    }
}
