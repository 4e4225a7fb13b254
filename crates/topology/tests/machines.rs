//! Compares the tiers of recorded machines with golden files.
//!
//! `ISOTHERM_GOLDEN=write cargo test -p isotherm-topology --test machines` rewrites them.

#[path = "../../../tests/machines/expand.rs"]
mod machine;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use isotherm_model::tier::{Placement, TierKind};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_topology::measure::{Pair, Rates};
use isotherm_topology::{Detected, View, detect, examine, examine_measured};
use tempfile::TempDir;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/machines")
}

fn expanded(name: &str) -> TempDir {
    let root = tempfile::tempdir().expect("a directory");
    let path = directory().join(format!("{name}.machine"));
    let text = std::fs::read_to_string(&path).expect("a machine of this name");
    machine::expand(&text, root.path()).unwrap_or_else(|error| panic!("{name}: {error}"));
    root
}

fn seen(name: &str, view: View) -> Detected {
    let root = expanded(name);
    examine(root.path(), view).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// One line for each tier, node and note.
fn described(detected: &Detected) -> String {
    let mut text = String::new();
    for tier in detected.tiers.all() {
        let TierKind::Nodes(nodes) = &tier.kind else {
            panic!("detection makes no emulated tiers");
        };
        assert_eq!(tier.placement, Placement::Preferred);
        let figure = |name: &str, figure: Option<u64>| {
            figure.map_or(String::new(), |it| {
                format!("; {name} {:.1} GB/s", it as f64 / 1e9)
            })
        };
        let latency = tier.latency.map(|it| format!("; {it}"));
        let (name, capacity) = (&tier.name, tier.capacity);
        let _ = writeln!(
            text,
            "{name}: nodes {nodes:?}; {capacity}{}{}{}",
            latency.unwrap_or_default(),
            figure("read", tier.read_bandwidth),
            figure("write", tier.write_bandwidth),
        );
    }
    for placed in &detected.nodes {
        let tier = placed.tier.and_then(|tier| detected.tiers.get(tier));
        let tier = tier.map_or("no tier", |tier| tier.name.as_str());
        let _ = writeln!(
            text,
            "node {}: {tier}: {}",
            placed.node.number, placed.reason
        );
    }
    for note in &detected.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn golden(name: &str, text: &str) {
    let path = directory().join(format!("{name}.tiers"));
    if std::env::var("ISOTHERM_GOLDEN").is_ok_and(|word| word == "write") {
        std::fs::write(&path, text).expect("writes");
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (got, wanted)) in text.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(got, wanted, "{name}, line {}", number + 1);
    }
    assert_eq!(text.len(), wanted.len(), "{name} has another length");
}

fn nodes(detected: &Detected) -> Vec<(&str, Vec<u32>)> {
    let nodes = |kind: &TierKind| match kind {
        TierKind::Nodes(nodes) => nodes.clone(),
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => vec![],
    };
    let tiers = detected.tiers.all().iter();
    tiers
        .map(|tier| (tier.name.as_str(), nodes(&tier.kind)))
        .collect()
}

#[test]
fn every_recorded_machine_has_the_tiers_of_its_golden_file() {
    let entries = std::fs::read_dir(directory()).expect("machines");
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            Some(name.to_str()?.strip_suffix(".machine")?.to_owned())
        })
        .collect();
    names.sort();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        golden(&name, &described(&seen(&name, View::Machine)));
    }
}

#[test]
fn the_view_of_one_socket_has_tiers_that_the_machine_has_not() {
    for name in [
        "two-sockets",
        "nps4",
        "xeon-max-flat-snc4",
        "optane-kmem",
        "cxl-expander",
    ] {
        let view = described(&seen(name, View::Node(0)));
        golden(&format!("{name}.from-node-0"), &view);
    }
    assert_eq!(
        nodes(&seen("two-sockets", View::Machine)),
        [("memory", vec![0, 1])],
        "remote DRAM is no tier of its own"
    );
    assert_eq!(
        nodes(&seen("two-sockets", View::Node(1))),
        [("fast", vec![1]), ("slow", vec![0])]
    );
}

#[test]
fn a_view_from_a_node_without_processors_is_refused_with_those_that_have_some() {
    let root = expanded("optane-kmem");
    let error = examine(root.path(), View::Node(2)).expect_err("no processors");
    assert!(
        error
            .to_string()
            .ends_with("nodes with processors are 0, 1"),
        "{error}"
    );
}

#[test]
fn memory_in_the_package_is_the_fast_tier_though_it_is_farther_away() {
    let hbm: Vec<u32> = (8..16).collect();
    for name in ["xeon-max-flat-snc4", "xeon-max-without-hmat"] {
        let detected = seen(name, View::Machine);
        assert_eq!(nodes(&detected)[0], ("fast", hbm.clone()), "{name}");
    }
    assert_eq!(
        nodes(&seen("knl-flat", View::Machine))[0],
        ("fast", vec![1])
    );
}

#[test]
fn a_kernel_that_has_one_tier_does_not_join_what_distances_tell_apart() {
    let detected = seen("cxl-in-dram-tier", View::Machine);
    assert_eq!(
        nodes(&detected),
        [("fast", vec![0, 1]), ("slow", vec![2, 3])]
    );
}

#[test]
fn what_a_container_may_not_use_is_in_no_tier_and_its_limits_bound_the_capacity() {
    for name in ["container", "container-cgroup-v1"] {
        let detected = seen(name, View::Machine);
        assert_eq!(nodes(&detected), [("fast", vec![0]), ("slow", vec![2])]);
        let tiers = detected.tiers.all().iter();
        let capacities: Vec<Bytes> = tiers.map(|tier| tier.capacity).collect();
        // Huge pages limit the first, the control group the second.
        assert_eq!(capacities, [Bytes(32 << 30), Bytes(48 << 30)], "{name}");
        assert_eq!(detected.nodes[1].tier, None, "{name}");
    }
}

#[test]
fn a_cpuset_without_memory_is_an_error_that_names_it() {
    let root = expanded("optane-kmem");
    let status = root.path().join("proc/self/status");
    std::fs::create_dir_all(status.parent().expect("a parent")).expect("a directory");
    std::fs::write(status, "Mems_allowed_list:\t7\n").expect("writes");
    let error = detect(root.path()).expect_err("nothing is allowed");
    assert!(error.to_string().contains("nodes 7 only"), "{error}");
}

#[test]
fn without_procfs_and_sysfs_there_is_an_error_that_names_the_root() {
    let error = detect(Path::new("/nonexistent")).expect_err("nothing there");
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}

#[test]
fn a_measurement_overrides_the_firmware_and_noise_makes_no_tiers() {
    let root = expanded("cxl-expander");
    let pair = |cpu_node, memory_node, latency, gigabytes: u64| Pair {
        cpu_node,
        memory_node,
        latency: Nanos(latency),
        rates: vec![Rates {
            threads: 8,
            read: gigabytes * 1_000_000_000,
            write: gigabytes * 500_000_000,
            triad: gigabytes * 900_000_000,
        }],
        loaded: Vec::new(),
    };
    // By the firmware the slowest, by measurement the fastest; the sockets differ by noise.
    let pairs = [
        pair(0, 0, 120, 100),
        pair(1, 0, 210, 60),
        pair(0, 1, 215, 60),
        pair(1, 1, 135, 90),
        pair(0, 2, 90, 300),
        pair(1, 2, 180, 80),
    ];
    let measured = |view| examine_measured(root.path(), &pairs, view).expect("tiers");
    let machine = measured(View::Machine);
    assert_eq!(nodes(&machine), [("fast", vec![2]), ("slow", vec![0, 1])]);
    assert_eq!(
        machine.nodes[1].reason,
        "measured from node 1: 135 ns, 90 GB/s"
    );
    assert_eq!(
        machine.tiers.all()[1].latency,
        Some(Nanos(135)),
        "the slowest node's"
    );
    assert_eq!(machine.tiers.all()[1].read_bandwidth, Some(190_000_000_000));
    let view = measured(View::Node(0));
    assert_eq!(
        nodes(&view),
        [("fast", vec![2]), ("middle", vec![0]), ("slow", vec![1])]
    );
}

#[test]
fn where_a_node_was_not_measured_the_firmware_counts_for_all() {
    let root = expanded("cxl-expander");
    let pair = |memory_node, latency| Pair {
        cpu_node: 0,
        memory_node,
        latency: Nanos(latency),
        rates: vec![Rates {
            threads: 1,
            read: 1_000_000_000,
            write: 1_000_000_000,
            triad: 1_000_000_000,
        }],
        loaded: Vec::new(),
    };
    // Node 0 was full; measurements of the others are not compared with its firmware figures.
    let pairs = [pair(1, 300), pair(2, 20)];
    let detected = examine_measured(root.path(), &pairs, View::Machine).expect("tiers");
    assert_eq!(nodes(&detected), [("fast", vec![0, 1]), ("slow", vec![2])]);
    assert!(
        detected
            .notes
            .iter()
            .any(|note| note.starts_with("not measured: nodes 0;"))
    );
}

#[test]
fn a_machine_that_tells_of_no_nodes_has_what_was_measured_of_all() {
    let root = expanded("no-sysfs");
    let pair = Pair {
        cpu_node: 0,
        memory_node: 0,
        latency: Nanos(131),
        rates: vec![Rates {
            threads: 2,
            read: 28_000_000_000,
            write: 20_000_000_000,
            triad: 30_000_000_000,
        }],
        loaded: Vec::new(),
    };
    let detected = examine_measured(root.path(), &[pair], View::Machine).expect("a tier");
    let tier = &detected.tiers.all()[0];
    assert_eq!(
        (tier.latency, tier.read_bandwidth),
        (Some(Nanos(131)), Some(28_000_000_000))
    );
    assert!(
        tier.reason
            .starts_with("measured from node 0: 131 ns, 28 GB/s; "),
        "{}",
        tier.reason
    );
}
