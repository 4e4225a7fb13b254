//! [`NodeBlocks`] takes all memory blocks of a node offline and back through sysfs, so that the daemon can empty nodes to save energy. The
//! kernel first moves the pages of a block away, whatever program has them; if it keeps one, those before it are brought back.
//! [`OfflineRecord`] keeps on disk which blocks are offline, or about to be; [`DrySysfs`] lists the writes of a dry run.
//!
//! ```text
//! /sys/devices/system/node/node1/memory40/state          online | offline       written: offline, online_movable, online_kernel
//!                                .../valid_zones         Movable | Normal | ..  the zone of a block that is online
//!                                .../removable           0 where memory cannot be taken offline at all
//! ```
//!
//! Before the first block is taken offline, all blocks are written to a *record* on disk, with their zones. After a crash the next start
//! brings them back by the record. So no memory stays offline unnoticed.
//!
//! Kernel document: `Documentation/admin-guide/mm/memory-hotplug.rst`. Blocks of boot memory mostly hold data of the kernel and stay; a
//! node is emptied for sure where its memory is in the zone `Movable` (`memhp_default_state=online_movable`, `movable_node`).

mod offline_record;

use std::io;
use std::path::{Path, PathBuf};

use isotherm_model::movement::NodeId;
use isotherm_model::words::counted;

pub use offline_record::OfflineRecord;

use crate::record_file::RecordError;
use crate::sysfs::Sysfs;

isotherm_model::variant_words! {
    /// The zone of a block, which determines how it is brought back.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum BlockZone {
        /// Pages that the kernel can always move.
        Movable = "movable",
        /// All other pages.
        Kernel = "kernel",
    }
}

impl BlockZone {
    /// The word that brings a block back into the zone.
    const fn online(self) -> &'static str {
        match self {
            Self::Movable => "online_movable",
            Self::Kernel => "online_kernel",
        }
    }
}

/// A block that was online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlock {
    /// Its number: its first address divided by the size of a block.
    pub number: u64,
    /// Its zone.
    pub zone: BlockZone,
}

/// The blocks of a node that were online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeBlocks {
    /// The node.
    pub node: NodeId,
    /// Its blocks, by number.
    pub blocks: Vec<MemoryBlock>,
}

/// Why memory is not offline or not back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The machine has no such node, or its kernel has no memory hotplug.
    #[error(
        "node {0} has no memory blocks that can be taken offline; a kernel with CONFIG_MEMORY_HOTREMOVE lists them in \
         /sys/devices/system/node/node{0}"
    )]
    NoBlocks(u32),
    /// The kernel kept a block online.
    #[error("{block} of node {node} stays online: {why}{}", restored.in_words())]
    Stays {
        /// The block, `memory40`.
        block: String,
        /// The node.
        node: u32,
        /// The kernel's error, and what to do.
        why: String,
        /// The result of bringing back the blocks that were offline already.
        restored: Restored,
    },
    /// Blocks did not come back.
    #[error("{} of node {node} did not come back: {why}; `echo online > /sys/devices/system/memory/{}/state` tries again", blocks.join(", "), blocks.first().map_or("memoryN", String::as_str))]
    Lost {
        /// The blocks.
        blocks: Vec<String>,
        /// The node.
        node: u32,
        /// The kernel's error for the first block.
        why: String,
    },
    /// The record of the blocks cannot be kept.
    #[error("{0}; without a record of the blocks no memory is taken offline")]
    Record(#[from] RecordError),
}

/// The blocks of an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Blocks that were offline and are online again.
    pub back: usize,
    /// Blocks that are still offline.
    pub lost: usize,
}

impl Restored {
    fn in_words(self) -> String {
        match (self.back, self.lost) {
            (0, 0) => String::new(),
            (back, 0) => format!("; {} before it came back", counted(back, "block")),
            (back, lost) => format!(
                "; {} before it came back and {lost} did not",
                counted(back, "block")
            ),
        }
    }
}

fn node_directory(node: NodeId) -> PathBuf {
    PathBuf::from(format!("sys/devices/system/node/node{}", node.0))
}

fn block_name(number: u64) -> String {
    format!("memory{number}")
}

impl NodeBlocks {
    /// The blocks of a node that are online.
    ///
    /// # Errors
    /// The node has none.
    pub fn online(sysfs: &impl Sysfs, node: NodeId) -> Result<Self, BlockError> {
        let directory = node_directory(node);
        let names = sysfs.names(&directory).unwrap_or_default();
        let numbers = names.iter().filter_map(|name| name.strip_prefix("memory"));
        let mut numbers: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
        numbers.sort_unstable();
        let block = |number| {
            let block = directory.join(block_name(number));
            if sysfs.read(&block.join("state")).ok()? != "online" {
                return None;
            }
            let zones = sysfs.read(&block.join("valid_zones")).unwrap_or_default();
            let zone = match zones.split_whitespace().next() {
                Some("Movable") => BlockZone::Movable,
                _ => BlockZone::Kernel,
            };
            Some(MemoryBlock { number, zone })
        };
        let blocks: Vec<MemoryBlock> = numbers.into_iter().filter_map(block).collect();
        match blocks.is_empty() {
            true => Err(BlockError::NoBlocks(node.0)),
            false => Ok(Self { node, blocks }),
        }
    }

    /// Takes all blocks offline, the highest first: memory is filled from the lowest.
    ///
    /// # Errors
    /// The kernel keeps a block; the blocks taken offline before it are brought back.
    pub fn take_offline(&self, sysfs: &mut impl Sysfs) -> Result<(), BlockError> {
        for (at, block) in self.blocks.iter().enumerate().rev() {
            let Err(why) = self.set(sysfs, *block, "offline", "offline") else {
                continue;
            };
            let gone = Self {
                node: self.node,
                blocks: self.blocks[at + 1..].to_vec(),
            };
            let lost = match gone.bring_online(sysfs) {
                Err(BlockError::Lost { blocks, .. }) => blocks.len(),
                _ => 0,
            };
            return Err(BlockError::Stays {
                block: block_name(block.number),
                node: self.node.0,
                why: refusal(&why),
                restored: Restored {
                    back: gone.blocks.len() - lost,
                    lost,
                },
            });
        }
        Ok(())
    }

    /// Brings back all blocks that are offline, each into its zone. Every block is tried.
    ///
    /// # Errors
    /// The blocks that did not come back.
    pub fn bring_online(&self, sysfs: &mut impl Sysfs) -> Result<(), BlockError> {
        let mut lost = Vec::new();
        let mut first = None;
        for block in &self.blocks {
            let state = self.file(*block, "state");
            if sysfs.read(&state).is_ok_and(|state| state == "online") {
                continue;
            }
            if let Err(why) = self.set(sysfs, *block, block.zone.online(), "online") {
                lost.push(block_name(block.number));
                first.get_or_insert(why);
            }
        }
        match first {
            None => Ok(()),
            Some(why) => Err(BlockError::Lost {
                blocks: lost,
                node: self.node.0,
                why: why.to_string(),
            }),
        }
    }

    fn file(&self, block: MemoryBlock, name: &str) -> PathBuf {
        let directory = node_directory(self.node).join(block_name(block.number));
        directory.join(name)
    }

    /// Writes a word and checks the state that it must lead to: the kernel ignores words that a driver does not carry out.
    fn set(
        &self,
        sysfs: &mut impl Sysfs,
        block: MemoryBlock,
        word: &str,
        wanted: &str,
    ) -> io::Result<()> {
        let state = self.file(block, "state");
        sysfs.write(&state, word)?;
        match sysfs.read(&state)? {
            now if now == wanted => Ok(()),
            now => Err(io::Error::other(format!(
                "its state is \"{now}\" after \"{word}\" was written"
            ))),
        }
    }
}

/// The meaning of a refusal.
fn refusal(error: &io::Error) -> String {
    let meaning = match error.kind() {
        io::ErrorKind::ResourceBusy => {
            "it has pages that the kernel cannot move, of itself or in use by a device; memory that is online as Movable has none"
        }
        io::ErrorKind::PermissionDenied => "only root may take memory offline",
        io::ErrorKind::InvalidInput => {
            "the firmware's tables or the kernel do not let this block go"
        }
        _ => return error.to_string(),
    };
    format!("{error}: {meaning}")
}

/// A sysfs for dry runs: it reads a machine, lists the commands that would write, and answers as if they were carried out.
#[derive(Debug)]
pub struct DrySysfs<'a, S> {
    machine: &'a S,
    /// The commands that would write, in order.
    pub commands: Vec<String>,
    written: std::collections::BTreeMap<PathBuf, &'static str>,
}

impl<'a, S: Sysfs> DrySysfs<'a, S> {
    /// A dry run on this machine.
    pub const fn of(machine: &'a S) -> Self {
        Self {
            machine,
            commands: Vec::new(),
            written: std::collections::BTreeMap::new(),
        }
    }
}

impl<S: Sysfs> Sysfs for DrySysfs<'_, S> {
    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        self.machine.names(directory)
    }

    fn read(&self, file: &Path) -> io::Result<String> {
        match self.written.get(file) {
            Some(state) => Ok((*state).to_owned()),
            None => self.machine.read(file),
        }
    }

    fn write(&mut self, file: &Path, word: &str) -> io::Result<()> {
        self.commands
            .push(format!("echo {word} > /{}", file.display()));
        let state = if word == "offline" {
            "offline"
        } else {
            "online"
        };
        self.written.insert(file.to_owned(), state);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockError, BlockZone, DrySysfs, MemoryBlock, NodeBlocks, Restored};
    use crate::sysfs::{Sysfs, SysfsFiles};
    use isotherm_model::movement::NodeId;
    use std::collections::BTreeMap;
    use std::io;
    use std::path::{Path, PathBuf};

    /// Node 1 has three blocks of the zone Movable and one that is offline; node 0 two of the kernel.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (node, block, state, zones) in [
            (0, 0, "online", "none"),
            (0, 1, "online", "Normal"),
            (1, 9, "online", "Movable"),
            (1, 10, "online", "Movable"),
            (1, 32, "offline", "Normal Movable"),
            (1, 33, "online", "Movable"),
        ] {
            let path = format!("sys/devices/system/node/node{node}/memory{block}");
            let path = root.path().join(path);
            std::fs::create_dir_all(&path).expect("a directory");
            std::fs::write(path.join("state"), format!("{state}\n")).expect("written");
            std::fs::write(path.join("valid_zones"), format!("{zones}\n")).expect("written");
        }
        std::fs::write(
            root.path().join("sys/devices/system/node/node1/meminfo"),
            "",
        )
        .expect("written");
        root
    }

    pub(super) fn movable(numbers: &[u64]) -> NodeBlocks {
        let block = |number: &u64| MemoryBlock {
            number: *number,
            zone: BlockZone::Movable,
        };
        NodeBlocks {
            node: NodeId(1),
            blocks: numbers.iter().map(block).collect(),
        }
    }

    /// A kernel that refuses some writes, with all that were tried.
    struct Kernel {
        states: BTreeMap<PathBuf, String>,
        refuses: Vec<(&'static str, &'static str, i32)>,
        writes: Vec<String>,
    }

    impl Kernel {
        fn refusing(refuses: &[(&'static str, &'static str, i32)]) -> Self {
            Self {
                states: BTreeMap::new(),
                refuses: refuses.to_vec(),
                writes: Vec::new(),
            }
        }
    }

    impl Sysfs for Kernel {
        fn names(&self, _directory: &Path) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }

        fn read(&self, file: &Path) -> io::Result<String> {
            let state = self.states.get(file);
            Ok(state.map_or("online", String::as_str).to_owned())
        }

        fn write(&mut self, file: &Path, word: &str) -> io::Result<()> {
            let block = file.parent().and_then(Path::file_name).expect("a block");
            let block = block.to_string_lossy().into_owned();
            self.writes.push(format!("{block} {word}"));
            let refused = self
                .refuses
                .iter()
                .find(|it| (it.0, it.1) == (&*block, word));
            if let Some((.., error)) = refused {
                return Err(io::Error::from_raw_os_error(*error));
            }
            let state = if word == "offline" {
                "offline"
            } else {
                "online"
            };
            self.states.insert(file.to_owned(), state.to_owned());
            Ok(())
        }
    }

    #[test]
    fn the_blocks_of_a_node_that_are_online_are_found_with_their_zones() {
        let root = machine();
        let sysfs = SysfsFiles::below(root.path());
        assert_eq!(
            NodeBlocks::online(&sysfs, NodeId(1)),
            Ok(movable(&[9, 10, 33]))
        );
        let kernel = NodeBlocks::online(&sysfs, NodeId(0)).expect("blocks");
        assert!(
            kernel
                .blocks
                .iter()
                .all(|block| block.zone == BlockZone::Kernel)
        );
        assert_eq!(
            NodeBlocks::online(&sysfs, NodeId(7)),
            Err(BlockError::NoBlocks(7))
        );
    }

    #[test]
    fn a_node_goes_offline_and_comes_back_in_the_files_of_the_machine() {
        let root = machine();
        let mut sysfs = SysfsFiles::below(root.path());
        let blocks = NodeBlocks::online(&sysfs, NodeId(1)).expect("blocks");
        assert_eq!(blocks.take_offline(&mut sysfs), Ok(()));
        assert_eq!(
            NodeBlocks::online(&sysfs, NodeId(1)),
            Err(BlockError::NoBlocks(1))
        );
        // A real kernel answers `online` to `online_movable`; a file keeps the word.
        let lost = blocks
            .bring_online(&mut sysfs)
            .expect_err("a file is no kernel");
        assert!(lost.to_string().contains("online_movable"), "{lost}");
    }

    #[test]
    fn a_block_that_stays_brings_back_those_that_went_before_it() {
        let mut kernel = Kernel::refusing(&[("memory9", "offline", libc::EBUSY)]);
        let error = movable(&[9, 10, 33])
            .take_offline(&mut kernel)
            .expect_err("stays");
        assert_eq!(
            kernel.writes,
            [
                "memory33 offline",
                "memory10 offline",
                "memory9 offline",
                "memory10 online_movable",
                "memory33 online_movable"
            ]
        );
        let BlockError::Stays { restored, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*restored, Restored { back: 2, lost: 0 });
        let said = error.to_string();
        assert!(
            said.starts_with("memory9 of node 1 stays online: "),
            "{said}"
        );
        assert!(
            said.contains("cannot move") && said.ends_with("2 blocks before it came back"),
            "{said}"
        );
    }

    #[test]
    fn a_block_that_does_not_come_back_is_named_and_the_others_are_tried() {
        let mut kernel = Kernel::refusing(&[
            ("memory9", "offline", libc::EBUSY),
            ("memory10", "online_movable", libc::ENOMEM),
        ]);
        let blocks = movable(&[9, 10, 33]);
        let error = blocks
            .take_offline(&mut kernel)
            .expect_err("stays")
            .to_string();
        assert!(
            error.ends_with("1 block before it came back and 1 did not"),
            "{error}"
        );
        kernel.refuses.clear();
        kernel.writes.clear();
        assert_eq!(blocks.bring_online(&mut kernel), Ok(()));
        assert_eq!(kernel.writes, ["memory10 online_movable"]);
    }

    #[test]
    fn a_dry_run_lists_the_commands_and_changes_nothing() {
        let root = machine();
        let sysfs = SysfsFiles::below(root.path());
        let blocks = NodeBlocks::online(&sysfs, NodeId(1)).expect("blocks");
        let mut dry = DrySysfs::of(&sysfs);
        assert_eq!(blocks.take_offline(&mut dry), Ok(()));
        assert_eq!(dry.commands.len(), 3);
        assert_eq!(
            dry.commands[0],
            "echo offline > /sys/devices/system/node/node1/memory33/state"
        );
        assert_eq!(blocks.bring_online(&mut dry), Ok(()));
        assert_eq!(NodeBlocks::online(&sysfs, NodeId(1)), Ok(blocks));
    }
}
