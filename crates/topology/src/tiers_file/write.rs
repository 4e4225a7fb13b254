//! [`print()`] makes the text of a tiers file, which `isotherm tiers` writes; `tiers_file.rs` shows the format.

use isotherm_model::emulation::{Emulation, TimeCosts};
use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
use isotherm_model::tier::{Tier, TierKind};
use isotherm_model::units::{Bytes, Nanos};
use toml::Spanned;

use super::{EmulationTable, FileTables, PairTable, Text, TierTable, TiersFile};
use crate::measure::{Pair, Rates};

/// The text of a tiers file; [`super::parse`] of it returns the same value.
#[must_use]
pub fn print(file: &TiersFile) -> String {
    let file = FileTables {
        tier: file.tiers.all().iter().map(of_tier).collect(),
        measured: file.measured.iter().map(of_pair).collect(),
    };
    // Only a map with keys other than strings cannot be written, and there are none here.
    toml::to_string(&file).unwrap_or_default()
}

/// A value without a place: it was not read.
fn unplaced<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn word(word: &str) -> Text {
    unplaced(word.to_owned())
}

fn bandwidth(bytes: u64) -> Text {
    unplaced(format!("{}/s", Bytes(bytes).exact()))
}

fn time(time: Nanos) -> Text {
    unplaced(time.exact())
}

fn load(point: &LoadPoint) -> Text {
    bandwidth(point.bandwidth)
}

fn loaded_latency(point: &LoadPoint) -> Text {
    time(point.latency)
}

fn of_pair(pair: &Pair) -> Spanned<PairTable> {
    let rates = |kind: fn(&Rates) -> u64| pair.rates.iter().map(kind).map(bandwidth).collect();
    unplaced(PairTable {
        cpu_node: pair.cpu_node,
        memory_node: pair.memory_node,
        latency: time(pair.latency),
        threads: pair.rates.iter().map(|rates| rates.threads).collect(),
        read: rates(|rates| rates.read),
        write: rates(|rates| rates.write),
        triad: rates(|rates| rates.triad),
        load: pair.loaded.iter().map(load).collect(),
        loaded_latency: pair.loaded.iter().map(loaded_latency).collect(),
    })
}

fn of_tier(tier: &Tier) -> Spanned<TierTable> {
    let (nodes, emulated, emulation) = match &tier.kind {
        TierKind::Nodes(nodes) => (Some(nodes.clone()), None, None),
        TierKind::EmulatedFast => (None, Some("fast"), None),
        TierKind::EmulatedSlow(emulation) => (None, Some("slow"), Some(emulation)),
    };
    unplaced(TierTable {
        name: tier.name.clone(),
        nodes,
        emulated: emulated.map(word),
        capacity: (tier.capacity != Bytes(u64::MAX)).then(|| unplaced(tier.capacity.exact())),
        latency: tier.latency.map(time),
        read_bandwidth: tier.read_bandwidth.map(bandwidth),
        write_bandwidth: tier.write_bandwidth.map(bandwidth),
        load: tier.loaded.iter().map(load).collect(),
        loaded_latency: tier.loaded.iter().map(loaded_latency).collect(),
        placement: Some(word(tier.placement.word())),
        reason: Some(tier.reason.clone()),
        emulation: emulation.map(of_emulation),
    })
}

fn of_emulation(emulation: &Emulation) -> EmulationTable {
    match emulation {
        Emulation::Time(costs) => of_time_costs(costs),
        Emulation::PageTrap(costs) => EmulationTable {
            period: Some(time(costs.period)),
            access: Some(time(costs.access)),
            hot: Some(time(costs.hot)),
            migrate: Some(time(costs.migrate)),
            ..EmulationTable::default()
        },
    }
}

fn of_time_costs(costs: &TimeCosts) -> EmulationTable {
    let shared = costs.shared.as_ref();
    let limit = |limit: Option<BytesPerSecond>| limit.map(|limit| word(&limit.exact()));
    let machine = shared.and_then(SharedBandwidth::machine);
    EmulationTable {
        latency: Some(word(&costs.latency.to_string())),
        bandwidth: Some(word(&costs.bandwidth.to_string())),
        migrate: Some(time(costs.migrate)),
        limit: limit(shared.and_then(SharedBandwidth::slow)),
        fast_limit: limit(shared.and_then(SharedBandwidth::fast)),
        machine: machine.map(|machine| word(machine.as_str())),
        ..EmulationTable::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadPoint, print};
    use crate::measure::{Pair, Rates};
    use crate::tiers_file::{TiersFile, parse};
    use isotherm_model::emulation::{Emulation, PageTrapCosts, TimeCosts};
    use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
    use isotherm_model::tier::{Tier, TierKind, Tiers};
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let trap = Emulation::PageTrap(PageTrapCosts {
            period: Nanos(1_500_000),
            ..PageTrapCosts::PAPER
        });
        let limited = |fast, slow, machine| {
            let limit = |bytes: Option<u64>| bytes.and_then(BytesPerSecond::new);
            let shared = SharedBandwidth::new(limit(fast), limit(slow), machine);
            assert!(shared.is_some());
            Emulation::Time(TimeCosts {
                shared,
                ..TimeCosts::CXL
            })
        };
        let (fast, slow) = (Some(9_000_000_002), Some(5_000_000_001));
        let more = [
            trap,
            limited(None, slow, None),
            limited(fast, None, None),
            limited(fast, slow, "lab".parse().ok()),
        ];
        let presets = Emulation::PRESETS.map(|(_, emulation)| emulation);
        for emulation in presets.into_iter().chain(more) {
            let file = TiersFile {
                tiers: Tiers::emulated(Bytes((1 << 30) + 7), Bytes(u64::MAX), emulation),
                measured: vec![measured()],
            };
            assert_eq!(parse(&print(&file), "x"), Ok(file));
        }
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
            loaded: loads(),
        }
    }

    fn loads() -> Vec<LoadPoint> {
        let point = |(bandwidth, nanos)| LoadPoint {
            bandwidth,
            latency: Nanos(nanos),
        };
        [(400_000_001, 131), (9 << 30, 207)].map(point).to_vec()
    }

    #[test]
    fn latencies_under_load_are_kept_of_tiers_and_refused_where_one_is_missing() {
        let tier = Tier {
            kind: TierKind::Nodes(vec![0]),
            loaded: loads(),
            ..Tiers::emulated(Bytes(1), Bytes(2), Emulation::TMP).all()[0].clone()
        };
        let file = TiersFile {
            tiers: Tiers::new(vec![tier]).unwrap(),
            measured: Vec::new(),
        };
        let text = print(&file);
        assert_eq!(parse(&text, "x"), Ok(file));
        let short = text.replace("\"131ns\", ", "");
        assert_ne!(short, text);
        let error = parse(&short, "x").unwrap_err().to_string();
        assert!(error.contains("must be of one length"), "{error}");
    }
}
