//! [`SensitivityRuns`] holds the timed runs that show a program's sensitivity and the benefits of its sites (CoMerge, section 3.2): all
//! data slow, all data fast, and one site alone fast. [`TierPair`] identifies the memories on which they were made.

use std::collections::BTreeSet;
use std::fmt;

use crate::emulation::Emulation;
use crate::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
use crate::site::SiteId;
use crate::tier::{TierKind, Tiers};
use crate::units::Nanos;

/// The pair of memories on which runs were timed, as text, which is equal for equal pairs. It has the facts that determine the times, and
/// so neither capacities nor names of tiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TierPair(String);

impl TierPair {
    /// The pair of the fastest tier and the slowest.
    #[must_use]
    pub fn of(tiers: &Tiers) -> Self {
        let all = tiers.all();
        let slow = all.last().map(|tier| &tier.kind);
        Self(match slow {
            Some(TierKind::EmulatedSlow(emulation)) => emulated(emulation),
            Some(slow @ TierKind::Nodes(_)) => {
                format!("{} and {}", nodes(&all[0].kind), nodes(slow))
            }
            Some(TierKind::EmulatedFast) | None => String::new(),
        })
    }

    /// A pair from its text, as it was written.
    #[must_use]
    pub const fn from_text(text: String) -> Self {
        Self(text)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TierPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An emulated pair in the words of `--tiers`. Runs that share a limit with others on a named machine and runs with a limit of their own
/// are of one pair: the memory is the same.
fn emulated(emulation: &Emulation) -> String {
    match emulation {
        Emulation::Time(costs) => {
            let limit = |word, limit: Option<BytesPerSecond>| {
                limit.map_or(String::new(), |it| format!(",{word}:{}", it.exact()))
            };
            let shared = costs.shared.as_ref();
            format!(
                "emulated:B:{},L:{}{}{}",
                costs.bandwidth,
                costs.latency,
                limit("fast-limit", shared.and_then(SharedBandwidth::fast)),
                limit("limit", shared.and_then(SharedBandwidth::slow))
            )
        }
        Emulation::PageTrap(costs) => format!(
            "emulated:tmp, period {}, access {}, hot {}",
            costs.period.exact(),
            costs.access.exact(),
            costs.hot.exact()
        ),
    }
}

fn nodes(kind: &TierKind) -> String {
    let TierKind::Nodes(nodes) = kind else {
        return String::new();
    };
    let numbers: Vec<String> = nodes.iter().map(u32::to_string).collect();
    format!("nodes {}", numbers.join(","))
}

/// The data that is fast in a timed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FastData {
    /// No data.
    Nothing,
    /// The data of one site.
    Site(SiteId),
    /// All data.
    All,
}

/// One timed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SensitivityRun {
    /// The data that was fast.
    pub fast: FastData,
    /// Its round, from 0.
    pub round: u32,
    /// How long the whole program took.
    pub time: Nanos,
}

/// The timed runs of a program on one pair of tiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitivityRuns {
    /// The tiers.
    pub tiers: TierPair,
    /// The runs, in the order in which they were written.
    pub runs: Vec<SensitivityRun>,
}

impl SensitivityRuns {
    /// The median time with this data fast; `None` where no run had it.
    #[must_use]
    pub fn median(&self, fast: FastData) -> Option<Nanos> {
        let runs = self.runs.iter().filter(|run| run.fast == fast);
        Nanos::median(&runs.map(|run| run.time).collect::<Vec<_>>())
    }

    /// The number of rounds.
    #[must_use]
    pub fn rounds(&self) -> usize {
        let rounds: BTreeSet<u32> = self.runs.iter().map(|run| run.round).collect();
        rounds.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{FastData, SensitivityRun, SensitivityRuns, TierPair};
    use crate::emulation::{Emulation, TimeCosts};
    use crate::shared_bandwidth::SharedBandwidth;
    use crate::site::SiteId;
    use crate::tier::{Tier, TierKind, Tiers};
    use crate::units::{Bytes, Nanos};

    fn pair(fast: u64, emulation: Emulation) -> TierPair {
        TierPair::of(&Tiers::emulated(Bytes(fast), Bytes(9), emulation))
    }

    #[test]
    fn a_pair_is_named_by_what_decides_its_times() {
        let cxl = pair(1, Emulation::Time(TimeCosts::CXL));
        assert_eq!(cxl.as_str(), "emulated:B:2,L:2.3");
        assert_eq!(cxl, pair(2, Emulation::Time(TimeCosts::CXL)));
        let limited = |fast: Option<&str>, machine: Option<&str>| {
            let limit = |text: &str| text.parse().expect("a bandwidth");
            let machine = machine.map(|name| name.parse().expect("a name"));
            let shared = SharedBandwidth::new(fast.map(limit), Some(limit("5GiB/s")), machine);
            let costs = TimeCosts {
                shared,
                ..TimeCosts::CXL
            };
            pair(1, Emulation::Time(costs))
        };
        let slow = limited(None, None);
        assert_eq!(slow.as_str(), "emulated:B:2,L:2.3,limit:5GiB/s");
        assert_eq!(slow, limited(None, Some("lab")));
        assert_ne!(slow, cxl);
        assert_eq!(
            limited(Some("10GiB/s"), None).as_str(),
            "emulated:B:2,L:2.3,fast-limit:10GiB/s,limit:5GiB/s"
        );
        assert_eq!(
            pair(1, Emulation::TMP).as_str(),
            "emulated:tmp, period 100ms, access 10us, hot 13us"
        );
        let [near, far] = [vec![0], vec![1, 2]].map(TierKind::Nodes);
        let tiers = Tiers::emulated(Bytes(1), Bytes(2), Emulation::TMP);
        let with_kind = |at: usize, kind| Tier {
            kind,
            ..tiers.all()[at].clone()
        };
        let nodes = Tiers::new(vec![with_kind(0, near), with_kind(1, far)]).expect("a pair");
        assert_eq!(TierPair::of(&nodes).as_str(), "nodes 0 and nodes 1,2");
    }

    #[test]
    fn medians_are_of_the_runs_with_the_same_data_fast() {
        let run = |fast, round, time| SensitivityRun {
            fast,
            round,
            time: Nanos(time),
        };
        let site = FastData::Site(SiteId(7));
        let runs = SensitivityRuns {
            tiers: TierPair::from_text("nodes 0 and nodes 1".to_owned()),
            runs: vec![
                run(FastData::Nothing, 0, 90),
                run(site, 0, 50),
                run(FastData::All, 0, 30),
                run(FastData::Nothing, 1, 80),
                run(site, 1, 60),
                run(FastData::All, 1, 31),
            ],
        };
        assert_eq!(runs.rounds(), 2);
        assert_eq!(runs.median(FastData::Nothing), Some(Nanos(85)));
        assert_eq!(runs.median(site), Some(Nanos(55)));
        assert_eq!(runs.median(FastData::Site(SiteId(8))), None);
    }
}
