//! Resident pages move to another node, and keep their content.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::kernel::{HUGE, Memory, MempolicyMode, free_bytes, version};
use crate::nodes::described;
use crate::{GuestTest, on, skip};

const ROOMY: &[&str] = &["two-nodes", "three-tiers", "no-hmat"];
const TWO: &[&str] = &["two-nodes"];
const FULL: &[&str] = &["full-fast-node"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(
        ROOMY,
        moved_pages_are_on_the_new_node_and_keep_their_content
    ),
    on!(ROOMY, a_new_policy_moves_the_pages_that_are_there),
    on!(TWO, huge_pages_move_whole),
    on!(FULL, pages_that_find_no_room_stay_and_keep_their_content),
    on!(
        TWO,
        nothing_is_lost_of_hugetlb_pages_and_on_a_target_that_goes_offline
    ),
    on!(long TWO, pages_keep_their_content_over_many_moves),
    on!(long TWO, the_kernel_demotes_reclaimed_pages_to_the_slow_node),
];

const BYTES: usize = 16 << 20;

/// Written memory, all of it on a node.
fn on_node(node: u32, bytes: usize, huge: bool) -> Memory {
    let mut memory = Memory::of(bytes).with_huge_pages(huge);
    memory.place(MempolicyMode::Bind, &[node]).expect("mbind");
    memory.write();
    memory.assert_all_on(node);
    // Without a policy that prevents a move.
    memory
        .place(MempolicyMode::Preferred, &[node])
        .expect("mbind");
    memory
}

fn moved_pages_are_on_the_new_node_and_keep_their_content() {
    let memory = on_node(0, BYTES, false);
    let last = described().node.len() as u32 - 1;
    for node in (1..=last).chain([0]) {
        let status = memory.move_to(node).expect("move_pages");
        let moved = status
            .iter()
            .filter(|status| **status == node as i32)
            .count();
        assert_eq!(moved, memory.pages(), "to node {node}");
        memory.assert_all_on(node);
        assert_eq!(memory.wrong_words(), 0, "on node {node}");
    }
}

fn a_new_policy_moves_the_pages_that_are_there() {
    let memory = on_node(0, BYTES, false);
    memory
        .place_and_move(MempolicyMode::Bind, &[1])
        .expect("mbind");
    memory.assert_all_on(1);
    memory
        .place_and_move(MempolicyMode::Preferred, &[0])
        .expect("mbind");
    memory.assert_all_on(0);
    assert_eq!(memory.wrong_words(), 0);
}

fn huge_pages_move_whole() {
    let memory = on_node(0, BYTES, true);
    // Otherwise this test would pass without a huge page.
    let before = memory.huge_bytes();
    assert!(
        before >= BYTES - HUGE,
        "only {before} bytes are in huge pages"
    );
    memory
        .place_and_move(MempolicyMode::Bind, &[1])
        .expect("mbind");
    memory.assert_all_on(1);
    assert_eq!(memory.huge_bytes(), before, "huge pages were split");
    assert_eq!(memory.wrong_words(), 0);
}

/// The kernel either refuses the call (`ENOMEM`, nothing was moved) or reports the result for every page.
/// Either is allowed; a loss of data is not.
fn pages_that_find_no_room_stay_and_keep_their_content() {
    let bytes = 64 << 20;
    let memory = on_node(1, bytes, false);
    assert!(free_bytes(0) < bytes, "node 0 is not full");
    let outcome = memory.move_to(0);
    let found = memory.pages_by_node();
    assert_eq!(
        found.values().sum::<usize>(),
        memory.pages(),
        "{found:?}, {outcome:?}"
    );
    assert!(found.get(&1).is_some_and(|pages| *pages > 0), "{found:?}");
    assert_eq!(found, memory.numa_maps());
    assert_eq!(memory.wrong_words(), 0);
    if let Err(error) = &outcome {
        assert_eq!(error.raw_os_error(), Some(libc::ENOMEM), "{error}");
    }
}

fn pages_keep_their_content_over_many_moves() {
    let memory = on_node(0, BYTES, false);
    for round in 0..40 {
        let node = (round + 1) % 2;
        memory.move_to(node).expect("move_pages");
        memory.assert_all_on(node);
        assert_eq!(memory.wrong_words(), 0, "round {round}");
    }
}

/// The blocks of a node's memory (`Documentation/admin-guide/mm/memory-hotplug.rst`), by the file that reads
/// and sets their state.
fn memory_blocks(node: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/sys/devices/system/node/node{node}"));
    let entries = entries.expect("a node").flatten();
    let blocks = entries.filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let number = name.strip_prefix("memory");
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    });
    blocks.map(|entry| entry.path().join("state")).collect()
}

/// The proof of `tests/movement`, with every kind of memory, while the second node loses the blocks that it can
/// spare and gets them back.
fn nothing_is_lost_of_hugetlb_pages_and_on_a_target_that_goes_offline() {
    for node in [0, 1] {
        let pool = "hugepages/hugepages-2048kB/nr_hugepages";
        let path = format!("/sys/devices/system/node/node{node}/{pool}");
        std::fs::write(path, "8").expect("a pool of huge pages");
    }
    let mut proof = Command::new("movement")
        .args(["stress", "--seconds", "8", "--folder", "/tmp"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the proof starts");
    let blocks = memory_blocks(1);
    let mut gone = 0;
    while proof.try_wait().expect("it is ours").is_none() {
        for state in &blocks {
            // Blocks with the kernel's own data stay.
            gone += u32::from(std::fs::write(state, "offline").is_ok());
        }
        for state in &blocks {
            let is = std::fs::read_to_string(state).expect("a state");
            if is.trim() == "offline" {
                std::fs::write(state, "online").expect("it was online before");
            }
        }
    }
    let output = proof.wait_with_output().expect("it has ended");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    println!("{gone} blocks of {} went\n{said}", blocks.len());
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.contains("lost or torn words 0"), "{said}");
    assert!(!said.contains("without hugetlb memory"), "{said}");
    assert!(gone > 0, "no block went offline: {blocks:?}");
}

/// `Documentation/ABI/testing/sysfs-kernel-mm-numa`, `Documentation/admin-guide/cgroup-v2.rst`: with
/// demotion, memory that a control group must give up goes to the next tier.
fn the_kernel_demotes_reclaimed_pages_to_the_slow_node() {
    if version() < (6, 8) {
        skip("kernels before 6.8 make no memory tiers from firmware speeds, so nothing is below");
    }
    let write = |path: &str, text: &str| {
        std::fs::write(path, text).unwrap_or_else(|error| panic!("{path}: {error}"));
    };
    write("/sys/kernel/mm/numa/demotion_enabled", "1");
    write("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    std::fs::create_dir_all("/sys/fs/cgroup/demoted").expect("a control group");
    write(
        "/sys/fs/cgroup/demoted/cgroup.procs",
        &std::process::id().to_string(),
    );
    let mut memory = Memory::of(BYTES).with_huge_pages(false);
    memory.write();
    memory.assert_all_on(0);
    // The kernel refuses memory that it cannot give up at once; the amount is queried below.
    let asked = std::fs::write(
        "/sys/fs/cgroup/demoted/memory.reclaim",
        (BYTES / 2).to_string(),
    );
    let found = memory.pages_by_node();
    write("/sys/kernel/mm/numa/demotion_enabled", "0");
    let demoted = found.get(&1).copied().unwrap_or(0);
    assert!(demoted > memory.pages() / 8, "{found:?}, {asked:?}");
    assert_eq!(found.values().sum::<usize>(), memory.pages(), "{found:?}");
    assert_eq!(memory.wrong_words(), 0);
}
