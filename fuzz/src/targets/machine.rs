//! What `/proc` and `/sys` say of a machine: nodes, figures, limits.

#[path = "../../../tests/machines/expand.rs"]
mod description;

use std::collections::BTreeSet;

use isotherm_model::tier::{TierKind, Tiers};
use isotherm_model::units::Bytes;
use isotherm_topology::{TiersFile, View};

pub(crate) fn check(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else {
        return false;
    };
    let root = directory();
    if description::expand(text, root.path()).is_err() {
        return false;
    }
    let Ok(detected) = isotherm_topology::examine(root.path(), View::Machine) else {
        return false;
    };
    let in_tiers = nodes(&detected.tiers);
    for placed in &detected.nodes {
        assert!(
            !placed.reason.is_empty(),
            "node {} has no reason",
            placed.node.number
        );
        assert_eq!(
            placed.tier.is_some(),
            in_tiers.contains(&placed.node.number),
            "node {} is in a tier or it is not",
            placed.node.number
        );
        assert!(placed.tier.is_none() || placed.node.memory > Bytes::ZERO);
    }
    let with_cpus = detected
        .nodes
        .iter()
        .find(|placed| !placed.node.cpus.is_empty());
    if let Some(from) = with_cpus.map(|placed| View::Node(placed.node.number)) {
        let view = isotherm_topology::examine(root.path(), from).expect("the node has processors");
        assert_eq!(nodes(&view.tiers), in_tiers, "a view shows the same nodes");
    }
    let file = TiersFile {
        tiers: detected.tiers,
        measured: Vec::new(),
    };
    let printed = isotherm_topology::print(&file);
    assert_eq!(
        isotherm_topology::parse(&printed, "m.toml"),
        Ok(file),
        "{printed}"
    );
    true
}

/// In memory where there is such a file system: thousands of machines are made.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a directory for the machine")
}

fn nodes(tiers: &Tiers) -> BTreeSet<u32> {
    let nodes = tiers.all().iter().flat_map(|tier| match &tier.kind {
        TierKind::Nodes(nodes) => nodes.clone(),
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => panic!("nothing is emulated"),
    });
    nodes.collect()
}
