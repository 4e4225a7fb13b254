//! Detection on recorded machines.

use std::path::{Path, PathBuf};

use isotherm_model::tier::{TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_observe::tiers::detect;

fn machine(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/machines")
        .join(name)
}

fn nodes(tiers: &Tiers) -> Vec<(&str, Vec<u32>)> {
    let nodes = |kind: &TierKind| match kind {
        TierKind::Nodes(nodes) => nodes.clone(),
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => vec![],
    };
    tiers
        .all()
        .iter()
        .map(|tier| (tier.name.as_str(), nodes(&tier.kind)))
        .collect()
}

#[test]
fn one_node_is_one_tier() {
    let tiers = detect(&machine("one-node")).expect("detects");
    assert_eq!(nodes(&tiers), [("memory", vec![0])]);
    assert_eq!(tiers.all()[0].capacity, Bytes(24_658_944 << 10));
}

#[test]
fn speeds_seen_from_the_processors_order_the_tiers() {
    let tiers = detect(&machine("two-nodes-hmat")).expect("detects");
    assert_eq!(nodes(&tiers), [("fast", vec![1]), ("slow", vec![0])]);
    let fast = &tiers.all()[0];
    assert_eq!(fast.latency, Some(Nanos(130)), "access1, not access0");
    assert_eq!(fast.read_bandwidth, Some(409_600 << 20));
    assert!(fast.reason.contains("access1"), "{}", fast.reason);
}

#[test]
fn without_speeds_the_kernels_tiers_count() {
    let tiers = detect(&machine("cxl-without-cpus")).expect("detects");
    assert_eq!(nodes(&tiers), [("fast", vec![0]), ("slow", vec![1])]);
    assert!(tiers.all()[1].reason.contains("memory tier 961"));
}

#[test]
fn nodes_with_gaps_and_without_memory_are_grouped_by_distance() {
    let tiers = detect(&machine("sparse-nodes")).expect("detects");
    assert_eq!(nodes(&tiers), [("fast", vec![0, 4]), ("slow", vec![8])]);
    assert!(tiers.all()[1].reason.contains("distance 17"));
}

#[test]
fn without_sysfs_all_memory_is_one_tier_and_without_procfs_that_is_an_error() {
    let tiers = detect(&machine("no-sysfs")).expect("detects");
    assert_eq!(nodes(&tiers), [("memory", vec![0])]);
    assert_eq!(tiers.all()[0].capacity, Bytes(8 << 30));
    let error = detect(Path::new("/nonexistent")).expect_err("nothing there");
    assert!(error.to_string().contains("/nonexistent"), "{error}");
}
