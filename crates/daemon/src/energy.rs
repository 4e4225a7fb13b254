//! [`EnergySaver`] empties those memory nodes of `energy.offline` whose data fits on the others, by taking their memory offline, so that
//! their devices may sleep, until the others have too little free memory or the daemon ends. Meanwhile [`AwakeOnly`] lets the daemon move
//! nothing to these nodes. [`restore`] brings back memory that a killed daemon left offline.
//!
//! ```text
//! meminfo of each node --> NodeSleep --Empty--> record on disk --> blocks offline     pages of all programs move by the kernel
//!                                    --Wake---> blocks online  --> record shortened
//! ```
//!
//! It runs on a thread of its own: the kernel takes as long for a block as its pages take to move, and the loop must answer systemd
//! meanwhile. Every node is online again when the daemon ends.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use isotherm_act::memory_blocks::{BlockError, DrySysfs, NodeBlocks, OfflineRecord};
use isotherm_act::sysfs::{Sysfs, SysfsFiles};
use isotherm_console::{Console, print};
use isotherm_model::movement::{NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_model::words::counted;
use isotherm_policy::energy::{AwakeNode, NodeChange, NodeSleep};
use isotherm_topology::{cpu_list, meminfo};
use parking_lot::Mutex;

use crate::config::Config;

/// Brings back the memory that a killed daemon left offline. Called before the tiers are detected: memory that is offline is no tier.
///
/// # Errors
/// The record is damaged, or memory did not come back.
pub(crate) fn restore(config: &Config, dry_run: bool, console: Console) -> Result<()> {
    let record = OfflineRecord::within(&config.serve.state);
    let left = record.read()?;
    if left.is_empty() || dry_run || UnixStream::connect(&config.serve.socket).is_ok() {
        return Ok(());
    }
    let mut sysfs = SysfsFiles::below(Path::new("/"));
    bring_back(&left, &record, &mut sysfs)?;
    let nodes: Vec<String> = left.iter().map(|it| it.node.0.to_string()).collect();
    console.info(&format!(
        "memory of node {} is online again, which an earlier daemon left offline",
        nodes.join(", ")
    ));
    Ok(())
}

/// Brings the nodes back online; the record keeps those whose memory stays offline.
///
/// # Errors
/// The error of the first node whose memory stays offline, or of the record.
fn bring_back(
    nodes: &[NodeBlocks],
    record: &OfflineRecord,
    sysfs: &mut impl Sysfs,
) -> Result<(), BlockError> {
    let mut left = Vec::new();
    let mut first = Ok(());
    for node in nodes {
        if let Err(error) = node.bring_online(sysfs) {
            left.push(node.clone());
            first = first.and(Err(error));
        }
    }
    record.write(&left)?;
    first
}

/// The nodes that are offline, or about to be: no data is moved there.
type OfflineNodes = Arc<Mutex<BTreeSet<NodeId>>>;

/// The thread that takes memory offline. Dropping it brings all memory back.
#[derive(Debug, Default)]
pub(crate) struct EnergySaver {
    offline: OfflineNodes,
    /// The thread, and what ends it when it is dropped.
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl EnergySaver {
    /// Starts the thread; without nodes in the configuration there is none.
    ///
    /// # Errors
    /// A configured node is not one of this machine's, or the thread cannot be started.
    pub(crate) fn start(config: &Config, dry_run: bool, console: Console) -> Result<Self> {
        if config.energy.offline.is_empty() {
            return Ok(Self::default());
        }
        let offline = OfflineNodes::default();
        let sysfs = SysfsFiles::below(Path::new("/"));
        for node in &config.energy.offline {
            NodeBlocks::online(&sysfs, NodeId(*node)).context("energy.offline")?;
        }
        let nodes = NodeEmptier {
            root: PathBuf::from("/"),
            sysfs,
            record: OfflineRecord::within(&config.serve.state),
            sleep: NodeSleep::new(config.energy.reserve.0),
            may_sleep: config.energy.offline.iter().copied().map(NodeId).collect(),
            taken: Vec::new(),
            offline: offline.clone(),
            dry_run,
            console,
        };
        let epoch = Duration::from_nanos(config.epoch.0.0);
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("energy".to_owned())
            .spawn(move || nodes.run(epoch, &stopped))
            .context("energy.offline: no thread can be started")?;
        Ok(Self {
            offline,
            thread: Some((stop, thread)),
        })
    }

    /// The nodes that are offline, or about to be.
    pub(crate) fn offline(&self) -> BTreeSet<NodeId> {
        self.offline.lock().clone()
    }
}

impl Drop for EnergySaver {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            drop(stop);
            // A panic was printed by the thread.
            let _ = thread.join();
        }
    }
}

/// The state of the thread.
struct NodeEmptier<S> {
    root: PathBuf,
    sysfs: S,
    record: OfflineRecord,
    sleep: NodeSleep,
    may_sleep: BTreeSet<NodeId>,
    /// The blocks that were taken offline.
    taken: Vec<NodeBlocks>,
    offline: OfflineNodes,
    dry_run: bool,
    console: Console,
}

impl<S: Sysfs> NodeEmptier<S> {
    fn run(mut self, epoch: Duration, stopped: &Receiver<()>) {
        while stopped.recv_timeout(epoch) == Err(RecvTimeoutError::Timeout) {
            self.look();
        }
        self.wake_all();
    }

    /// Looks at the memory of all nodes, and changes one at most.
    fn look(&mut self) {
        let awake = awake_nodes(&self.root, &self.may_sleep, self.sleep.asleep());
        let Some(change) = self.sleep.decide(&awake) else {
            return;
        };
        let done = match change {
            NodeChange::Empty(node) => self.empty(node),
            NodeChange::Wake(node) => self.wake(node),
        };
        match done {
            Ok(said) => {
                self.sleep.changed(change);
                self.console.info(&said);
            }
            Err(error) => {
                self.sleep.failed(change);
                self.console.warn(&error.to_string());
            }
        }
        *self.offline.lock() = self.sleep.asleep().iter().copied().collect();
    }

    fn empty(&mut self, node: NodeId) -> Result<String, BlockError> {
        let blocks = NodeBlocks::online(&self.sysfs, node)?;
        if self.dry_run {
            let mut dry = DrySysfs::of(&self.sysfs);
            blocks.take_offline(&mut dry)?;
            return Ok(would(&dry.commands));
        }
        // Nothing is moved there from now on.
        self.offline.lock().insert(node);
        self.taken.push(blocks.clone());
        if let Err(error) = self.record.write(&self.taken) {
            self.taken.pop();
            return Err(error);
        }
        if let Err(error) = blocks.take_offline(&mut self.sysfs) {
            let is_back =
                !matches!(&error, BlockError::Stays { restored, .. } if restored.lost > 0);
            if is_back {
                self.taken.pop();
                self.record.write(&self.taken)?;
            }
            return Err(error);
        }
        Ok(format!(
            "node {} is empty and offline ({}): its devices may sleep",
            node.0,
            counted(blocks.blocks.len(), "block")
        ))
    }

    fn wake(&mut self, node: NodeId) -> Result<String, BlockError> {
        let kept = self.taken.iter().filter(|it| it.node == node);
        let kept: Vec<NodeBlocks> = kept.cloned().collect();
        if self.dry_run {
            return Ok(format!("would: bring the memory of node {} back", node.0));
        }
        for blocks in &kept {
            blocks.bring_online(&mut self.sysfs)?;
        }
        self.taken.retain(|it| it.node != node);
        self.record.write(&self.taken)?;
        Ok(format!(
            "node {} is online again: the others have too little free memory",
            node.0
        ))
    }

    /// Brings all memory back. What fails stays in the record, for the next start.
    fn wake_all(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        if let Err(error) = bring_back(&self.taken, &self.record, &mut self.sysfs) {
            self.console.warn(&error.to_string());
        }
    }
}

/// Prints the commands of a dry run, and returns a summary of them.
fn would(commands: &[String]) -> String {
    let lines: Vec<String> = commands.iter().map(|it| format!("would: {it}\n")).collect();
    // A closed output must not stop the daemon.
    let _ = print(&lines.concat());
    format!("{} would empty the node", counted(commands.len(), "write"))
}

/// The nodes with memory that is online.
fn awake_nodes(root: &Path, may_sleep: &BTreeSet<NodeId>, asleep: &[NodeId]) -> Vec<AwakeNode> {
    let directory = root.join("sys/devices/system/node");
    let numbers = cpu_list::read(&directory.join("has_memory")).unwrap_or_default();
    let node = |number: u32| {
        let node = NodeId(number);
        let path = directory.join(format!("node{number}/meminfo"));
        let capacity = meminfo::total_bytes(&path).filter(|total| *total > 0)?;
        let free = meminfo::available_bytes(&path)?;
        (!asleep.contains(&node)).then_some(AwakeNode {
            node,
            capacity: Bytes(capacity),
            used: Bytes(capacity.saturating_sub(free)),
            may_sleep: may_sleep.contains(&node),
        })
    };
    numbers.into_iter().filter_map(node).collect()
}

/// An executor that moves nothing to nodes that are offline.
pub(crate) struct AwakeOnly<'a> {
    /// The executor of the moves to all other nodes.
    pub inner: Box<dyn RangeExecutor + 'a>,
    /// The nodes that are offline.
    pub offline: BTreeSet<NodeId>,
}

impl RangeExecutor for AwakeOnly<'_> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        match self.offline.contains(&action.node) {
            true => RangeOutcome::whole(
                action,
                Fate::NotAttempted(Reason::from("the node is offline, to save energy")),
            ),
            false => self.inner.carry_out(action),
        }
    }

    /// Keeps actions together that the inner executor may carry out at once.
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let of_one_kind = actions.chunk_by(|one, other| {
            self.offline.contains(&one.node) == self.offline.contains(&other.node)
        });
        let kinds: Vec<&[RangeAction]> = of_one_kind.collect();
        let mut outcomes = Vec::with_capacity(actions.len());
        for kind in kinds {
            match self.offline.contains(&kind[0].node) {
                true => outcomes.extend(kind.iter().map(|action| self.carry_out(*action))),
                false => outcomes.extend(self.inner.execute(kind)),
            }
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::{AwakeOnly, NodeEmptier, OfflineNodes, awake_nodes};
    use isotherm_act::memory_blocks::{BlockZone, MemoryBlock, NodeBlocks, OfflineRecord};
    use isotherm_act::sysfs::{Sysfs, SysfsFiles};
    use isotherm_console::Console;
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::{Bytes, Capacity};
    use isotherm_policy::energy::NodeSleep;
    use std::collections::BTreeSet;
    use std::io;
    use std::path::Path;
    use tempfile::TempDir;

    /// A machine with two nodes of 1 GiB; node 1 has the blocks 8 and 9.
    struct Machine(TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().expect("a directory"));
            machine.write("has_memory", "0-1");
            for block in [8, 9] {
                machine.write(&format!("node1/memory{block}/state"), "online");
                machine.write(&format!("node1/memory{block}/valid_zones"), "Movable");
            }
            machine.uses([100, 100]);
            machine
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join("sys/devices/system/node").join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
            std::fs::write(path, format!("{text}\n")).expect("written");
        }

        /// Megabytes that the nodes use.
        fn uses(&self, used: [u64; 2]) {
            for (node, used) in used.into_iter().enumerate() {
                let free = (1024 - used) * 1024;
                let text =
                    format!("Node {node} MemTotal: 1048576 kB\nNode {node} MemFree: {free} kB");
                self.write(&format!("node{node}/meminfo"), &text);
            }
        }

        fn emptier(&self, dry_run: bool, refuses: bool) -> NodeEmptier<Kernel> {
            NodeEmptier {
                root: self.0.path().to_owned(),
                sysfs: Kernel {
                    files: SysfsFiles::below(self.0.path()),
                    refuses,
                },
                record: OfflineRecord::within(self.0.path()),
                sleep: NodeSleep::new(Capacity::Share(0.2)),
                may_sleep: BTreeSet::from([NodeId(1)]),
                taken: Vec::new(),
                offline: OfflineNodes::default(),
                dry_run,
                console: Console::new(true),
            }
        }

        fn state(&self, block: u32) -> String {
            let path = format!("sys/devices/system/node/node1/memory{block}/state");
            let text = std::fs::read_to_string(self.0.path().join(path)).expect("a state");
            text.trim().to_owned()
        }

        fn has_record(&self) -> bool {
            self.0.path().join("offline-memory").exists()
        }
    }

    /// The files of a machine, whose kernel keeps block 8 where it refuses.
    struct Kernel {
        files: SysfsFiles,
        refuses: bool,
    }

    impl Sysfs for Kernel {
        fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
            self.files.names(directory)
        }

        fn read(&self, file: &Path) -> io::Result<String> {
            self.files.read(file)
        }

        fn write(&mut self, file: &Path, word: &str) -> io::Result<()> {
            let is_kept = file.ends_with("memory8/state") && word == "offline";
            if is_kept && self.refuses {
                return Err(io::Error::from(io::ErrorKind::ResourceBusy));
            }
            // The state of a block is as long either way, and a file is not cut.
            let state = if word == "offline" { word } else { "online " };
            self.files.write(file, state)
        }
    }

    #[test]
    fn a_node_whose_data_fits_elsewhere_goes_offline_and_comes_back_when_memory_is_short() {
        let machine = Machine::new();
        let mut emptier = machine.emptier(false, false);
        emptier.look();
        assert_eq!(machine.state(8), "online");
        emptier.look();
        assert_eq!(
            (machine.state(8), machine.state(9)),
            ("offline".into(), "offline".into())
        );
        assert_eq!(*emptier.offline.lock(), BTreeSet::from([NodeId(1)]));
        assert!(machine.has_record());
        machine.uses([950, 0]);
        emptier.look();
        assert_eq!(
            (machine.state(8), machine.state(9)),
            ("online".into(), "online".into())
        );
        assert!(emptier.offline.lock().is_empty() && !machine.has_record());
    }

    #[test]
    fn a_refusal_half_way_leaves_all_blocks_online_and_no_record() {
        let machine = Machine::new();
        let mut emptier = machine.emptier(false, true);
        emptier.look();
        emptier.look();
        assert_eq!(
            (machine.state(8), machine.state(9)),
            ("online".into(), "online".into())
        );
        assert!(emptier.offline.lock().is_empty() && !machine.has_record());
    }

    #[test]
    fn the_end_brings_all_back_and_the_next_daemon_what_a_killed_one_left() {
        let machine = Machine::new();
        let mut emptier = machine.emptier(false, false);
        emptier.look();
        emptier.look();
        emptier.wake_all();
        assert_eq!(machine.state(9), "online");
        let mut killed = machine.emptier(false, false);
        killed.look();
        killed.look();
        assert_eq!(machine.state(9), "offline");
        let next = machine.emptier(false, false);
        let (left, mut sysfs) = (next.record.read().expect("a record"), next.sysfs);
        super::bring_back(&left, &next.record, &mut sysfs).expect("comes back");
        assert_eq!(
            (machine.state(8), machine.has_record()),
            ("online".into(), false)
        );
    }

    #[test]
    fn a_node_that_does_not_come_back_keeps_no_other_offline() {
        let machine = Machine::new();
        for (node, block) in [(1, 8), (2, 20)] {
            let state = format!("node{node}/memory{block}/state");
            machine.write(&state, "offline");
        }
        let blocks = |node, number| NodeBlocks {
            node: NodeId(node),
            blocks: vec![MemoryBlock {
                number,
                zone: BlockZone::Movable,
            }],
        };
        let record = OfflineRecord::within(machine.0.path());
        let absent = blocks(7, 99);
        let left = [absent.clone(), blocks(1, 8), blocks(2, 20)];
        let mut sysfs = machine.emptier(false, false).sysfs;
        let error = super::bring_back(&left, &record, &mut sysfs).expect_err("node 7 is absent");
        assert!(error.to_string().contains("node 7"), "{error}");
        assert_eq!(machine.state(8), "online");
        let second = machine
            .0
            .path()
            .join("sys/devices/system/node/node2/memory20/state");
        let second = std::fs::read_to_string(second).expect("a state");
        assert_eq!(second.trim(), "online");
        assert_eq!(record.read().expect("a record"), [absent]);
    }

    #[test]
    fn a_dry_run_changes_nothing() {
        let machine = Machine::new();
        let mut emptier = machine.emptier(true, false);
        emptier.look();
        emptier.look();
        assert_eq!(
            (machine.state(8), machine.has_record()),
            ("online".into(), false)
        );
    }

    #[test]
    fn copies_of_files_are_no_data_and_a_node_without_memory_is_none() {
        let machine = Machine::new();
        machine.write(
            "node0/meminfo",
            "Node 0 MemTotal: 1000 kB\nNode 0 MemFree: 100 kB\nNode 0 Inactive(file): 300 kB",
        );
        machine.write(
            "node1/meminfo",
            "Node 1 MemTotal: 0 kB\nNode 1 MemFree: 0 kB",
        );
        let nodes = awake_nodes(machine.0.path(), &BTreeSet::new(), &[]);
        let [node] = nodes[..] else {
            panic!("{nodes:?}");
        };
        assert_eq!(
            (node.capacity, node.used),
            (Bytes(1000 << 10), Bytes(600 << 10))
        );
    }

    #[test]
    fn nothing_is_moved_to_a_node_that_is_offline() {
        struct Moved;
        impl RangeExecutor for Moved {
            fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
                RangeOutcome::whole(action, Fate::Moved)
            }
        }
        let mut executor = AwakeOnly {
            inner: Box::new(Moved),
            offline: BTreeSet::from([NodeId(1)]),
        };
        let mut fate = |node| {
            let action = RangeAction {
                process: Process::default(),
                range: AddressRange {
                    start: 0,
                    bytes: Bytes(4096),
                },
                node: NodeId(node),
            };
            executor.carry_out(action).parts[0].fate.clone()
        };
        assert_eq!(fate(0), Fate::Moved);
        assert!(matches!(fate(1), Fate::NotAttempted(Reason::Other(_))));
    }
}
