//! [`Status`] is the daemon's status, as a line of JSON and as text: for `isotherm status`, `isotherm top`, the socket and the metrics.
//!
//! Plain numbers with their unit in the name, so that the JSON form explains itself; described in `docs/daemon.md`.

mod kernel_promotion;

use std::collections::BTreeMap;

use isotherm_model::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

use crate::json_line::JsonLine;
use crate::paged_status::PagedStatus;
use crate::table::DataTable;
use crate::words::{clip, counted, percent, printable, share};
pub use kernel_promotion::KernelPromotionStatus;

/// Widest name of a program or control group in a table.
const NAME_AT_MOST: usize = 32;

/// The state of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// [`JsonLine::VERSION`] of the daemon that wrote it.
    pub version: u32,
    /// Its process id.
    pub pid: u32,
    /// True in a dry run: it decides but makes no moves.
    pub dry_run: bool,
    /// The epoch policy.
    pub policy: String,
    /// Epochs since the start.
    pub epochs: u64,
    /// Length of the last epoch.
    pub epoch_ns: u64,
    /// The tiers, fastest first.
    pub tiers: Vec<TierStatus>,
    /// Nodes whose memory is offline, to save energy.
    #[serde(default)]
    pub offline_nodes: Vec<u32>,
    /// Bytes of the fast tier that watched processes may use now.
    pub capacity_bytes: u64,
    /// Bytes that watched processes have resident in private memory.
    pub resident_bytes: u64,
    /// Of these, bytes in the fast tier; in a dry run as if everything had been moved.
    pub fast_bytes: u64,
    /// Bytes that the policy requests for the fast tier.
    pub wanted_bytes: u64,
    /// Units of memory watched.
    pub units: u64,
    /// Units that could not be moved and are left alone for a while.
    pub units_left_alone: u64,
    /// Units of which little is hot, with their hot parts in the fast tier and the rest in the slow one.
    #[serde(default)]
    pub units_split: u64,
    /// Bytes of the split units in the fast tier.
    #[serde(default)]
    pub split_fast_bytes: u64,
    /// Share of the observed accesses that fast memory served, in the last epoch with any; an estimate.
    pub hit_rate: Option<f64>,
    /// Method of these accesses: `trace-samples`, or `accessed-bits`, which count a page once a check however often it is accessed;
    /// empty before the first observed access.
    #[serde(default)]
    pub hit_rate_by: String,
    /// The number of accesses or pages behind the hit rate.
    #[serde(default)]
    pub hit_rate_samples: u64,
    /// 95 % confidence interval of the hit rate as a share of all accesses; null for accessed bits.
    #[serde(default)]
    pub hit_rate_interval: Option<[f64; 2]>,
    /// Observed accesses since the start.
    #[serde(default)]
    pub accesses_seen: Vec<AccessesSeen>,
    /// Moves of the last epoch.
    pub last: MoveStatus,
    /// Moves since the start.
    pub total: MoveStatus,
    /// The kernel's own promotion; null where the daemon alone promotes.
    #[serde(default)]
    pub kernel_promotion: Option<KernelPromotionStatus>,
    /// The paged-out memory and its costs; null where the slow tier is not swap.
    #[serde(default)]
    pub paged: Option<PagedStatus>,
    /// The watched processes.
    pub processes: Vec<ProcessStatus>,
    /// The control groups that the configuration names.
    #[serde(default)]
    pub groups: Vec<GroupStatus>,
    /// The sources.
    pub sources: Vec<SourceStatus>,
    /// The timer's rate and cost; null where samples come from another source, or there are none.
    #[serde(default)]
    pub timer: Option<TimerStatus>,
    /// Trace samples by the number of the processor that took them, since the start.
    #[serde(default)]
    pub samples_by_cpu: Vec<u64>,
    /// Trace samples of watched processes by the memory node of their data, since the start;
    /// empty where no sample has a physical address.
    #[serde(default)]
    pub samples_by_node: Vec<NodeStatus>,
    /// The counter by which each kind of source rests.
    #[serde(default)]
    pub throttles: Vec<ThrottleState>,
    /// Processor time of the daemon since the start, kernel threads on its behalf included.
    pub cpu_ns: u64,
    /// Processor time in the last epoch, in processors: 0.01 is 1 % of one.
    pub cpu_share: f64,
    /// Resident memory of the daemon, its program and libraries included.
    pub memory_bytes: u64,
    /// Bytes of that memory without a copy in a file, which the kernel cannot drop.
    #[serde(default)]
    pub memory_private_bytes: u64,
    /// The kernel's memory for the daemon's samples; not every kernel counts it as resident.
    #[serde(default)]
    pub memory_rings_bytes: u64,
    /// The rights that the daemon has and lacks, and the feature of each.
    pub rights: Vec<RightStatus>,
    /// Warnings for the operator.
    pub notes: Vec<String>,
}

/// One tier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierStatus {
    /// Its name.
    pub name: String,
    /// Its nodes.
    pub nodes: Vec<u32>,
    /// Its size.
    pub bytes: u64,
    /// Bytes of it that are free or file cache.
    pub available_bytes: u64,
}

/// The timer's rate and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerStatus {
    /// Samples a second and processor.
    pub hz: u32,
    /// Measured time that a sample takes from a program; null where it could not be measured.
    pub price_ns: Option<u64>,
}

/// Accesses that one kind of source observed since the start, in epochs whose hit rate uses them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessesSeen {
    /// The profiling method: `accessed-bits`, `trace-samples`.
    pub method: String,
    /// Accesses to memory that was fast at the access.
    pub fast: u64,
    /// Accesses to all other memory.
    pub slow: u64,
}

/// The results of moves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveStatus {
    /// Bytes moved to the fast tier; in a dry run those that would have been.
    pub promoted_bytes: u64,
    /// Bytes moved out of it, likewise.
    pub demoted_bytes: u64,
    /// Bytes not moved, by the reason.
    pub not_moved_bytes: BTreeMap<String, u64>,
}

/// A watched process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Its number.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// Its control group; empty where there is none.
    pub control_group: String,
    /// Bytes resident in private memory.
    pub resident_bytes: u64,
    /// Of these, bytes in the fast tier.
    pub fast_bytes: u64,
    /// Bytes of fast memory that it keeps as a new process, as long as it has that much with heat; 0 for none.
    #[serde(default)]
    pub fair_share_bytes: u64,
    /// Share of its accesses that fast memory served; None where none was observed.
    pub hit_rate: Option<f64>,
    /// The reason why it cannot be observed well; empty without a problem.
    pub warning: String,
}

impl ProcessStatus {
    /// Share of its resident memory that is fast.
    #[must_use]
    pub fn fast_share(&self) -> f64 {
        share(self.fast_bytes, self.resident_bytes)
    }

    /// The table of these processes.
    #[must_use]
    pub fn table(processes: &[Self]) -> DataTable<'_, Self> {
        let problem = |process: &Self| match process.warning.is_empty() {
            true => clip(&process.control_group, NAME_AT_MOST),
            false => printable(&process.warning),
        };
        DataTable::of(processes)
            .right("process", |process| process.pid)
            .left("program", |process| clip(&process.name, NAME_AT_MOST))
            .right("resident", |process| Bytes(process.resident_bytes))
            .right("fast", |process| percent(process.fast_share()))
            .right("hit rate", |process| known(process.hit_rate))
            .left("control group, or problem", problem)
    }
}

/// A control group that the configuration names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name there.
    pub control_group: String,
    /// The number of its watched processes.
    pub processes: u64,
    /// Bytes of fast memory that they keep regardless of other processes; 0 for none.
    pub floor_bytes: u64,
    /// The most bytes of fast memory that they may have; None for no limit.
    pub cap_bytes: Option<u64>,
    /// The weight of their accesses; 1 for the same as those of others.
    pub priority: f64,
    /// Bytes that they have resident in private memory.
    pub resident_bytes: u64,
    /// Of these, bytes in the fast tier.
    pub fast_bytes: u64,
    /// Share of their accesses that fast memory served; None where none was seen.
    pub hit_rate: Option<f64>,
}

impl GroupStatus {
    /// The table of these control groups.
    #[must_use]
    pub fn table(groups: &[Self]) -> DataTable<'_, Self> {
        let size = |bytes: u64| Bytes(bytes).to_string();
        let cap = move |group: &Self| group.cap_bytes.map_or_else(|| "-".to_owned(), size);
        DataTable::of(groups)
            .left("control group", |group| {
                clip(&group.control_group, NAME_AT_MOST)
            })
            .right("processes", |group| group.processes)
            .right("resident", |group| Bytes(group.resident_bytes))
            .right("fast", |group| Bytes(group.fast_bytes))
            .right("floor", |group| Bytes(group.floor_bytes))
            .right("cap", cap)
            .right("priority", |group| group.priority)
            .right("hit rate", |group| known(group.hit_rate))
    }
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceStatus {
    /// Its name.
    pub name: String,
    /// Its observations since the start: hits, samples, processes or units.
    pub taken: u64,
    /// Of these, the usable ones.
    pub usable: u64,
    /// The number of lost ones.
    pub lost: u64,
    /// Processor time that it used.
    pub cost_ns: u64,
    /// The reason why it is off or degraded; empty without a problem.
    pub warning: String,
}

/// The samples of one memory node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Its number; None for memory of an unknown node.
    pub node: Option<u32>,
    /// Trace samples that fell on it.
    pub samples: u64,
}

/// The counter that lets a kind of source rest while it is at a fifth of its maximum or less.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThrottleState {
    /// The profiling method: `accessed-bits`, `trace-samples`.
    pub method: String,
    /// The counter; empty where none is available, and the source never rests.
    pub counter: String,
    /// The reason why no better counter is used, and its remedy.
    pub why: String,
    /// The source rested in the last epoch.
    pub rests: bool,
}

/// A right, the feature that needs it, and whether the daemon has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RightStatus {
    /// The capability: `CAP_SYS_NICE`.
    pub capability: String,
    /// The feature that it permits.
    pub feature: String,
    /// The daemon has it.
    pub held: bool,
}

/// A hit rate, or `-` where no access was observed.
fn known(rate: Option<f64>) -> String {
    rate.map_or_else(|| "-".to_owned(), percent)
}

impl ThrottleState {
    /// The counter by which the source rests, and the reason why no better one is used.
    fn line(&self) -> String {
        let state = match (self.counter.as_str(), self.rests) {
            ("", _) => "never rest".to_owned(),
            (counter, true) => format!("rest: few {counter}"),
            (counter, false) => format!("may rest by {counter}"),
        };
        match self.why.as_str() {
            "" => format!("{}: {state}", self.method),
            why => format!("{}: {state} ({why})", self.method),
        }
    }
}

impl ProcessStatus {
    fn fair_start_line(&self) -> String {
        let (pid, share) = (self.pid, Bytes(self.fair_share_bytes));
        format!("process {pid} is new: it keeps up to {share} of fast memory for data with heat")
    }
}

impl TimerStatus {
    fn line(&self) -> String {
        let Self { hz, price_ns } = *self;
        let taken = match price_ns {
            None => "the time of a sample could not be measured".to_owned(),
            Some(price) => {
                let percent = f64::from(hz) * price as f64 / 1e7;
                format!(
                    "each takes {}: {percent:.1} % of a program's time",
                    Nanos(price)
                )
            }
        };
        format!("timer: {hz} samples a second and processor, {taken}")
    }
}

impl Status {
    /// The status as text, for a terminal of the given number of columns.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let processes = match self.processes.is_empty() {
            true => "No process is watched: none is selected, or none uses 5 % of a processor or \
                     10 % of memory.\n"
                .to_owned(),
            false => ProcessStatus::table(&self.processes).render(),
        };
        let groups = match self.groups.is_empty() {
            true => String::new(),
            false => GroupStatus::table(&self.groups).render() + "\n",
        };
        let paged = self.paged_lines().into_iter();
        let paged: String = paged.map(|line| line + "\n").collect();
        let mut text = format!(
            "{}\n\n{}\n{processes}\n{groups}{}{paged}\n{}\n{}\n",
            self.headline(),
            self.tier_table().render(),
            self.moves(),
            self.source_table().render(),
            self.memory_line()
        );
        text.extend(self.kernel_promotion.iter().map(|it| it.line() + "\n"));
        text.extend(self.timer.iter().map(|timer| timer.line() + "\n"));
        for line in self.details() {
            text += &format!("{}\n", clip(&line, columns * 3));
        }
        if !self.offline_nodes.is_empty() {
            let nodes: Vec<String> = self.offline_nodes.iter().map(u32::to_string).collect();
            text += &format!("offline, to save energy: node {}\n", nodes.join(", "));
        }
        text.extend(self.notes.iter().map(|note| format!("note: {note}\n")));
        text
    }

    /// New processes, split units, samples by processor and by node, the counters of the sources, and the rights that are missing: a line
    /// each.
    fn details(&self) -> Vec<String> {
        let split = (self.units_split > 0).then(|| self.split_line());
        let new = self.processes.iter().filter(|one| one.fair_share_bytes > 0);
        let new = new.map(ProcessStatus::fair_start_line);
        let mut lines: Vec<String> = new.chain(split).collect();
        if !self.samples_by_cpu.is_empty() {
            let counts: Vec<String> = self.samples_by_cpu.iter().map(u64::to_string).collect();
            lines.push(format!("samples by processor: {}", counts.join(" ")));
        }
        if !self.samples_by_node.is_empty() {
            lines.push(self.node_line());
        }
        lines.extend(self.throttles.iter().map(ThrottleState::line));
        let missing = self.rights.iter().filter(|right| !right.held);
        lines.extend(
            missing.map(|right| format!("without {}: {}", right.capability, right.feature)),
        );
        lines
    }

    /// `split: 12 units of which little is hot, with 3 MiB of them in fast memory`.
    fn split_line(&self) -> String {
        let units = counted(self.units_split, "unit");
        let fast = Bytes(self.split_fast_bytes);
        format!("split: {units} of which little is hot, with {fast} of them in fast memory")
    }

    /// The summary line.
    #[must_use]
    pub fn headline(&self) -> String {
        let mode = if self.dry_run { "dry run" } else { "moving" };
        format!(
            "isotherm daemon, process {}, {mode} by {}: {} of {} in fast memory ({} allowed), hit rate {}, \
             {} of a processor, {}",
            self.pid,
            self.policy,
            Bytes(self.fast_bytes),
            Bytes(self.resident_bytes),
            Bytes(self.capacity_bytes),
            self.hit_words(),
            percent(self.cpu_share),
            counted(self.epochs, "epoch"),
        )
    }

    /// The hit rate with its confidence interval: `81 % (74 to 87 % by 120 samples)`.
    #[must_use]
    pub fn hit_words(&self) -> String {
        let Some(rate) = self.hit_rate.map(percent) else {
            return "unknown".to_owned();
        };
        match self.hit_rate_interval {
            Some([low, high]) => format!(
                "{rate} ({:.0} to {} by {})",
                low * 100.0,
                percent(high),
                counted(self.hit_rate_samples, "sample")
            ),
            None if self.hit_rate_by.is_empty() => rate,
            None => format!("{rate} (of pages found accessed, not of accesses)"),
        }
    }

    fn tier_table(&self) -> DataTable<'_, TierStatus> {
        let nodes = |tier: &TierStatus| Vec::from_iter(tier.nodes.iter().map(u32::to_string));
        DataTable::of(&self.tiers)
            .left("tier", |tier| tier.name.clone())
            .left("nodes", move |tier| nodes(tier).join(","))
            .right("size", |tier| Bytes(tier.bytes))
            .right("available", |tier| Bytes(tier.available_bytes))
    }

    /// The sources with their costs.
    #[must_use]
    pub fn source_table(&self) -> DataTable<'_, SourceStatus> {
        DataTable::of(&self.sources)
            .left("source", |source| printable(&source.name))
            .right("seen", |source| source.taken)
            .right("usable", |source| source.usable)
            .right("lost", |source| source.lost)
            .right("cost", |source| Nanos(source.cost_ns))
            .left("problem", |source| printable(&source.warning))
    }

    /// The moves as sentences.
    #[must_use]
    pub fn moves(&self) -> String {
        let verb = if self.dry_run { "would be " } else { "" };
        let of = |moves: &MoveStatus| {
            let (up, down) = (Bytes(moves.promoted_bytes), Bytes(moves.demoted_bytes));
            format!("{up} {verb}promoted, {down} {verb}demoted")
        };
        let (last, total) = (of(&self.last), of(&self.total));
        let mut text = format!("last epoch: {last}\nsince start: {total}\n");
        for (why, bytes) in &self.total.not_moved_bytes {
            text += &format!("not moved: {} ({why})\n", Bytes(*bytes));
        }
        text
    }

    /// The paged-out memory and its costs, a line each; none where the slow tier is not swap.
    #[must_use]
    pub fn paged_lines(&self) -> Vec<String> {
        let paged = self.paged.as_ref();
        paged.map(PagedStatus::lines).unwrap_or_default()
    }

    /// Memory that is used because of the daemon: its own, and the kernel's on its behalf.
    #[must_use]
    pub const fn own_memory(&self) -> Bytes {
        Bytes(
            self.memory_private_bytes
                .saturating_add(self.memory_rings_bytes),
        )
    }

    /// The daemon's own memory.
    fn memory_line(&self) -> String {
        format!(
            "memory of the daemon: {} private, and {} of program and library files, which the kernel can drop; {} of \
             ring buffers for samples",
            Bytes(self.memory_private_bytes),
            Bytes(self.memory_bytes.saturating_sub(self.memory_private_bytes)),
            Bytes(self.memory_rings_bytes),
        )
    }

    /// Samples by the memory node of their data, for those with a physical address.
    fn node_line(&self) -> String {
        let all: u64 = self.samples_by_node.iter().map(|node| node.samples).sum();
        let words = self.samples_by_node.iter().map(|node| {
            let share = percent(share(node.samples, all));
            match node.node {
                Some(number) => format!("node {number}: {} ({share})", node.samples),
                None => format!("not known: {} ({share})", node.samples),
            }
        });
        let words: Vec<String> = words.collect();
        format!("samples by memory node: {}", words.join(", "))
    }
}

impl JsonLine for Status {
    const REQUEST: &'static str = "status";
    const NAME: &'static str = "status";
    const VERSION: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::{
        GroupStatus, MoveStatus, NodeStatus, ProcessStatus, RightStatus, SourceStatus, Status,
        ThrottleState, TierStatus, TimerStatus,
    };
    use crate::json_line::JsonLine;

    fn status() -> Status {
        Status {
            version: Status::VERSION,
            pid: 12,
            dry_run: true,
            policy: "payback".into(),
            epochs: 3,
            tiers: vec![TierStatus {
                name: "fast".into(),
                nodes: vec![0, 2],
                bytes: 1 << 30,
                ..TierStatus::default()
            }],
            capacity_bytes: 512 << 20,
            resident_bytes: 1 << 30,
            fast_bytes: 256 << 20,
            units_split: 12,
            split_fast_bytes: 3 << 20,
            hit_rate: Some(0.9),
            total: MoveStatus {
                not_moved_bytes: [("pinned".into(), 4096)].into(),
                ..MoveStatus::default()
            },
            kernel_promotion: Some(super::kernel_promotion::tests::status()),
            processes: vec![ProcessStatus {
                pid: 4711,
                name: "redis-server".into(),
                resident_bytes: 1 << 30,
                fast_bytes: 256 << 20,
                fair_share_bytes: 128 << 20,
                hit_rate: None,
                ..ProcessStatus::default()
            }],
            groups: vec![GroupStatus {
                control_group: "/system.slice".into(),
                floor_bytes: 3 << 20,
                cap_bytes: Some(5 << 30),
                priority: 0.25,
                ..GroupStatus::default()
            }],
            sources: vec![SourceStatus {
                name: "timer".into(),
                warning: "off".into(),
                ..SourceStatus::default()
            }],
            memory_bytes: 9 << 20,
            memory_private_bytes: 2 << 20,
            memory_rings_bytes: 512 << 10,
            timer: Some(TimerStatus {
                hz: 250,
                price_ns: Some(20_000),
            }),
            samples_by_cpu: vec![812, 0, 790],
            samples_by_node: [(None, 1), (Some(0), 6), (Some(2), 1)]
                .map(|(node, samples)| NodeStatus { node, samples })
                .to_vec(),
            throttles: throttles(),
            rights: vec![RightStatus {
                capability: "CAP_SYS_NICE".into(),
                feature: "moves".into(),
                held: false,
            }],
            notes: vec!["one node".into()],
            ..Status::default()
        }
    }

    fn throttles() -> Vec<ThrottleState> {
        vec![
            ThrottleState {
                method: "trace-samples".into(),
                counter: "memory controllers".into(),
                why: "no cache misses".into(),
                rests: false,
            },
            ThrottleState {
                method: "accessed-bits".into(),
                ..ThrottleState::default()
            },
        ]
    }

    #[test]
    fn the_text_names_every_part() {
        let text = status().text(100);
        for part in [
            "dry run by payback",
            "256 MiB of 1 GiB",
            "90",
            "0,2",
            "4711",
            "redis-server",
            "25",
            "/system.slice",
            "3 MiB",
            "5 GiB",
            "0.25",
            "would be promoted",
            "4 KiB (pinned)",
            "timer",
            "2 MiB private, and 7 MiB of program and library files",
            "512 KiB of ring buffers",
            "kernel: 6 MiB promoted",
            "timer: 250 samples a second and processor, each takes 20.0 us: 0.5 % of a program's time",
            "process 4711 is new: it keeps up to 128 MiB of fast memory",
            "samples by processor: 812 0 790",
            "split: 12 units of which little is hot, with 3 MiB of them in fast memory",
            "samples by memory node: not known: 1 (12 %), node 0: 6 (75 %), node 2: 1 (12 %)",
            "trace-samples: may rest by memory controllers (no cache misses)",
            "accessed-bits: never rest",
            "without CAP_SYS_NICE: moves",
            "note: one node",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert!(Status::default().text(80).contains("No process is watched"));
    }

    #[test]
    fn a_line_of_json_is_read_back_and_another_version_is_refused() {
        let line = status().json_line();
        assert!(!line.contains('\n'));
        assert_eq!(Status::from_json_line(&line), Ok(status()));
        let newer = Status {
            version: Status::VERSION + 1,
            ..status()
        }
        .json_line();
        assert!(
            Status::from_json_line(&newer)
                .unwrap_err()
                .contains("restart")
        );
        // A version with other fields, too.
        let other = format!("{{\"version\":{}}}", Status::VERSION + 1);
        assert!(
            Status::from_json_line(&other)
                .unwrap_err()
                .contains("restart")
        );
        assert!(Status::from_json_line("hello").is_err());
    }
}
