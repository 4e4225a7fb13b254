//! Prints a tiers file; [`super::parse`] documents the format.

use isotherm_model::tier::{Placement, Tier, TierKind};
use isotherm_model::units::{Bytes, Nanos};
use serde::Serialize;

use super::TiersFile;
use crate::measure::{Pair, Rates};

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

/// The text of a tiers file; [`super::parse`] of it returns the same value.
#[must_use]
pub fn print(file: &TiersFile) -> String {
    let file = WriteFile {
        tier: file.tiers.all().iter().map(written).collect(),
        measured: file.measured.iter().map(written_pair).collect(),
    };
    // Only a map with keys other than strings cannot be written, and there are none here.
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
    use super::print;
    use crate::measure::{Pair, Rates};
    use crate::tiers_file::{TiersFile, parse};
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
}
