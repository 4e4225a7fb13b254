//! [`inventory_of_file`] reads a devices file (TOML) for `isotherm tiers --devices FILE`: its devices replace those that the machine
//! reports, once they are checked against the machine: the nodes, their memory, and the sizes of devices of the same name.
//!
//! ```toml
//! [[device]]
//! name = "DIMM_A1"
//! node = 0
//! capacity = "16GiB"
//! kind = "DDR4"          # optional
//! ranks = 2              # optional
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_model::units::Bytes;
use serde::Deserialize;
use toml::Spanned;

use super::device::{DeviceSource, MemoryDevice};
use super::{Inventory, inventory};
use crate::nodes;
use crate::tiers_file::{FileError, Place, Text, text_of};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DevicesTable {
    #[serde(default)]
    device: Vec<Spanned<DeviceTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceTable {
    name: String,
    node: Spanned<u32>,
    capacity: Text,
    kind: Option<String>,
    ranks: Option<u32>,
}

/// The devices of a file, on the machine whose file system is mounted at `root`.
///
/// # Errors
/// The file cannot be read or is malformed, or it contradicts the machine; the error has the line and both values.
pub fn inventory_of_file(path: &Path, root: &Path) -> Result<Inventory, FileError> {
    let text = text_of(path)?;
    let shown = path.display().to_string();
    let at = Place {
        text: &text,
        path: &shown,
    };
    let table: DevicesTable = at.tables()?;
    let machine = inventory(root);
    let memory: BTreeMap<u32, Bytes> = nodes::read(root)
        .iter()
        .map(|node| (node.number, node.memory))
        .collect();
    let mut devices = Vec::<MemoryDevice>::new();
    let mut starts = BTreeMap::new();
    for table in table.device {
        let start = table.span().start;
        let device = device(&at, table.into_inner(), &machine, &memory)?;
        if devices.iter().any(|known| known.name == device.name) {
            let why = format!("device \"{}\" is there twice", device.name);
            return Err(at.error(Some(start), why));
        }
        starts.insert(device.node, start);
        devices.push(device);
    }
    if devices.is_empty() {
        return Err(at.error(
            None,
            "it names no device; a device is a [[device]] with name, node and capacity".to_owned(),
        ));
    }
    check_nodes(&at, &devices, &starts, &memory)?;
    Ok(Inventory {
        devices,
        blocks: machine.blocks,
        notes: Vec::new(),
    })
}

fn device(
    at: &Place<'_>,
    table: DeviceTable,
    machine: &Inventory,
    memory: &BTreeMap<u32, Bytes>,
) -> Result<MemoryDevice, FileError> {
    let start = table.capacity.span().start;
    let capacity: Bytes = at.value(Some(table.capacity))?.unwrap_or_default();
    if capacity == Bytes::ZERO {
        return Err(at.error(
            Some(start),
            format!("device \"{}\" holds nothing", table.name),
        ));
    }
    let place = table.node.span().start;
    let node = table.node.into_inner();
    if !memory.contains_key(&node) {
        let known: Vec<String> = memory.keys().map(u32::to_string).collect();
        let why = format!(
            "device \"{}\" is of node {node}, and this machine has nodes {}",
            table.name,
            known.join(", ")
        );
        return Err(at.error(Some(place), why));
    }
    let known = machine
        .devices
        .iter()
        .find(|known| known.name == table.name);
    if let Some(known) = known.filter(|known| known.capacity != capacity) {
        let why = format!(
            "device \"{}\" holds {capacity}, and {} of this machine by {}",
            table.name, known.capacity, known.source
        );
        return Err(at.error(Some(start), why));
    }
    Ok(MemoryDevice {
        name: table.name,
        kind: table.kind,
        capacity,
        ranks: table.ranks,
        node: Some(node),
        source: DeviceSource::File,
    })
}

/// The devices of a node hold at least the memory that the kernel has of it.
fn check_nodes(
    at: &Place<'_>,
    devices: &[MemoryDevice],
    starts: &BTreeMap<Option<u32>, usize>,
    memory: &BTreeMap<u32, Bytes>,
) -> Result<(), FileError> {
    for (node, bytes) in memory {
        let of_node = devices.iter().filter(|device| device.node == Some(*node));
        let held: Bytes = of_node.map(|device| device.capacity).sum();
        if let Some(start) = starts.get(&Some(*node)).filter(|_| held < *bytes) {
            let why = format!(
                "the devices of node {node} hold {held} together, and the node has {bytes}"
            );
            return Err(at.error(Some(*start), why));
        }
    }
    Ok(())
}
