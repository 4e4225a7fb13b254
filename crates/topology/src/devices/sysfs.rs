//! Lists the memory devices that drivers know, as [`MemoryDevice`]s: DIMMs of the memory controllers (`edac`) and CXL memory devices
//! (`cxl`); and counts the kernel's memory blocks ([`MemoryBlocks`]): online, offline, and online ones that can be taken offline. It serves
//! [`super::inventory()`], for `isotherm tiers --devices`.
//!
//! Kernel documents: `ABI/testing/sysfs-devices-edac`, `ABI/testing/sysfs-bus-cxl`, `ABI/testing/sysfs-devices-memory`,
//! `admin-guide/mm/memory-hotplug.rst`.

use std::path::Path;

use isotherm_model::units::Bytes;

use super::device::{DeviceSource, MemoryDevice};
use crate::sysfs::{number, numbered, text};

const MIB: u64 = 1 << 20;

/// The memory blocks of the kernel: equal ranges of physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBlocks {
    /// Size of one block.
    pub size: Bytes,
    /// Blocks that are online.
    pub online: u64,
    /// Blocks that are offline.
    pub offline: u64,
    /// Online blocks of `ZONE_MOVABLE`, which can be emptied and taken offline.
    pub movable: u64,
}

/// DIMMs of the memory controllers; a slot without memory is left out.
pub(super) fn edac(root: &Path) -> Vec<MemoryDevice> {
    let directory = root.join("sys/devices/system/edac/mc");
    let mut devices = Vec::new();
    for controller in numbered(&directory, "mc") {
        let controller_path = directory.join(format!("mc{controller}"));
        for prefix in ["dimm", "rank"] {
            for dimm in numbered(&controller_path, prefix) {
                let path = controller_path.join(format!("{prefix}{dimm}"));
                let capacity = number(&path.join("size"))
                    .and_then(|mebibytes| mebibytes.checked_mul(MIB))
                    .unwrap_or(0);
                if capacity == 0 {
                    continue;
                }
                let label = text(&path.join("dimm_label"));
                devices.push(MemoryDevice {
                    name: label.unwrap_or_else(|| format!("mc{controller} {prefix}{dimm}")),
                    kind: text(&path.join("dimm_mem_type")),
                    capacity: Bytes(capacity),
                    ranks: (prefix == "rank").then_some(1),
                    node: None,
                    source: DeviceSource::Edac,
                });
            }
        }
    }
    devices
}

/// CXL memory devices with memory; a device without a node has not been made memory of the system.
pub(super) fn cxl(root: &Path) -> Vec<MemoryDevice> {
    let directory = root.join("sys/bus/cxl/devices");
    let device = |number: u32| {
        let path = directory.join(format!("mem{number}"));
        let size = |part: &str| {
            let text = text(&path.join(part).join("size"))?;
            u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        };
        let (volatile, persistent) = (size("ram").unwrap_or(0), size("pmem").unwrap_or(0));
        let node = text(&path.join("numa_node")).and_then(|node| node.parse().ok());
        let capacity = volatile.saturating_add(persistent);
        (capacity > 0).then(|| MemoryDevice {
            name: format!("mem{number}"),
            kind: Some(
                if volatile > 0 {
                    "CXL"
                } else {
                    "CXL, persistent"
                }
                .to_owned(),
            ),
            capacity: Bytes(capacity),
            ranks: None,
            node,
            source: DeviceSource::Cxl,
        })
    };
    numbered(&directory, "mem")
        .into_iter()
        .filter_map(device)
        .collect()
}

/// The memory blocks; `None` where the kernel has none.
pub(super) fn blocks(root: &Path) -> Option<MemoryBlocks> {
    let directory = root.join("sys/devices/system/memory");
    let size = text(&directory.join("block_size_bytes"))?;
    let mut blocks = MemoryBlocks {
        size: Bytes(u64::from_str_radix(size.trim_start_matches("0x"), 16).ok()?),
        online: 0,
        offline: 0,
        movable: 0,
    };
    for number in numbered(&directory, "memory") {
        let path = directory.join(format!("memory{number}"));
        match text(&path.join("state")).as_deref() {
            Some("online") => {
                blocks.online += 1;
                let zones = text(&path.join("valid_zones")).unwrap_or_default();
                // An offline block lists the zones that it could go to.
                blocks.movable += u64::from(zones.split_whitespace().next() == Some("Movable"));
            }
            Some("offline") => blocks.offline += 1,
            _ => {}
        }
    }
    Some(blocks)
}
