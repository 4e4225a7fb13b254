//! Reads the limits of this process ([`ResourceLimits`]), which the detection and the measurements of tiers keep to: the nodes of its
//! cpuset and the memory of its control group, of either version (`Documentation/admin-guide/cgroup-v2.rst`, `cgroup-v1/memory.rst`,
//! `cgroup-v1/cpusets.rst`). `isotherm doctor` reports that of memory.

use std::path::Path;

use isotherm_model::units::Bytes;

use crate::cpu_list;

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
    let by_group = CPUSET
        .texts(root)
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
    let limits = MEMORY.texts(root).filter_map(|text| text.parse().ok());
    limits.filter(|bytes| *bytes < UNLIMITED).min().map(Bytes)
}

/// Version 1 writes the largest number, rounded down to a page of any size, for "no limit"; version
/// 2 writes `max`.
const UNLIMITED: u64 = i64::MAX as u64 - (1 << 20);

const MEMORY: Controller = Controller {
    name: "memory",
    second: "memory.max",
    first: "memory.limit_in_bytes",
};
const CPUSET: Controller = Controller {
    name: "cpuset",
    second: "cpuset.mems.effective",
    first: "cpuset.effective_mems",
};

/// A controller, and its limit file in version 2 and in version 1.
struct Controller {
    name: &'static str,
    second: &'static str,
    first: &'static str,
}

impl Controller {
    /// The contents of the file in this process's control group and each group above it, innermost
    /// first. A machine may have one controller in version 1 and another in version 2.
    fn texts(&self, root: &Path) -> impl Iterator<Item = String> {
        let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mut texts = Vec::new();
        for line in groups.lines() {
            // `4:memory:/box/app` in version 1, `0::/box/app` in version 2.
            let Some((controllers, group)) = line
                .split_once(':')
                .and_then(|(_, rest)| rest.split_once(":/"))
            else {
                continue;
            };
            let mount = root.join("sys/fs/cgroup");
            if controllers.is_empty() {
                texts.extend(upwards(&mount, group, self.second));
            } else if controllers.split(',').any(|name| name == self.name) {
                texts.extend(upwards(&mount.join(self.name), group, self.first));
            }
        }
        texts.into_iter()
    }
}

/// The text of a file in a group and in each group above it. In a container the group's path may be
/// the machine's, and only the mount itself is visible.
fn upwards(mount: &Path, group: &str, file: &str) -> Vec<String> {
    mount
        .join(group)
        .ancestors()
        .take_while(|path| path.starts_with(mount))
        .filter_map(|path| std::fs::read_to_string(path.join(file)).ok())
        .map(|text| text.trim().to_owned())
        .collect()
}
