//! Tests of the devices of machines made of files: of the firmware's table, of drivers and of a devices file.

use std::fs;
use std::path::Path;

use isotherm_model::units::Bytes;
use proptest::prelude::*;
use tempfile::TempDir;

use super::{DeviceSource, dmi_device, inventory, inventory_of_file};

const GIB: u64 = 1 << 30;

/// A structure of type 17: the word of the size, the size in MiB of the later field, the code of the kind, the ranks, the strings.
fn structure(size: u16, extended: u32, kind: u8, ranks: u8, strings: &[&str]) -> Vec<u8> {
    let mut bytes = vec![0_u8; 0x28];
    bytes[0] = 17;
    bytes[1] = 0x28;
    bytes[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
    bytes[0x10] = 1;
    bytes[0x12] = kind;
    bytes[0x1b] = ranks;
    bytes[0x1c..0x20].copy_from_slice(&extended.to_le_bytes());
    for text in strings {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes.push(0);
    bytes
}

fn write(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("makes the folder");
    fs::write(path, content).expect("writes");
}

/// A socket with two DIMMs of 16 GiB, an empty slot, and a CXL device of 64 GiB, which is node 1.
fn machine() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path();
    for (number, bytes) in [
        structure(0x4000, 0, 0x1a, 2, &["DIMM_A1"]),
        structure(0, 0, 0x02, 0, &["DIMM_A2"]),
        structure(0x4000, 0, 0x1a, 2, &["DIMM_B1"]),
    ]
    .iter()
    .enumerate()
    {
        write(
            root,
            &format!("sys/firmware/dmi/entries/17-{number}/raw"),
            bytes,
        );
    }
    for (node, kib, cpus) in [(0, 31 << 20, "0-7"), (1, 64 << 20, "")] {
        let node_path = format!("sys/devices/system/node/node{node}");
        write(
            root,
            &format!("{node_path}/meminfo"),
            format!("Node {node} MemTotal: {kib} kB\n"),
        );
        write(root, &format!("{node_path}/cpulist"), format!("{cpus}\n"));
    }
    write(root, "sys/bus/cxl/devices/mem0/ram/size", "0x1000000000\n");
    write(root, "sys/bus/cxl/devices/mem0/pmem/size", "0x0\n");
    write(root, "sys/bus/cxl/devices/mem0/numa_node", "1\n");
    write(
        root,
        "sys/devices/system/memory/block_size_bytes",
        "8000000\n",
    );
    for (number, state, zones) in [
        (0, "online", "none"),
        (32, "online", "Movable"),
        (33, "offline", "Movable Normal"),
    ] {
        write(
            root,
            &format!("sys/devices/system/memory/memory{number}/state"),
            format!("{state}\n"),
        );
        write(
            root,
            &format!("sys/devices/system/memory/memory{number}/valid_zones"),
            format!("{zones}\n"),
        );
    }
    directory
}

#[test]
fn dimms_of_the_firmware_and_cxl_devices_are_listed_with_their_nodes() {
    let machine = machine();
    let found = inventory(machine.path());
    let listed: Vec<_> = found
        .devices
        .iter()
        .map(|device| {
            (
                device.name.as_str(),
                device.capacity.0 / GIB,
                device.ranks,
                device.node,
                device.source,
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            ("DIMM_A1", 16, Some(2), Some(0), DeviceSource::Dmi),
            ("DIMM_B1", 16, Some(2), Some(0), DeviceSource::Dmi),
            ("mem0", 64, None, Some(1), DeviceSource::Cxl),
        ]
    );
    assert_eq!(found.devices[0].kind.as_deref(), Some("DDR4"));
    let blocks = found.blocks.expect("has blocks");
    assert_eq!(
        (blocks.size, blocks.online, blocks.offline, blocks.movable),
        (Bytes(128 << 20), 2, 1, 1)
    );
    assert_eq!(found.notes, [""; 0]);
}

#[test]
fn without_the_firmware_s_table_the_controllers_are_asked_and_then_the_nodes() {
    let machine = machine();
    let root = machine.path();
    fs::remove_dir_all(root.join("sys/firmware")).expect("removes");
    write(root, "sys/devices/system/edac/mc/mc0/dimm0/size", "16384\n");
    write(
        root,
        "sys/devices/system/edac/mc/mc0/dimm0/dimm_label",
        "CPU_SrcID#0_Chan#0_DIMM#0\n",
    );
    write(
        root,
        "sys/devices/system/edac/mc/mc0/dimm0/dimm_mem_type",
        "Registered-DDR4\n",
    );
    write(root, "sys/devices/system/edac/mc/mc0/dimm1/size", "0\n");
    let found = inventory(root);
    assert_eq!(found.devices[0].source, DeviceSource::Edac);
    assert_eq!(found.devices[0].name, "CPU_SrcID#0_Chan#0_DIMM#0");
    assert_eq!(found.devices.len(), 2);
    fs::remove_dir_all(root.join("sys/devices/system/edac")).expect("removes");
    let found = inventory(root);
    let names: Vec<&str> = found
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(names, ["mem0", "node 0"]);
    assert!(
        found.notes[0].contains("as in most virtual machines"),
        "{:?}",
        found.notes
    );
}

#[test]
fn two_sockets_leave_the_node_of_a_dimm_open() {
    let machine = machine();
    write(
        machine.path(),
        "sys/devices/system/node/node1/cpulist",
        "8-15\n",
    );
    let found = inventory(machine.path());
    assert_eq!(found.devices[0].node, None);
    assert!(
        found.notes[0].contains("which DIMM belongs to which node"),
        "{:?}",
        found.notes
    );
}

#[test]
fn sizes_of_every_form_are_read_and_an_empty_slot_is_no_device() {
    let size = |word, extended| {
        dmi_device(&structure(word, extended, 0x22, 0, &["A"])).map(|it| it.capacity.0)
    };
    assert_eq!(size(0x4000, 0), Some(16 * GIB));
    assert_eq!(size(0x7fff, 131_072), Some(128 * GIB));
    assert_eq!(size(0x8400, 0), Some(1 << 20));
    assert_eq!([size(0, 0), size(0xffff, 0), size(0x7fff, 0)], [None; 3]);
    let unnamed = dmi_device(&structure(1, 0, 0xff, 0, &[" "])).expect("a device");
    assert_eq!(
        (unnamed.name.as_str(), unnamed.kind, unnamed.ranks),
        ("unnamed", None, None)
    );
}

#[test]
fn a_devices_file_wins_and_what_contradicts_the_machine_is_refused_with_line_and_both_values() {
    let machine = machine();
    let root = machine.path();
    let path = root.join("devices.toml");
    let read = |text: &str| {
        fs::write(&path, text).expect("writes");
        inventory_of_file(&path, root).map_err(|error| error.to_string())
    };
    let device = |name: &str, node: u32, capacity: &str| {
        format!("[[device]]\nname = \"{name}\"\nnode = {node}\ncapacity = \"{capacity}\"\n")
    };
    let good = [
        device("DIMM_A1", 0, "16GiB"),
        device("DIMM_B1", 0, "16GiB"),
        device("far", 1, "64GiB"),
    ]
    .concat();
    let found = read(&good).expect("is right");
    assert_eq!(found.devices.len(), 3);
    assert!(
        found
            .devices
            .iter()
            .all(|device| device.source == DeviceSource::File)
    );
    for (text, part) in [
        (
            good.replace("node = 1", "node = 3"),
            ":11: device \"far\" is of node 3, and this machine has nodes 0, 1",
        ),
        (
            good.replacen("16GiB", "32GiB", 1),
            ":4: device \"DIMM_A1\" holds 32 GiB, and 16 GiB of this machine by DMI",
        ),
        (
            good.replace("64GiB", "32GiB"),
            ":9: the devices of node 1 hold 32 GiB together, and the node has 64 GiB",
        ),
        (
            good.replace("far", "DIMM_A1").replace("64GiB", "16GiB"),
            ":9: device \"DIMM_A1\" is there twice",
        ),
        (
            good.replace("64GiB", "0B"),
            ":12: device \"far\" holds nothing",
        ),
        (good.replace("64GiB", "much"), ":12: \"much\" is not a size"),
        (String::new(), "it names no device"),
        (
            good.replace("ranks", "rank") + "speed = 5\n",
            "unknown field",
        ),
    ] {
        let error = read(&text).expect_err(part);
        assert!(error.contains(part), "{error}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_device_or_none(bytes in prop::collection::vec(any::<u8>(), 0..300), length in any::<u8>()) {
        let mut bytes = bytes;
        if let [first, second, ..] = bytes.as_mut_slice() {
            (*first, *second) = (17, length);
        }
        if let Some(device) = dmi_device(&bytes) {
            prop_assert!(device.capacity > Bytes::ZERO && !device.name.is_empty());
        }
    }
}
