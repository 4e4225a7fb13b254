//! The machine inside the guest is the one that its topology describes.

use std::path::Path;

use isotherm_vm::payload::TOPOLOGY;
use isotherm_vm::topology::Topology;

use crate::kernel::{node_bytes, version};
use crate::{EVERYWHERE, GuestTest, on, skip};

pub(crate) const TESTS: &[GuestTest] = &[
    on!(
        EVERYWHERE,
        every_described_node_is_online_with_its_memory_and_processors
    ),
    on!(EVERYWHERE, distances_are_the_described_ones),
    on!(EVERYWHERE, firmware_speeds_are_the_described_ones_or_absent),
    on!(EVERYWHERE, the_kernel_makes_the_expected_memory_tiers),
    on!(&["full-fast-node"], the_filled_node_has_little_memory_left),
];

/// The topology that this guest was booted with.
pub(crate) fn described() -> Topology {
    Topology::read(Path::new(TOPOLOGY)).unwrap_or_else(|error| panic!("{error:#}"))
}

fn sysfs(node: usize, name: &str) -> Option<String> {
    let path = format!("/sys/devices/system/node/node{node}/{name}");
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

fn every_described_node_is_online_with_its_memory_and_processors() {
    let machine = described();
    let last = machine.node.len() - 1;
    let online = std::fs::read_to_string("/sys/devices/system/node/online").expect("nodes");
    assert_eq!(online.trim(), format!("0-{last}"));
    for (number, node) in machine.node.iter().enumerate() {
        let bytes = node_bytes(number as u32, "MemTotal:");
        let described = node.memory.0 as usize;
        // The kernel keeps a part for itself, and the firmware a little.
        assert!(
            bytes <= described && bytes > described / 2,
            "node {number}: {bytes} bytes"
        );
        let cpus = sysfs(number, "cpulist").expect("cpulist");
        assert_eq!(
            cpus.is_empty(),
            node.cpus == 0,
            "node {number}: processors \"{cpus}\""
        );
    }
}

fn distances_are_the_described_ones() {
    let machine = described();
    let nodes = 0..machine.node.len() as u32;
    for from in nodes.clone() {
        let expected: Vec<String> = nodes
            .clone()
            .map(|to| machine.distance(from, to).to_string())
            .collect();
        assert_eq!(
            sysfs(from as usize, "distance"),
            Some(expected.join(" ")),
            "from node {from}"
        );
    }
}

/// `Documentation/admin-guide/mm/numaperf.rst`: nanoseconds and MB/s.
fn firmware_speeds_are_the_described_ones_or_absent() {
    let machine = described();
    for number in 0..machine.node.len() {
        let reach = machine.fastest_reach(number as u32);
        let latency = reach.map(|reach| reach.latency.0.to_string());
        let bandwidth = reach.map(|reach| (reach.bandwidth.0 >> 20).to_string());
        for class in ["access0", "access1"] {
            for way in ["read", "write"] {
                let told = |what: &str| sysfs(number, &format!("{class}/initiators/{way}_{what}"));
                assert_eq!(told("latency"), latency, "node {number}, {class}, {way}");
                assert_eq!(
                    told("bandwidth"),
                    bandwidth,
                    "node {number}, {class}, {way}"
                );
            }
        }
    }
}

fn the_kernel_makes_the_expected_memory_tiers() {
    if version() < (6, 8) {
        skip("kernels before 6.8 make no memory tiers from firmware speeds");
    }
    let folder = Path::new("/sys/devices/virtual/memory_tiering");
    let mut tiers = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the kernel's memory tiers") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("a name");
        // A lower number is faster.
        if let Some(number) = name
            .strip_prefix("memory_tier")
            .and_then(|number| number.parse::<u32>().ok())
        {
            let nodes = std::fs::read_to_string(entry.path().join("nodelist")).expect("nodelist");
            tiers.push((number, nodes.trim().to_owned()));
        }
    }
    tiers.sort();
    let found: Vec<String> = tiers.into_iter().map(|(_, nodes)| nodes).collect();
    let expected: Vec<String> = described()
        .expected
        .kernel_tiers
        .iter()
        .map(|nodes| list(nodes))
        .collect();
    assert_eq!(found, expected);
}

/// A list in the kernel's format: `0-1`, `3`. Expected tiers hold neighbours or single nodes.
fn list(nodes: &[u32]) -> String {
    match nodes {
        [first, .., last] => format!("{first}-{last}"),
        _ => nodes.iter().map(ToString::to_string).collect(),
    }
}

fn the_filled_node_has_little_memory_left() {
    for (number, node) in (0_u32..).zip(described().node) {
        let free = node_bytes(number, "MemFree:");
        if let Some(left) = node.left_free {
            let left = left.0 as usize;
            assert!(
                free < left + (8 << 20),
                "node {number} has {free} bytes free"
            );
        } else {
            assert!(free > 128 << 20, "node {number} has only {free} bytes free");
        }
    }
}
