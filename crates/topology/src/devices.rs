//! [`inventory`] lists the memory devices of a machine (DIMMs, CXL devices, and a node as one device where no other is known) with the node
//! of each where it is known, and counts the kernel's memory blocks, and those that can be taken offline, for `isotherm tiers --devices`.
//!
//! ```text
//! sys/firmware/dmi/entries/17-*      DIMMs as the firmware lists them: locator, kind, size, ranks (readable by root only)
//! sys/devices/system/edac/mc         DIMMs as the memory controllers' drivers see them
//! sys/bus/cxl/devices/mem*           CXL memory devices, with their node
//! sys/devices/system/node            nodes: where nothing else is known, each is one device
//! sys/devices/system/memory          memory blocks, which the kernel can take offline
//! ```
//!
//! The firmware's list is taken where it can be read, else the controllers' list; CXL devices are in neither. Which addresses a DIMM serves
//! is known of no machine that interleaves, so a DIMM belongs to a node only where there is one node with processors. A devices
//! file wins over all, and is checked against the machine.

mod device;
mod dmi;
mod file;
mod sysfs;

use std::path::Path;

use isotherm_model::units::Bytes;

use crate::nodes::{self, Make, Node};
pub use device::{DeviceSource, MemoryDevice};
pub use dmi::dmi_device;
pub use file::inventory_of_file;
pub use sysfs::MemoryBlocks;

/// The memory devices of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The devices: DIMMs, then CXL devices, then nodes of which nothing else is known.
    pub devices: Vec<MemoryDevice>,
    /// The memory blocks, where the kernel has them.
    pub blocks: Option<MemoryBlocks>,
    /// Notes on missing facts, and what would bring them.
    pub notes: Vec<String>,
}

/// The devices of the machine whose file system is mounted at `root`.
#[must_use]
pub fn inventory(root: &Path) -> Inventory {
    let nodes = nodes::read(root);
    let mut notes = Vec::new();
    let mut devices = dimms(root, &mut notes);
    let with_processors: Vec<&Node> = nodes.iter().filter(|node| !node.cpus.is_empty()).collect();
    if let [only] = with_processors.as_slice() {
        for dimm in &mut devices {
            dimm.node = Some(only.number);
        }
    } else if !devices.is_empty() {
        notes.push(
            "no table says which DIMM belongs to which node; a devices file can (docs/tiers.md)"
                .to_owned(),
        );
    }
    let has_dimms = !devices.is_empty();
    devices.extend(sysfs::cxl(root));
    let is_known = |node: &Node| {
        let has_device = devices
            .iter()
            .any(|device| device.node == Some(node.number));
        has_device || has_dimms && !node.cpus.is_empty()
    };
    let others: Vec<MemoryDevice> = nodes
        .iter()
        .filter(|node| node.memory > Bytes::ZERO && !is_known(node))
        .map(of_node)
        .collect();
    devices.extend(others);
    Inventory {
        devices,
        blocks: sysfs::blocks(root),
        notes,
    }
}

/// The DIMMs by the firmware's table, else by the controllers.
fn dimms(root: &Path, notes: &mut Vec<String>) -> Vec<MemoryDevice> {
    let (found, refused) = dmi::read(root);
    if !found.is_empty() {
        return found;
    }
    let by_controllers = sysfs::edac(root);
    if by_controllers.is_empty() {
        notes.push(match refused {
            true => "the firmware's list of DIMMs (/sys/firmware/dmi/entries) is readable by root only; run as root, or name the devices in a file".to_owned(),
            false => "neither the firmware (/sys/firmware/dmi/entries) nor a memory controller (/sys/devices/system/edac/mc) lists DIMMs, as in most virtual machines; a devices file can".to_owned(),
        });
    }
    by_controllers
}

fn of_node(node: &Node) -> MemoryDevice {
    MemoryDevice {
        name: format!("node {}", node.number),
        kind: node.make.as_ref().map(Make::to_string),
        capacity: node.memory,
        ranks: None,
        node: Some(node.number),
        source: DeviceSource::Node,
    }
}

#[cfg(test)]
mod tests;
