//! What this process may use of the machine: the nodes of its cpuset and the memory of its control
//! group (`Documentation/admin-guide/cgroup-v2.rst`).

use std::path::Path;

use isotherm_model::units::Bytes;

use crate::list;

/// Limits that the kernel holds this process to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Nodes whose memory may be used; `None` where all may.
    pub nodes: Option<Vec<u32>>,
    /// Memory of all nodes together; `None` where there is no limit.
    pub memory: Option<Bytes>,
}

impl Limits {
    /// True where this node may be used.
    #[must_use]
    pub fn allows(&self, node: u32) -> bool {
        self.nodes
            .as_ref()
            .is_none_or(|nodes| nodes.contains(&node))
    }
}

/// The limits of this process under `root`. The nodes are those that every source names:
/// `Mems_allowed_list` (any kind of cpuset) and the control group's `cpuset.mems.effective`.
#[must_use]
pub fn read(root: &Path) -> Limits {
    let status = std::fs::read_to_string(root.join("proc/self/status")).unwrap_or_default();
    let by_status = status
        .lines()
        .find_map(|line| line.strip_prefix("Mems_allowed_list:"))
        .and_then(list::parse);
    // The root of the hierarchy has no such file, and an empty one means that of the parent.
    let by_group = in_control_groups(root, "cpuset.mems.effective")
        .into_iter()
        .find_map(|text| list::parse(&text).filter(|nodes| !nodes.is_empty()));
    let nodes = match (by_status, by_group) {
        (Some(mut nodes), Some(group)) => {
            nodes.retain(|node| group.contains(node));
            Some(nodes)
        }
        (nodes, group) => nodes.or(group),
    };
    Limits {
        nodes,
        memory: memory(root),
    }
}

/// The tightest `memory.max` from this process's control group up to the root of the hierarchy.
#[must_use]
pub fn memory(root: &Path) -> Option<Bytes> {
    let limits = in_control_groups(root, "memory.max").into_iter();
    limits.filter_map(|text| text.parse().ok().map(Bytes)).min()
}

/// The text of a file in the control group of this process and in each above it, innermost first.
fn in_control_groups(root: &Path, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let group = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let mount = root.join("sys/fs/cgroup");
    mount
        .join(group.unwrap_or_default())
        .ancestors()
        .take_while(|path| path.starts_with(&mount))
        .filter_map(|path| std::fs::read_to_string(path.join(file)).ok())
        .map(|text| text.trim().to_owned())
        .collect()
}
