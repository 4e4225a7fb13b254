//! Memory policies place fresh pages on real nodes.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::kernel::{Memory, MempolicyMode, free_bytes};
use crate::nodes::described;
use crate::{GuestTest, on, stand};

const ROOMY: &[&str] = &["two-nodes", "three-tiers", "no-hmat"];
const FULL: &[&str] = &["full-fast-node"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(ROOMY, bound_pages_land_on_their_node),
    on!(ROOMY, preferred_pages_land_on_their_node_while_it_has_room),
    on!(
        &["three-tiers"],
        pages_that_prefer_many_nodes_land_on_one_of_them
    ),
    on!(&["two-nodes"], a_node_that_is_not_there_is_refused),
    on!(
        FULL,
        preferred_pages_spill_to_the_next_node_when_the_first_is_full
    ),
    on!(
        FULL,
        a_program_bound_to_a_full_node_is_killed_and_the_machine_lives
    ),
];

/// Started by [`a_program_bound_to_a_full_node_is_killed_and_the_machine_lives`].
pub(crate) const TAKE_TOO_MUCH: &str = "take-too-much";

const BYTES: usize = 16 << 20;

fn nodes() -> std::ops::Range<u32> {
    0..described().node.len() as u32
}

fn bound_pages_land_on_their_node() {
    for node in nodes() {
        let mut memory = Memory::of(BYTES).with_huge_pages(false);
        memory.place(MempolicyMode::Bind, &[node]).expect("mbind");
        memory.write();
        memory.assert_all_on(node);
        assert_eq!(memory.wrong_words(), 0);
    }
}

fn preferred_pages_land_on_their_node_while_it_has_room() {
    for node in nodes() {
        for huge in [false, true] {
            let mut memory = Memory::of(BYTES).with_huge_pages(huge);
            memory
                .place(MempolicyMode::Preferred, &[node])
                .expect("mbind");
            memory.write();
            memory.assert_all_on(node);
        }
    }
}

fn pages_that_prefer_many_nodes_land_on_one_of_them() {
    let mut memory = Memory::of(BYTES).with_huge_pages(false);
    memory
        .place(MempolicyMode::PreferredMany, &[1, 2])
        .expect("mbind");
    memory.write();
    let found = memory.pages_by_node();
    assert_eq!(found.values().sum::<usize>(), memory.pages());
    assert!(!found.contains_key(&0), "{found:?}");
}

fn a_node_that_is_not_there_is_refused() {
    let memory = Memory::of(BYTES);
    let refused = memory
        .place(MempolicyMode::Bind, &[nodes().end])
        .unwrap_err();
    assert_eq!(refused.raw_os_error(), libc::EINVAL);
}

fn preferred_pages_spill_to_the_next_node_when_the_first_is_full() {
    let bytes = 64 << 20;
    assert!(free_bytes(0) < bytes, "node 0 is not full");
    let mut memory = Memory::of(bytes).with_huge_pages(false);
    memory.place(MempolicyMode::Preferred, &[0]).expect("mbind");
    memory.write();
    let found = memory.pages_by_node();
    assert_eq!(found, memory.numa_maps());
    assert_eq!(found.values().sum::<usize>(), memory.pages(), "{found:?}");
    let spilled = found.get(&1).copied().unwrap_or(0);
    assert!(spilled >= memory.pages() / 2, "{found:?}");
    assert_eq!(memory.wrong_words(), 0);
}

/// `MPOL_BIND` allows no other node: the kernel ends the program. Tiers of that placement must keep to their
/// capacity.
fn a_program_bound_to_a_full_node_is_killed_and_the_machine_lives() {
    let program = std::env::current_exe().expect("a program has a path");
    let status = Command::new("sh")
        // The process that the kernel must kill, before all others in the guest.
        .args([
            "-c",
            "echo 1000 > /proc/self/oom_score_adj; exec \"$@\"",
            "sh",
        ])
        .arg(program)
        .args([stand::IN_GUEST, TAKE_TOO_MUCH])
        .status()
        .expect("a shell");
    assert_eq!(status.signal(), Some(libc::SIGKILL), "{status}");
    let mut memory = Memory::of(BYTES).with_huge_pages(false);
    memory.place(MempolicyMode::Bind, &[1]).expect("mbind");
    memory.write();
    memory.assert_all_on(1);
}

/// Binds more memory than a full node has left.
pub(crate) fn take_too_much() {
    let mut memory = Memory::of(free_bytes(0) + (64 << 20)).with_huge_pages(false);
    memory.place(MempolicyMode::Bind, &[0]).expect("mbind");
    memory.write();
}
