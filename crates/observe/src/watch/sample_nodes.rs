//! `SampleNodes` finds the memory node of each sample with a physical address, for the watcher, and counts the samples by node.
//!
//! sysfs names the memory blocks of each node, all of one size; every user may read that.
//!
//! ```text
//! sys/devices/system/memory/block_size_bytes   8000000 (hexadecimal)
//! sys/devices/system/node/node1/memory34       so node 1 has 0x110000000 to 0x117ffffff
//! ```
//!
//! A block on the border of two nodes is listed below both, and its samples count as those of an unknown
//! node.
//!
//! Kernel documents: `admin-guide/mm/memory-hotplug.rst`, `ABI/testing/sysfs-devices-memory`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isotherm_model::batch::ObservedAccess;
use isotherm_model::movement::NodeId;
use isotherm_topology::sysfs::{numbered, text};

/// Samples by node since the start.
#[derive(Debug, Default)]
pub(super) struct SampleNodes {
    root: PathBuf,
    /// Read at the first sample with a physical address, because most machines have none.
    blocks: Option<Blocks>,
    samples: BTreeMap<Option<NodeId>, u64>,
}

/// The memory blocks of the nodes.
#[derive(Debug, Default)]
struct Blocks {
    /// Bytes of a block; 0 where the kernel reports none.
    bytes: u64,
    /// The node of each block, by its number; None where there are two.
    nodes: BTreeMap<u64, Option<NodeId>>,
}

impl SampleNodes {
    /// Counters for the machine whose file system is mounted at `root`.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            ..Self::default()
        }
    }

    /// Counts the samples with a physical address, and passes on the node of each.
    pub(super) fn count<'a>(
        &mut self,
        accesses: &'a [ObservedAccess],
        mut take: impl FnMut(&'a ObservedAccess, Option<NodeId>),
    ) {
        // Memory may have been added since the nodes were read, but reading again for each unknown
        // address would be expensive.
        let mut may_read = true;
        for access in accesses {
            let Some(address) = access.physical else {
                continue;
            };
            let known = self.blocks.as_ref().and_then(|blocks| blocks.node(address));
            let node = match known {
                Some(node) => node,
                None if std::mem::take(&mut may_read) => {
                    let blocks = self.blocks.insert(Blocks::read(&self.root));
                    blocks.node(address).flatten()
                }
                None => None,
            };
            let sum = self.samples.entry(node).or_default();
            *sum = sum.saturating_add(access.count);
            take(access, node);
        }
    }

    /// Samples by node; None stands for memory of an unknown node.
    pub(super) const fn samples(&self) -> &BTreeMap<Option<NodeId>, u64> {
        &self.samples
    }
}

impl Blocks {
    /// Empty where the kernel has no memory blocks (`CONFIG_MEMORY_HOTPLUG`).
    fn read(root: &Path) -> Self {
        let system = root.join("sys/devices/system");
        let size = text(&system.join("memory/block_size_bytes")).unwrap_or_default();
        let mut blocks = Self {
            bytes: u64::from_str_radix(&size, 16).unwrap_or(0),
            nodes: BTreeMap::new(),
        };
        for node in numbered(&system.join("node"), "node") {
            for block in numbered(&system.join(format!("node/node{node}")), "memory") {
                let of_node = Some(NodeId(node));
                let before = blocks.nodes.insert(block.into(), of_node);
                if before.is_some_and(|before| before != of_node) {
                    blocks.nodes.insert(block.into(), None);
                }
            }
        }
        blocks
    }

    /// The node of an address, inner None on a border of two; None where no block has it.
    fn node(&self, address: u64) -> Option<Option<NodeId>> {
        let number = address.checked_div(self.bytes)?;
        self.nodes.get(&number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::SampleNodes;
    use isotherm_model::batch::ObservedAccess;
    use isotherm_model::batch::Process;
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::movement::NodeId;
    use isotherm_model::source_kind::SourceKind;
    use std::path::Path;

    const BLOCK: u64 = 128 << 20;

    fn sample(physical: Option<u64>, hits: u64) -> ObservedAccess {
        let address = (Process::default(), 0x7f00_0000_0000);
        ObservedAccess {
            physical,
            ..ObservedAccess::at(address, SourceKind::Ibs, (hits, CountUnit::Samples))
        }
    }

    fn add(root: &Path, node: u32, blocks: &[u64]) {
        for block in blocks {
            let path = format!("sys/devices/system/node/node{node}/memory{block}");
            std::fs::create_dir_all(root.join(path)).expect("makes");
        }
    }

    fn size(root: &Path, text: &str) {
        let memory = root.join("sys/devices/system/memory");
        std::fs::create_dir_all(&memory).expect("makes");
        std::fs::write(memory.join("block_size_bytes"), text).expect("writes");
    }

    fn counted(nodes: &SampleNodes) -> Vec<(Option<u32>, u64)> {
        let samples = nodes.samples().iter();
        samples
            .map(|(node, count)| (node.map(|node| node.0), *count))
            .collect()
    }

    #[test]
    fn samples_count_for_the_node_whose_block_their_frame_lies_in() {
        let root = tempfile::tempdir().expect("a directory");
        size(root.path(), "8000000\n");
        add(root.path(), 0, &[0, 1, 2]);
        // The third block is on the border of both.
        add(root.path(), 2, &[2, 32]);
        let mut nodes = SampleNodes::new(root.path());
        nodes.count(
            &[
                sample(Some(BLOCK - 1), 5),
                sample(Some(BLOCK), 1),
                sample(Some(2 * BLOCK + 7), 3),
                sample(Some(32 * BLOCK), 10),
                sample(None, 100),
            ],
            |_, _| {},
        );
        assert_eq!(
            counted(&nodes),
            [(None, 3), (Some(0), 6), (Some(2), 10)],
            "those without a physical address do not count"
        );
        // Memory that is unknown, and then is added.
        let added = [sample(Some(40 * BLOCK), 1), sample(Some(u64::MAX), 1)];
        nodes.count(&added, |_, _| {});
        assert_eq!(counted(&nodes)[0], (None, 5));
        add(root.path(), 7, &[40]);
        nodes.count(&added, |_, _| {});
        assert_eq!(
            counted(&nodes),
            [(None, 6), (Some(0), 6), (Some(2), 10), (Some(7), 1)]
        );
    }

    #[test]
    fn where_the_kernel_tells_no_blocks_no_node_is_known() {
        let root = tempfile::tempdir().expect("a directory");
        for text in [None, Some("0"), Some("many"), Some("")] {
            text.into_iter().for_each(|text| size(root.path(), text));
            add(root.path(), 0, &[0]);
            let mut nodes = SampleNodes::new(root.path());
            nodes.count(&[sample(Some(4096), 2)], |_, _| {});
            assert_eq!(counted(&nodes), [(None, 2)]);
        }
        assert_eq!(
            SampleNodes::new(root.path())
                .samples()
                .get(&Some(NodeId(0))),
            None
        );
    }
}
