//! Tiers from sysfs. Three example machines and what is made of them:
//!
//! ```text
//! one socket          node 0 has all                        memory: nodes 0
//! DRAM + CXL          node 0: cpus, 100 ns, 100 GB/s        fast: node 0
//!                     node 2: no cpus, 300 ns, 25 GB/s      slow: node 2 (by HMAT)
//! two sockets, NVM    nodes 0, 1: cpus, distance 10         fast: nodes 0, 1
//!                     nodes 2, 3: no cpus, distance 17      slow: nodes 2, 3 (by distance)
//! ```
//!
//! Sources, best first: performance attributes of the firmware's HMAT table (`access1`, the
//! nearest processors, before `access0`, the nearest initiator of any kind), the kernel's own
//! memory tiers, distances. `Documentation/admin-guide/mm/numaperf.rst`,
//! `Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isotherm_model::tier::{Placement, Tier, TierKind, Tiers, TiersError};
use isotherm_model::units::{Bytes, Nanos};

use crate::{list, meminfo};

/// Why no tiers could be made out.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// Neither sysfs nor procfs tells of any memory.
    #[error(
        "no memory was found under {0}: neither sys/devices/system/node nor proc/meminfo can be \
         read; is /proc mounted? A tiers file (--tiers) can name the memory"
    )]
    NoMemory(String),
    /// What was found contradicts itself.
    #[error("the memory nodes under {0} make no tiers: {1}")]
    Contradiction(String, TiersError),
}

/// Nodes are of one tier while their score (latency by bandwidth) is within this factor of the
/// fastest among them: about what the kernel's own tiers tell apart (128 of 576 units of abstract
/// distance).
const SAME_TIER: f64 = 1.22;

/// A node with memory.
#[derive(Clone, Debug)]
struct Node {
    number: u32,
    bytes: u64,
    has_cpus: bool,
    /// To the nearest node with processors, 10 for itself.
    distance: Option<u64>,
    speed: Option<Speed>,
}

/// Performance attributes of a node.
#[derive(Clone, Copy, Debug)]
struct Speed {
    access: &'static str,
    latency_ns: u64,
    read_bytes: u64,
    write_bytes: Option<u64>,
}

impl Speed {
    /// Small is fast. The product form is the kernel's (`mt_perf_to_adistance`): memory with twice
    /// the latency and twice the bandwidth ranks the same.
    fn score(self) -> f64 {
        self.latency_ns as f64 / self.read_bytes as f64
    }
}

/// The tiers of the machine whose file system is mounted at `root`, fastest first.
///
/// # Errors
/// There is nothing to read at all.
pub fn detect(root: &Path) -> Result<Tiers, DetectError> {
    let nodes = read_nodes(root);
    let groups = if nodes.is_empty() {
        vec![(whole_machine(root)?, NO_NODES.to_owned())]
    } else {
        by_speed(&nodes)
            .or_else(|| by_kernel_tier(&nodes, root))
            .unwrap_or_else(|| by_distance(&nodes))
    };
    let names = names(groups.len());
    let tiers = groups
        .into_iter()
        .zip(names)
        .map(|((nodes, reason), name)| tier(name, &nodes, reason))
        .collect();
    Tiers::new(tiers).map_err(|error| DetectError::Contradiction(root.display().to_string(), error))
}

const NO_NODES: &str = "the kernel tells of no memory nodes; all memory is taken for one tier";

/// Nodes of a tier, and why they are together and stand where they stand.
type Group = (Vec<Node>, String);

fn read_nodes(root: &Path) -> Vec<Node> {
    let directory = root.join("sys/devices/system/node");
    let Ok(entries) = std::fs::read_dir(&directory) else {
        return Vec::new();
    };
    let mut numbers: Vec<u32> = entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        })
        .collect();
    numbers.sort_unstable();
    let path = |number: u32| directory.join(format!("node{number}"));
    let has_cpus = |number: &u32| {
        let cpus = text(path(*number).join("cpulist")).and_then(|text| list::parse(&text));
        cpus.is_some_and(|cpus| !cpus.is_empty())
    };
    let with_cpus: Vec<bool> = numbers.iter().map(has_cpus).collect();
    let nodes = numbers
        .iter()
        .zip(&with_cpus)
        .filter_map(|(number, has_cpus)| {
            let path = path(*number);
            // A node without memory (only processors, or memory not yet online) is no tier.
            let bytes = meminfo::total_bytes(&path.join("meminfo")).filter(|bytes| *bytes > 0)?;
            Some(Node {
                number: *number,
                bytes,
                has_cpus: *has_cpus,
                distance: distance(&path, &with_cpus),
                speed: ["access1", "access0"]
                    .into_iter()
                    .find_map(|access| speed(&path, access)),
            })
        });
    nodes.collect()
}

fn text(path: PathBuf) -> Option<String> {
    std::fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn number(path: PathBuf) -> Option<u64> {
    text(path)?.parse().ok().filter(|number| *number > 0)
}

/// The columns of `distance` are the online nodes in order, as are `with_cpus`.
fn distance(path: &Path, with_cpus: &[bool]) -> Option<u64> {
    let distances = text(path.join("distance"))?;
    distances
        .split_ascii_whitespace()
        .zip(with_cpus)
        .filter(|(_, has_cpus)| **has_cpus)
        .filter_map(|(distance, _)| distance.parse().ok())
        .min()
}

fn speed(path: &Path, access: &'static str) -> Option<Speed> {
    /// Bandwidths are in MiB/s.
    const MIB: u64 = 1 << 20;
    let initiators = path.join(access).join("initiators");
    let bandwidth = |name| number(initiators.join(name)).and_then(|mib| mib.checked_mul(MIB));
    Some(Speed {
        access,
        latency_ns: number(initiators.join("read_latency"))?,
        read_bytes: bandwidth("read_bandwidth")?,
        write_bytes: bandwidth("write_bandwidth"),
    })
}

/// By latency and bandwidth, where the firmware told both of every node.
fn by_speed(nodes: &[Node]) -> Option<Vec<Group>> {
    let mut scored: Vec<(f64, Node)> = nodes
        .iter()
        .map(|node| Some((node.speed?.score(), node.clone())))
        .collect::<Option<_>>()?;
    scored.sort_by(|(a, first), (b, second)| a.total_cmp(b).then(first.number.cmp(&second.number)));
    let mut groups: Vec<(f64, Vec<Node>)> = Vec::new();
    for (score, node) in scored {
        match groups.last_mut() {
            Some((fastest, group)) if score <= *fastest * SAME_TIER => group.push(node),
            _ => groups.push((score, vec![node])),
        }
    }
    let reason = |nodes: &[Node]| {
        let speed = nodes.first().and_then(|node| node.speed)?;
        Some(format!(
            "by the firmware's HMAT table ({}): {} ns, {} a second",
            speed.access,
            speed.latency_ns,
            Bytes(speed.read_bytes)
        ))
    };
    groups
        .into_iter()
        .map(|(_, nodes)| Some((reason(&nodes)?, nodes)).map(|(reason, nodes)| (nodes, reason)))
        .collect()
}

/// By the kernel's tiers, where it has more than one; a lower number is faster.
fn by_kernel_tier(nodes: &[Node], root: &Path) -> Option<Vec<Group>> {
    let directory = root.join("sys/devices/virtual/memory_tiering");
    let mut tiers = BTreeMap::new();
    for entry in std::fs::read_dir(&directory).ok()?.flatten() {
        let name = entry.file_name();
        let tier = name
            .to_str()
            .and_then(|name| name.strip_prefix("memory_tier"));
        let Some(tier) = tier.and_then(|tier| tier.parse::<u32>().ok()) else {
            continue;
        };
        let members = text(entry.path().join("nodelist")).and_then(|text| list::parse(&text))?;
        let members: Vec<Node> = nodes
            .iter()
            .filter(|node| members.contains(&node.number))
            .cloned()
            .collect();
        if !members.is_empty() {
            let reason = format!("the kernel's memory tier {tier}");
            tiers.insert(tier, (members, reason));
        }
    }
    let found: usize = tiers.values().map(|(members, _)| members.len()).sum();
    (tiers.len() > 1 && found == nodes.len()).then(|| tiers.into_values().collect())
}

/// Nodes with processors first, then those without, by distance.
fn by_distance(nodes: &[Node]) -> Vec<Group> {
    let mut groups = BTreeMap::<u64, Vec<Node>>::new();
    for node in nodes {
        let key = match node.has_cpus {
            true => 0,
            false => node.distance.unwrap_or(u64::MAX),
        };
        groups.entry(key).or_default().push(node.clone());
    }
    let several = groups.len() > 1;
    let reason = |distance| match distance {
        0 if several => "its nodes have processors; the firmware tells no speeds".to_owned(),
        0 => "all memory is of one kind".to_owned(),
        u64::MAX => "no processors and no distance: taken for slow".to_owned(),
        distance => format!(
            "no processors, distance {distance}: taken for slow, because the firmware tells no \
             speeds (if it is HBM, say so in a tiers file)"
        ),
    };
    groups
        .into_iter()
        .map(|(distance, nodes)| (nodes, reason(distance)))
        .collect()
}

fn whole_machine(root: &Path) -> Result<Vec<Node>, DetectError> {
    let bytes = meminfo::total_bytes(&root.join("proc/meminfo"));
    let bytes = bytes.ok_or_else(|| DetectError::NoMemory(root.display().to_string()))?;
    Ok(vec![Node {
        number: 0,
        bytes,
        has_cpus: true,
        distance: None,
        speed: None,
    }])
}

fn names(count: usize) -> Vec<String> {
    match count {
        1 => vec!["memory".to_owned()],
        2 => vec!["fast".to_owned(), "slow".to_owned()],
        3 => ["fast", "middle", "slow"].map(str::to_owned).to_vec(),
        _ => (0..count).map(|number| format!("tier{number}")).collect(),
    }
}

/// Latency is that of the slowest node, bandwidth that of all together.
fn tier(name: String, nodes: &[Node], reason: String) -> Tier {
    let speeds = || nodes.iter().filter_map(|node| node.speed);
    let sum =
        |bandwidths: Vec<u64>| (bandwidths.len() == nodes.len()).then(|| bandwidths.iter().sum());
    Tier {
        name,
        kind: TierKind::Nodes(nodes.iter().map(|node| node.number).collect()),
        capacity: nodes.iter().map(|node| Bytes(node.bytes)).sum(),
        placement: Placement::Preferred,
        latency: speeds().map(|speed| Nanos(speed.latency_ns)).max(),
        read_bandwidth: sum(speeds().map(|speed| speed.read_bytes).collect()),
        write_bandwidth: sum(speeds().filter_map(|speed| speed.write_bytes).collect()),
        reason,
    }
}
