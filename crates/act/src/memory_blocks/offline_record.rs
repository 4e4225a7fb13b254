//! [`OfflineRecord`] is the record on disk of the memory that is offline, or about to be, which the daemon's next start brings back after a
//! crash.
//!
//! ```text
//! isotherm offline memory 1
//! node 1 block 40 movable
//! ```

use std::path::Path;

use isotherm_model::movement::NodeId;

use super::{BlockError, BlockZone, MemoryBlock, NodeBlocks};
use crate::record_file::RecordFile;

/// The record on disk of the blocks that are offline, or are about to be, of all nodes.
#[derive(Clone, Debug)]
pub struct OfflineRecord(RecordFile);

impl OfflineRecord {
    /// The record in this directory, which only its owner may write.
    #[must_use]
    pub fn within(directory: &Path) -> Self {
        Self(RecordFile {
            path: directory.join("offline-memory"),
            first_line: "isotherm offline memory 1",
            // Blocks of 128 MiB of a machine with 64 TiB take 16 MiB.
            bytes_max: 32 << 20,
        })
    }

    /// The nodes of the record; none where there is no record.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(&self) -> Result<Vec<NodeBlocks>, BlockError> {
        Ok(self.0.read("node 1 block 40 movable", add)?)
    }

    /// Replaces the record; removes it where no block is left. The change is on disk before this returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, nodes: &[NodeBlocks]) -> Result<(), BlockError> {
        let of_node = |node: &NodeBlocks| {
            let number = node.node.0;
            let line = move |block: &MemoryBlock| {
                format!("node {number} block {} {}", block.number, block.zone.word())
            };
            node.blocks.iter().map(line).collect::<Vec<_>>()
        };
        let lines: Vec<String> = nodes.iter().flat_map(of_node).collect();
        Ok(self.0.write(&lines)?)
    }
}

/// Adds the block of a line to its node.
fn add(nodes: &mut Vec<NodeBlocks>, words: &[&str]) -> Option<()> {
    let ["node", node, "block", block, zone] = words else {
        return None;
    };
    let node = NodeId(node.parse().ok()?);
    let block = MemoryBlock {
        number: block.parse().ok()?,
        zone: BlockZone::from_word(zone)?,
    };
    match nodes.iter_mut().find(|it| it.node == node) {
        Some(known) => known.blocks.push(block),
        None => nodes.push(NodeBlocks {
            node,
            blocks: vec![block],
        }),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::movable;
    use super::{BlockZone, OfflineRecord};
    use isotherm_model::movement::NodeId;

    #[test]
    fn a_record_is_read_back_and_removed_with_its_last_block() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = OfflineRecord::within(directory.path());
        assert_eq!(record.read(), Ok(Vec::new()));
        let mut other = movable(&[40]);
        other.node = NodeId(2);
        other.blocks[0].zone = BlockZone::Kernel;
        let nodes = [movable(&[9, 10]), other];
        record.write(&nodes).expect("written");
        assert_eq!(record.read().as_deref(), Ok(&nodes[..]));
        record.write(&[]).expect("removed");
        record.write(&[]).expect("removed before");
        let left = std::fs::read_dir(directory.path()).expect("a directory");
        assert_eq!(left.count(), 0);
    }

    #[test]
    fn a_damaged_record_is_refused_with_its_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = OfflineRecord::within(directory.path());
        for (text, wrong) in [
            ("", "the first line"),
            (
                "isotherm offline memory 1\nnode 1 block x movable\n",
                "line 2",
            ),
            ("isotherm offline memory 1\nnode 1 block 4 warm\n", "line 2"),
        ] {
            std::fs::write(directory.path().join("offline-memory"), text).expect("written");
            let error = record.read().expect_err("damaged").to_string();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
