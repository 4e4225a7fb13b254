//! [`detect`] and [`examine`] find the tiers of a machine: they read nodes ([`super::nodes`]) and limits ([`super::limits`]), and group the
//! nodes ([`super::grouping`]); [`examine_measured`] groups them by measured figures. `isotherm tiers` uses them, and by `detect` the
//! daemon and each command whose tiers come neither from a tiers file nor from `--tiers emulated`.
//!
//! Order of precedence: measured figures, figures of the firmware's HMAT table, then the kernel's
//! own tiers, the kind of memory that a driver names, and distances together.

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::tier::{Tier, TierIndex, TierKind, Tiers, TiersError};
use isotherm_model::units::{Bytes, Nanos};

use super::grouping::{self, Group, Speed, View};
use super::limits::{self, ResourceLimits};
use super::measure::{self, Pair};
use super::nodes::{self, Node};
use crate::meminfo;

/// Why no tiers were found.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// Neither sysfs nor procfs lists any memory.
    #[error(
        "no memory was found under {0}: neither sys/devices/system/node nor proc/meminfo can be \
         read; is /proc mounted? A tiers file (--tiers) can name the memory"
    )]
    NoMemory(String),
    /// The cpuset leaves no node that has memory.
    #[error(
        "this process may use nodes {0} only, and none of them has memory; widen cpuset.mems of its \
         control group"
    )]
    NothingAllowed(String),
    /// The requested view is from a node that does not exist, or that has no processors.
    #[error("node {0} has no processors to look from; nodes with processors are {1}")]
    NoView(u32, String),
    /// The result contradicts itself.
    #[error("the memory nodes under {0} make no tiers: {1}")]
    Contradiction(String, TiersError),
}

/// The tiers of a machine, and each of its nodes with the reason for its tier.
#[derive(Clone, Debug, PartialEq)]
pub struct Detected {
    /// The tiers, fastest first.
    pub tiers: Tiers,
    /// All nodes of the kernel, in the order of their numbers.
    pub nodes: Vec<PlacedNode>,
    /// Warnings about the result.
    pub notes: Vec<String>,
}

/// A node and its tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedNode {
    /// The node.
    pub node: Node,
    /// Its tier; `None` for a node outside all tiers.
    pub tier: Option<TierIndex>,
    /// The reason for the tier, in words.
    pub reason: String,
}

/// The tiers of the machine whose file system is mounted at `root`, fastest first, each node in the
/// view of its nearest processors.
///
/// # Errors
/// No memory is found, or none that this process may use.
pub fn detect(root: &Path) -> Result<Tiers, DetectError> {
    examine(root, View::Machine).map(|detected| detected.tiers)
}

/// As [`detect`], in any view, with every node and the reason for its tier.
///
/// # Errors
/// As [`detect`], and where the view is that of a node without processors.
pub fn examine(root: &Path, view: View) -> Result<Detected, DetectError> {
    let nodes = nodes::read(root);
    if nodes.is_empty() {
        return without_nodes(root);
    }
    let speeds = |view| grouping::told(&nodes, view);
    placed(root, &nodes, &speeds, view)
}

/// As [`examine`], by measured pairs of nodes instead of the firmware's figures. If a node was not
/// measured, the firmware's figures are used for all, and a note reports it: figures of two sources
/// cannot be compared.
///
/// # Errors
/// As [`examine`].
pub fn examine_measured(root: &Path, pairs: &[Pair], view: View) -> Result<Detected, DetectError> {
    let nodes = nodes::read(root);
    if nodes.is_empty() {
        return without_nodes_measured(root, pairs, view);
    }
    let measured = measure::speeds(pairs, view);
    let is_missing = |node: &&Node| !measured.contains_key(&node.number);
    let usable = usable(&nodes, &limits::read(root));
    let missing: Vec<u32> = usable
        .iter()
        .filter(is_missing)
        .map(|node| node.number)
        .collect();
    if missing.is_empty() {
        return placed(root, &nodes, &|view| measure::speeds(pairs, view), view);
    }
    let mut detected = placed(root, &nodes, &|view| grouping::told(&nodes, view), view)?;
    detected.notes.push(format!(
        "not measured: nodes {}; so the tiers use the figures of firmware and kernel, not \
         those measured for the others",
        nodes::words(&missing)
    ));
    Ok(detected)
}

fn without_nodes_measured(
    root: &Path,
    pairs: &[Pair],
    view: View,
) -> Result<Detected, DetectError> {
    let detected = without_nodes(root)?;
    let speeds = measure::speeds(pairs, view);
    let Some(speed) = speeds.get(&0) else {
        return Ok(detected);
    };
    let tiers = detected.tiers.all().iter().cloned().map(|tier| Tier {
        reason: format!("{}; {}", speed.words, tier.reason),
        ..with_speed(tier, &[speed])
    });
    Ok(Detected {
        tiers: consistent(root, tiers.collect())?,
        ..detected
    })
}

/// The nodes with memory that this process may use.
fn usable(nodes: &[Node], limits: &ResourceLimits) -> Vec<Node> {
    let is_usable = |node: &&Node| node.memory > Bytes::ZERO && limits.allows(node.number);
    nodes.iter().filter(is_usable).cloned().collect()
}

const NO_NODES: &str = "the kernel reports no memory nodes; all memory is treated as one tier";

fn without_nodes(root: &Path) -> Result<Detected, DetectError> {
    let bytes = meminfo::total_bytes(&root.join("proc/meminfo"));
    let no_memory = || DetectError::NoMemory(root.display().to_string());
    let bytes = Bytes(bytes.ok_or_else(no_memory)?);
    let limits = limits::read(root);
    let tier = tier("memory", vec![0], bytes, NO_NODES, &limits);
    Ok(Detected {
        tiers: consistent(root, vec![tier])?,
        nodes: Vec::new(),
        notes: limit_note(&limits).into_iter().collect(),
    })
}

fn consistent(root: &Path, tiers: Vec<Tier>) -> Result<Tiers, DetectError> {
    let contradiction = |error| DetectError::Contradiction(root.display().to_string(), error);
    Tiers::new(tiers).map_err(contradiction)
}

/// Groups the nodes by their speeds in a view.
fn placed(
    root: &Path,
    nodes: &[Node],
    speeds: &dyn Fn(View) -> BTreeMap<u32, Speed>,
    view: View,
) -> Result<Detected, DetectError> {
    let limits = limits::read(root);
    let usable = usable(nodes, &limits);
    check_view(nodes, view)?;
    if usable.is_empty() {
        return Err(match limits.nodes {
            Some(allowed) => DetectError::NothingAllowed(nodes::words(&allowed)),
            None => DetectError::NoMemory(root.display().to_string()),
        });
    }
    let mut seen = speeds(View::Machine);
    let mut groups = grouping::group(&usable, nodes, &seen, View::Machine);
    if view != View::Machine {
        seen = speeds(view);
        grouping::refine(&mut seen, &groups);
        groups = grouping::group(&usable, nodes, &seen, view);
    }
    let names = names(groups.len());
    let tiers = groups.iter().zip(names);
    let tiers = tiers.map(|(group, name)| of_group(name, group, &usable, &seen, &limits));
    let tiers = consistent(root, tiers.collect())?;
    let mut notes: Vec<String> = limit_note(&limits).into_iter().collect();
    notes.extend(nodes.iter().flat_map(disbelieved));
    let nodes = nodes.iter().map(|node| place(node, &groups, &limits));
    Ok(Detected {
        tiers,
        nodes: nodes.collect(),
        notes,
    })
}

fn check_view(nodes: &[Node], view: View) -> Result<(), DetectError> {
    let View::Node(from) = view else {
        return Ok(());
    };
    let with_cpus = nodes.iter().filter(|node| !node.cpus.is_empty());
    let numbers: Vec<u32> = with_cpus.map(|node| node.number).collect();
    match numbers.contains(&from) {
        true => Ok(()),
        false => Err(DetectError::NoView(from, nodes::words(&numbers))),
    }
}

fn disbelieved(node: &Node) -> impl Iterator<Item = String> {
    let why = node.disbelieved.iter();
    why.map(|why| format!("node {}: {why}; it is ignored", node.number))
}

fn limit_note(limits: &ResourceLimits) -> Option<String> {
    limits
        .memory
        .map(|memory| format!("the control group allows {memory} of all tiers together"))
}

/// A node with its tier, or the reason why it has none.
fn place(node: &Node, groups: &[Group], limits: &ResourceLimits) -> PlacedNode {
    let found = groups.iter().enumerate().find_map(|(index, group)| {
        let member = group
            .members
            .iter()
            .find(|(number, _)| *number == node.number)?;
        Some((TierIndex(index as u32), member.1.clone()))
    });
    let (tier, reason) = match found {
        Some((tier, reason)) => (Some(tier), reason),
        None if !limits.allows(node.number) => {
            (None, "this process may not use it (cpuset)".to_owned())
        }
        None if node.cpus.is_empty() => (None, "neither memory nor processors".to_owned()),
        None => (None, "processors only, no memory".to_owned()),
    };
    PlacedNode {
        node: node.clone(),
        tier,
        reason,
    }
}

fn names(count: usize) -> Vec<String> {
    match count {
        1 => vec!["memory".to_owned()],
        2 => vec!["fast".to_owned(), "slow".to_owned()],
        3 => ["fast", "middle", "slow"].map(str::to_owned).to_vec(),
        _ => (0..count).map(|number| format!("tier{number}")).collect(),
    }
}

fn of_group(
    name: String,
    group: &Group,
    nodes: &[Node],
    speeds: &BTreeMap<u32, Speed>,
    limits: &ResourceLimits,
) -> Tier {
    let mut numbers: Vec<u32> = group.members.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    let bytes = nodes
        .iter()
        .filter(|node| numbers.contains(&node.number))
        .map(|node| {
            let kept = node.huge_pages.iter().map(|pages| pages.bytes()).sum();
            node.memory.saturating_sub(kept)
        })
        .sum();
    let known: Vec<&Speed> = numbers.iter().filter_map(|node| speeds.get(node)).collect();
    let is_known = known.len() == numbers.len();
    let tier = tier(&name, numbers, bytes, &reason(group), limits);
    match is_known {
        true => with_speed(tier, &known),
        false => tier,
    }
}

/// The reason of the first node, and the number of the others.
fn reason(group: &Group) -> String {
    let mut members: Vec<&(u32, String)> = group.members.iter().collect();
    members.sort();
    let Some((first, others)) = members.split_first() else {
        return String::new();
    };
    match others
        .iter()
        .filter(|(_, reason)| *reason != first.1)
        .count()
    {
        0 => first.1.clone(),
        _ => format!("{} (node {})", first.1, first.0),
    }
}

fn tier(name: &str, nodes: Vec<u32>, bytes: Bytes, reason: &str, limits: &ResourceLimits) -> Tier {
    let capacity = limits.memory.map_or(bytes, |limit| bytes.min(limit));
    Tier::unmeasured(name, TierKind::Nodes(nodes), capacity, reason)
}

/// The nodes under equal shares of a load; nothing where they were not measured at the same loads.
fn loaded(speeds: &[&Speed]) -> Vec<LoadPoint> {
    let Some((first, others)) = speeds.split_first() else {
        return Vec::new();
    };
    if others
        .iter()
        .any(|other| other.loaded.len() != first.loaded.len())
    {
        return Vec::new();
    }
    let mut all = first.loaded.clone();
    for other in others {
        for (sum, point) in all.iter_mut().zip(&other.loaded) {
            sum.bandwidth = sum.bandwidth.saturating_add(point.bandwidth);
            sum.latency = sum.latency.max(point.latency);
        }
    }
    all
}

/// Adds figures to a tier: the latency of the slowest node, the sum of the bandwidths of all; each only where it is known of
/// every node. Latencies under load are combined likewise, point by point.
fn with_speed(tier: Tier, speeds: &[&Speed]) -> Tier {
    let all = |figure: fn(&Speed) -> Option<f64>| -> Option<Vec<f64>> {
        speeds.iter().map(|speed| figure(speed)).collect()
    };
    let sum = |figures: Option<Vec<f64>>| figures.map(|all| all.iter().sum::<f64>() as u64);
    let slowest = all(|speed| speed.latency).map(|all| all.into_iter().fold(0.0, f64::max));
    Tier {
        latency: slowest.map(|nanos| Nanos(nanos.round() as u64)),
        read_bandwidth: sum(all(|speed| speed.read)),
        write_bandwidth: sum(all(|speed| speed.write)),
        loaded: loaded(speeds),
        ..tier
    }
}
