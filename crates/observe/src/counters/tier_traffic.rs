//! [`open_for_tier`] opens the traffic counters of the memory controllers, and says which of two tiers they count: that of the nodes with
//! processors. Runs in which a site is alone in that tier use it, and the daemon, which measures the load of both tiers by it.
//!
//! The controllers are in the processors and count the DRAM that is attached to these; they count neither memory in a processor's package
//! nor memory behind CXL. The kernel's resource control (resctrl) counts the traffic of all memory together, so it cannot separate the
//! tiers.

use std::io;
use std::path::Path;

use isotherm_model::tier::{Tier, TierIndex, TierKind, Tiers};
use isotherm_topology::cpu_list;

use super::{CounterEvent, CounterKind, Counting, open};

/// Opens the counter of one of two tiers, and says which one it counts.
///
/// # Errors
/// The missing feature, and what would enable it.
pub fn open_for_tier<T>(
    root: &Path,
    tiers: &Tiers,
    open_event: &dyn Fn(&CounterEvent) -> io::Result<T>,
) -> Result<(TierIndex, Counting<T>), String> {
    let counted = controlled_tier(root, tiers)?;
    match open(CounterKind::Controllers, root, open_event) {
        Ok(counting) => Ok((counted, counting)),
        Err(lack) => Err(lack.of(CounterKind::Controllers)),
    }
}

/// The tier behind the controllers of the processors.
fn controlled_tier(root: &Path, tiers: &Tiers) -> Result<TierIndex, String> {
    let [first, last] = tiers.all() else {
        return Err(format!(
            "data can be alone in one of two tiers, and there are {}",
            tiers.all().len()
        ));
    };
    match [first, last].map(|tier| have_processors(root, tier)) {
        [true, false] => Ok(TierIndex(0)),
        [false, true] => Ok(TierIndex(1)),
        _ => Err(
            "the memory controllers count the nodes that have processors, and these are not one of the two tiers; HBM, CXL or persistent \
             memory beside DRAM would be told from it"
                .to_owned(),
        ),
    }
}

/// Whether each node of a tier has processors.
fn have_processors(root: &Path, tier: &Tier) -> bool {
    let TierKind::Nodes(nodes) = &tier.kind else {
        return false;
    };
    nodes.iter().all(|node| {
        let list = root.join(format!("sys/devices/system/node/node{node}/cpulist"));
        cpu_list::read(&list).is_some_and(|cpus| !cpus.is_empty())
    })
}
