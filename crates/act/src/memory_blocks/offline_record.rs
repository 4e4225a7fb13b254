//! The record on disk of memory that is offline: what a next start brings back after a death.
//!
//! ```text
//! isotherm offline memory 1
//! node 1 block 40 movable
//! ```

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use isotherm_model::movement::NodeId;

use super::{BlockError, BlockZone, MemoryBlock, NodeBlocks};
use crate::record_file;

/// First line of a record.
const RECORD: &str = "isotherm offline memory 1";

/// Largest record that is read: blocks of 128 MiB of a machine with 64 TiB take 16 MiB.
const RECORD_BYTES: u64 = 32 << 20;

/// The record on disk of the blocks that are offline, or are about to be, of all nodes.
#[derive(Clone, Debug)]
pub struct OfflineRecord {
    path: PathBuf,
}

impl OfflineRecord {
    /// In this directory, which only its owner may write.
    #[must_use]
    pub fn within(directory: &Path) -> Self {
        Self {
            path: directory.join("offline-memory"),
        }
    }

    /// The nodes of the record; none where there is no record.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(&self) -> Result<Vec<NodeBlocks>, BlockError> {
        match isotherm_sys::files::read_input_text(&self.path, RECORD_BYTES) {
            Ok(text) => parse(&text).map_err(|why| self.error(why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Replaces the record; removes it where no block is left. On disk before it returns.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, nodes: &[NodeBlocks]) -> Result<(), BlockError> {
        let text = (!nodes.is_empty()).then(|| text(nodes));
        let written = record_file::replace(&self.path, text.as_deref());
        written.map_err(|error| self.error(error))
    }

    fn error(&self, why: impl ToString) -> BlockError {
        BlockError::Record {
            path: self.path.display().to_string(),
            why: why.to_string(),
        }
    }
}

fn text(nodes: &[NodeBlocks]) -> String {
    let mut text = format!("{RECORD}\n");
    for node in nodes {
        for block in &node.blocks {
            // Writing into a string cannot fail.
            let _ = writeln!(
                text,
                "node {} block {} {}",
                node.node.0,
                block.number,
                block.zone.word()
            );
        }
    }
    text
}

fn parse(text: &str) -> Result<Vec<NodeBlocks>, String> {
    let mut lines = text.lines();
    if lines.next() != Some(RECORD) {
        return Err(format!("the first line is not \"{RECORD}\""));
    }
    let mut nodes: Vec<NodeBlocks> = Vec::new();
    for (line, number) in lines.zip(2..) {
        let words: Vec<&str> = line.split(' ').collect();
        let wrong = || format!("line {number} is not `node 1 block 40 movable`");
        let ["node", node, "block", block, zone] = words[..] else {
            return Err(wrong());
        };
        let node = NodeId(u32::from_str(node).map_err(|_| wrong())?);
        let zones = [BlockZone::Movable, BlockZone::Kernel].into_iter();
        let zone = zones.into_iter().find(|it| it.word() == zone);
        let block = MemoryBlock {
            number: u64::from_str(block).map_err(|_| wrong())?,
            zone: zone.ok_or_else(wrong)?,
        };
        match nodes.iter_mut().find(|it| it.node == node) {
            Some(known) => known.blocks.push(block),
            None => nodes.push(NodeBlocks {
                node,
                blocks: vec![block],
            }),
        }
    }
    Ok(nodes)
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
