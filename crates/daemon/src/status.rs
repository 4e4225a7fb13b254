//! [`StatusBuilder`] makes the status that the daemon publishes, or that a replay of a recording prints, from the reports of the epochs,
//! with sums over all of them, and, of a live daemon, from the watcher's state of the sources. At each epoch it also reads this process's
//! own processor time and memory, and the available memory of the nodes.

use std::path::Path;

use isotherm_model::movement::NodeId;
use isotherm_model::tier::Tier;
use isotherm_model::units::Nanos;
use isotherm_observe::source::process_samples::ProcessSamples;
use isotherm_observe::source::throttle::ThrottleStatus;
use isotherm_observe::watch::watcher::Watcher;
use isotherm_pipeline::{EpochReport, GroupShare, Priority, ProcessShare, Sums};
use isotherm_report::json_line::JsonLine;
use isotherm_report::watch_status::{
    AccessesSeen, GroupStatus, MoveStatus, NodeStatus, ProcessStatus, SourceStatus, Status,
    ThrottleState, TierStatus, TimerStatus,
};
use isotherm_sys::clock::process_ns;
use isotherm_topology::meminfo;

/// The newest status, and sums over all epochs.
#[derive(Debug, Default)]
pub(crate) struct StatusBuilder {
    /// The newest status.
    pub(crate) status: Status,
    total: Sums,
}

impl StatusBuilder {
    /// Starts with a status before the first epoch.
    pub(crate) fn new(begin: Status) -> Self {
        Self {
            status: Status {
                version: Status::VERSION,
                pid: std::process::id(),
                ..begin
            },
            total: Sums::default(),
        }
    }

    /// Adds an epoch.
    pub(crate) fn take(&mut self, report: &EpochReport, tiers: &[Tier]) {
        self.total.merge(&report.moves);
        let cpu = Nanos(process_ns());
        let status = &mut self.status;
        let used = cpu.saturating_sub(Nanos(status.cpu_ns));
        status.epochs += 1;
        status.epoch_ns = report.span.0;
        status.tiers = tiers.iter().map(tier).collect();
        status.capacity_bytes = report.capacity.0;
        status.resident_bytes = report.resident.0;
        status.fast_bytes = report.fast.0;
        status.wanted_bytes = report.wanted.0;
        status.units = report.units as u64;
        status.units_left_alone = report.backoff as u64;
        status.units_split = report.split_units as u64;
        status.split_fast_bytes = report.split_fast.0;
        if let (Some(kind), Some(rate)) = (report.seen_by, report.hit_rate()) {
            status.hit_rate = Some(rate);
            kind.word().clone_into(&mut status.hit_rate_by);
            status.hit_rate_samples = report.accesses;
            status.hit_rate_interval = report.hit_interval();
            add_seen(&mut status.accesses_seen, kind.word(), report);
        }
        status.last = moves(&report.moves);
        status.total = moves(&self.total);
        status.processes = report.processes.iter().map(process).collect();
        status.groups = report.groups.iter().map(group).collect();
        let source = |source: &isotherm_model::batch::SourceReport| SourceStatus {
            name: source.name.clone(),
            taken: source.taken,
            usable: source.usable,
            lost: source.lost,
            cost_ns: source.cost.0,
            warning: source.warning.clone(),
        };
        status.sources = report.sources.iter().map(source).collect();
        status.cpu_share = used.0 as f64 / report.span.0.max(1) as f64;
        status.cpu_ns = cpu.0;
        let own = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        (status.memory_bytes, status.memory_private_bytes) = memory(&own);
    }

    /// Adds the state of the sources that is not in their reports.
    pub(crate) fn watch(&mut self, watcher: &Watcher) {
        let samples = watcher.samples();
        self.status.memory_rings_bytes = samples.map_or(0, ProcessSamples::ring_bytes);
        let timer = |(hz, price): (u32, Option<Nanos>)| TimerStatus {
            hz,
            price_ns: price.map(|price| price.0),
        };
        self.status.timer = watcher.timer_samples().map(timer);
        self.status.samples_by_cpu = samples.map(ProcessSamples::by_cpu).unwrap_or_default();
        let by_node = watcher.samples_by_node().iter();
        let of_node = |(node, samples): (&Option<NodeId>, &u64)| NodeStatus {
            node: node.map(|node| node.0),
            samples: *samples,
        };
        self.status.samples_by_node = by_node.map(of_node).collect();
        self.status.throttles = watcher.throttle().map(throttle_status).collect();
    }
}

fn add_seen(seen: &mut Vec<AccessesSeen>, kind: &str, report: &EpochReport) {
    if !seen.iter().any(|one| one.method == kind) {
        seen.push(AccessesSeen {
            method: kind.to_owned(),
            ..AccessesSeen::default()
        });
    }
    let slow = report.accesses.saturating_sub(report.accesses_fast);
    for one in seen.iter_mut().filter(|one| one.method == kind) {
        one.fast = one.fast.saturating_add(report.accesses_fast);
        one.slow = one.slow.saturating_add(slow);
    }
}

fn tier(tier: &Tier) -> TierStatus {
    let available = tier.nodes().iter().filter_map(|node| {
        let path = format!("/sys/devices/system/node/node{node}/meminfo");
        meminfo::available_bytes(Path::new(&path))
    });
    TierStatus {
        name: tier.name.clone(),
        available_bytes: available.fold(0, u64::saturating_add),
        bytes: tier.capacity.0,
        nodes: tier.nodes().to_vec(),
    }
}

fn moves(sums: &Sums) -> MoveStatus {
    let not_moved = sums.not_moved.iter();
    MoveStatus {
        promoted_bytes: sums.promoted.0,
        demoted_bytes: sums.demoted.0,
        not_moved_bytes: not_moved
            .map(|(why, bytes)| (why.clone(), bytes.0))
            .collect(),
    }
}

fn process(share: &ProcessShare) -> ProcessStatus {
    let seen = share.accesses > 0;
    ProcessStatus {
        pid: share.process.pid,
        name: share.name.clone(),
        control_group: share.control_group.clone(),
        resident_bytes: share.resident.0,
        fast_bytes: share.fast.0,
        fair_share_bytes: share.fair_share.0,
        hit_rate: seen.then(|| share.accesses_fast as f64 / share.accesses as f64),
        warning: share.warning.clone(),
    }
}

fn group(share: &GroupShare) -> GroupStatus {
    let seen = share.accesses > 0;
    let normal = f64::from(Priority::NORMAL.0);
    GroupStatus {
        control_group: share.name.clone(),
        processes: share.processes as u64,
        floor_bytes: share.limit.floor.0,
        cap_bytes: share.limit.cap.map(|cap| cap.0),
        priority: f64::from(share.limit.priority.0) / normal,
        resident_bytes: share.resident.0,
        fast_bytes: share.fast.0,
        hit_rate: seen.then(|| share.accesses_fast as f64 / share.accesses as f64),
    }
}

fn throttle_status(throttle: ThrottleStatus) -> ThrottleState {
    ThrottleState {
        method: throttle.method.word().to_owned(),
        counter: throttle.counter.unwrap_or_default().to_owned(),
        why: throttle.why,
        rests: throttle.rests,
    }
}

/// From the text of `/proc/pid/status`: resident bytes, and of these the bytes that are not a copy of
/// a file. 0 where the kernel does not report them.
fn memory(status: &str) -> (u64, u64) {
    let bytes = |name: &str| meminfo::bytes_in(status, name).unwrap_or(0);
    (
        bytes("VmRSS:"),
        bytes("RssAnon:").saturating_add(bytes("RssShmem:")),
    )
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn what_no_file_has_a_copy_of_is_private() {
        let text = "Name:\tisotherm\nVmHWM:\t    9660 kB\nVmRSS:\t    9444 kB\nRssAnon:\t    2088 kB\n\
                    RssFile:\t    7352 kB\nRssShmem:\t       4 kB\n";
        assert_eq!(memory(text), (9444 << 10, 2092 << 10));
        for text in ["", "VmRSS:\nRssAnon: much kB", "VmRSSes: 4 kB"] {
            assert_eq!(memory(text), (0, 0), "{text}");
        }
        let own = std::fs::read_to_string("/proc/self/status").expect("it is there");
        let (resident, private) = memory(&own);
        assert!(0 < private && private < resident);
    }
}
