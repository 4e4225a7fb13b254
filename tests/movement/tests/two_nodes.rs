//! Tests that need two nodes with memory, so that pages really change their node. On a machine of one node each
//! test reports it and passes; a virtual machine of two runs them.

use std::process::Command;

use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::Kernel;
use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_movement::fork_lock::ForkLock;
use isotherm_movement::placement::place;
use isotherm_movement::staged::Staged;
use isotherm_movement::{nodes, whole_process};
use isotherm_sys::policy::MempolicyMode;
use isotherm_sys::staged::{StagedCopy, StagedSettings, UNIT_BYTES};
use isotherm_sys::{memory, pages};

const PAGE: usize = 4096;
const UNITS: usize = 4;

/// Two nodes, or the reason why the machine has not got them.
fn two_nodes() -> Option<(NodeId, NodeId)> {
    match nodes::with_memory().as_slice() {
        [a, b, ..] => Some((NodeId(*a), NodeId(*b))),
        other => {
            isotherm_skip::skip!("this machine has {} node with memory, not two", other.len());
            None
        }
    }
}

/// Units of private memory that are unmapped with it.
struct Field {
    map: usize,
    start: usize,
    units: usize,
}

impl Field {
    fn new(units: usize, huge: bool) -> Self {
        let map = memory::fresh((units + 1) * UNIT_BYTES).expect("memory");
        let start = map.next_multiple_of(UNIT_BYTES);
        let advice = if huge {
            libc::MADV_HUGEPAGE
        } else {
            libc::MADV_NOHUGEPAGE
        };
        // SAFETY: the range was mapped here.
        let _ = unsafe { memory::advise(start, units * UNIT_BYTES, advice) };
        Self { map, start, units }
    }

    fn bytes(&self) -> usize {
        self.units * UNIT_BYTES
    }

    fn fill(&self) {
        for word in (self.start..self.start + self.bytes()).step_by(8) {
            // SAFETY: in bounds of the mapping, aligned, used by this thread alone.
            unsafe { (word as *mut usize).write(word ^ 0x5eed) };
        }
    }

    fn is_intact(&self) -> bool {
        let mut words = (self.start..self.start + self.bytes()).step_by(8);
        // SAFETY: as above.
        words.all(|word| unsafe { (word as *const usize).read() } == word ^ 0x5eed)
    }

    /// Small pages on a node.
    fn pages_on(&self, node: NodeId) -> usize {
        let addresses: Vec<usize> = (self.start..self.start + self.bytes())
            .step_by(PAGE)
            .collect();
        let mut status = vec![-1; addresses.len()];
        pages::nodes_of(0, &addresses, &mut status).expect("nodes");
        status
            .iter()
            .filter(|found| **found == node.0 as i32)
            .count()
    }

    fn pages(&self) -> usize {
        self.bytes() / PAGE
    }

    fn range(&self) -> AddressRange {
        AddressRange {
            start: self.start as u64,
            bytes: Bytes(self.bytes() as u64),
        }
    }

    fn action(&self, node: NodeId) -> RangeAction {
        RangeAction {
            process: Process::default(),
            range: self.range(),
            node,
        }
    }

    /// Sets the node of its new pages.
    fn prefer(&self, node: NodeId) {
        let _ = place(self.range(), MempolicyMode::Preferred, node);
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and the test is over.
        let _ = unsafe { memory::unmap(self.map, (self.units + 1) * UNIT_BYTES) };
    }
}

fn moved(outcomes: &[RangeOutcome]) -> u64 {
    outcomes[0].bytes_of(|fate| *fate == Fate::Moved).0
}

#[test]
fn kernel_migration_brings_every_page_to_and_fro_and_says_what_was_there() {
    let Some((a, b)) = two_nodes() else { return };
    for huge in [false, true] {
        let field = Field::new(UNITS, huge);
        field.prefer(a);
        field.fill();
        let mut migration = Migration::new(Kernel::default());
        for node in [b, a, b] {
            let outcomes = migration.execute(&[field.action(node)]);
            assert_eq!(moved(&outcomes), field.bytes() as u64, "{outcomes:?}");
            assert_eq!(field.pages_on(node), field.pages());
            assert!(field.is_intact());
        }
        let again = migration.execute(&[field.action(b)]);
        assert_eq!(again[0].parts.len(), 1);
        assert_eq!(again[0].parts[0].fate, Fate::AlreadyThere);
    }
}

#[test]
fn staged_copy_brings_every_page_to_and_fro() {
    let Some((a, b)) = two_nodes() else { return };
    for huge in [false, true] {
        let mover = match StagedCopy::open(StagedSettings::DEFAULT) {
            Ok(mover) => mover,
            Err(error) => return isotherm_skip::skip!("{error}"),
        };
        let field = Field::new(UNITS, huge);
        field.prefer(a);
        field.fill();
        let lock = ForkLock::default();
        // SAFETY: the field is used by this thread alone, and outlives the mover.
        let mut staged = unsafe { Staged::new(mover, &lock) };
        for node in [b, a, b] {
            let outcomes = staged.execute(&[field.action(node)]);
            assert_eq!(moved(&outcomes), field.bytes() as u64, "{outcomes:?}");
            assert_eq!(field.pages_on(node), field.pages());
            assert!(field.is_intact());
        }
        let again = staged.execute(&[field.action(b)]);
        assert_eq!(again[0].parts[0].fate, Fate::AlreadyThere);
    }
}

#[test]
fn new_pages_go_where_the_policy_says() {
    let Some((a, b)) = two_nodes() else { return };
    let modes = [
        MempolicyMode::Preferred,
        MempolicyMode::PreferredMany,
        MempolicyMode::Bind,
    ];
    for policy in modes {
        let field = Field::new(1, false);
        if let Err(error) = place(field.range(), policy, b) {
            isotherm_skip::skip!("{policy:?}: {error:?}");
            continue;
        }
        field.fill();
        assert_eq!(field.pages_on(b), field.pages(), "{policy:?}");
        assert_eq!(field.pages_on(a), 0, "{policy:?}");
    }
}

#[test]
fn a_whole_process_is_moved_from_outside_and_its_end_is_an_outcome() {
    let Some((a, b)) = two_nodes() else { return };
    let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
    let process = Process {
        pid: child.id(),
        image: 0,
    };
    let mut migration = Migration::new(Kernel::default());
    let mut total = 0;
    for node in [a, b, a] {
        let actions = whole_process::actions(process, node).expect("maps");
        let outcomes = migration.execute(&actions);
        let bytes = outcomes
            .iter()
            .map(|o| o.bytes_of(|fate| *fate == Fate::Moved).0);
        total += bytes.sum::<u64>();
    }
    assert!(
        total > 0,
        "two of the three moves must have moved its own pages"
    );
    let actions = whole_process::actions(process, b).expect("maps");
    child.kill().expect("kill");
    child.wait().expect("wait");
    for outcome in migration.execute(&actions) {
        assert!(
            matches!(outcome.parts[0].fate, Fate::NotAttempted(_)),
            "{outcome:?}"
        );
    }
}

#[test]
fn a_full_node_is_said_and_nothing_is_lost() {
    const MOST: usize = 512;
    let Some((a, b)) = two_nodes() else { return };
    let field = Field::new(UNITS, false);
    field.prefer(a);
    field.fill();
    let mut hogs = Vec::new();
    let full = loop {
        if hogs.len() == MOST {
            break false;
        }
        let hog = Field::new(1, false);
        hog.prefer(b);
        hog.fill();
        let spilled = hog.pages_on(b) < hog.pages();
        hogs.push(hog);
        if spilled {
            break true;
        }
    };
    if !full {
        return isotherm_skip::skip!(
            "node {b} holds more than {MOST} units; it cannot be filled here"
        );
    }
    let outcomes = Migration::new(Kernel::default()).execute(&[field.action(b)]);
    assert_eq!(outcomes[0].left(), Bytes(0));
    let busy = outcomes[0].bytes_of(|fate| matches!(fate, Fate::Busy(_)));
    println!("busy {busy:?}, moved {}", moved(&outcomes));
    assert_eq!(
        field.pages_on(b) * PAGE,
        moved(&outcomes) as usize,
        "{outcomes:?}"
    );
    assert!(field.is_intact());
    if let Ok(mover) = StagedCopy::open(StagedSettings::DEFAULT) {
        let lock = ForkLock::default();
        // SAFETY: the field is used by this thread alone, and outlives the mover.
        let mut staged = unsafe { Staged::new(mover, &lock) };
        let outcome = staged.carry_out(field.action(b));
        assert_eq!(outcome.left(), Bytes(0));
        assert!(field.is_intact(), "{outcome:?}");
    }
}
