//! Reads the limits of this process ([`ResourceLimits`]), which the detection and the measurements of tiers keep to: the nodes of its
//! cpuset and the memory of its control group, of either version (`Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst`,
//! `cgroup-v1/cpusets.rst`). `isotherm doctor` reports that of memory.

use std::path::Path;

use isotherm_model::units::Bytes;
use isotherm_sys::control_group::{UNLIMITED, directories};

use crate::cpu_list;
use crate::sysfs::text;

/// Limits that the kernel enforces on this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Nodes whose memory may be used; `None` where all may.
    pub nodes: Option<Vec<u32>>,
    /// Memory of all nodes together; `None` where there is no limit.
    pub memory: Option<Bytes>,
}

impl ResourceLimits {
    /// True where this node may be used.
    #[must_use]
    pub fn allows(&self, node: u32) -> bool {
        self.nodes
            .as_ref()
            .is_none_or(|nodes| nodes.contains(&node))
    }
}

/// The limits of this process under `root`. The nodes are the intersection of all sources:
/// `Mems_allowed_list` (any kind of cpuset) and the control group's `cpuset.mems.effective`, which
/// version 1 calls `cpuset.effective_mems`.
#[must_use]
pub fn read(root: &Path) -> ResourceLimits {
    let status = std::fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let by_status = status
        .lines()
        .find_map(|line| line.strip_prefix("Mems_allowed_list:"))
        .and_then(cpu_list::parse);
    // The root of the hierarchy has no such file, and an empty file means the parent's value.
    let by_group = in_groups(root, "cpuset", CPUSET)
        .find_map(|text| cpu_list::parse(&text).filter(|nodes| !nodes.is_empty()));
    let nodes = match (by_status, by_group) {
        (Some(mut nodes), Some(group)) => {
            nodes.retain(|node| group.contains(node));
            Some(nodes)
        }
        (nodes, group) => nodes.or(group),
    };
    ResourceLimits {
        nodes,
        memory: memory(root),
    }
}

/// The tightest limit from this process's control group up to the root of the hierarchy.
#[must_use]
pub fn memory(root: &Path) -> Option<Bytes> {
    let limits = in_groups(root, "memory", MEMORY).filter_map(|text| text.parse().ok());
    limits.filter(|bytes| *bytes < UNLIMITED).min().map(Bytes)
}

/// The file of a limit in version 1 and in version 2.
type LimitFiles = [&'static str; 2];

const MEMORY: LimitFiles = ["memory.limit_in_bytes", "memory.max"];
const CPUSET: LimitFiles = ["cpuset.effective_mems", "cpuset.mems.effective"];

/// The contents of the file of a controller in this process's control group and each group above it, innermost first.
fn in_groups(root: &Path, controller: &str, files: LimitFiles) -> impl Iterator<Item = String> {
    let lines = text(&root.join("proc/self/cgroup")).unwrap_or_default();
    let groups: Vec<_> = directories(root, &lines, controller).collect();
    groups.into_iter().filter_map(move |group| {
        let [first, second] = files;
        text(&group.path.join(if group.is_first { first } else { second }))
    })
}
