//! Shows the memory devices and the memory blocks of a machine, as text and as JSON, for `isotherm tiers --devices`.

use isotherm_model::words::counted;
use isotherm_report::table::DataTable;
use isotherm_topology::{Inventory, MemoryBlocks, MemoryDevice};
use serde_json::{Value, json};

/// The value, or `-` where it is not known.
pub(super) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A table, a line for the memory blocks, and a line for each note.
pub(super) fn text(inventory: &Inventory) -> String {
    let mut text = DataTable::of(&inventory.devices)
        .left("device", |device| device.name.clone())
        .left("kind", |device| or_dash(device.kind.as_ref()))
        .right("capacity", |device| device.capacity)
        .right("ranks", |device| or_dash(device.ranks))
        .right("node", |device| or_dash(device.node))
        .left("known from", |device| device.source)
        .render();
    if let Some(MemoryBlocks {
        size,
        online,
        offline,
        movable,
    }) = inventory.blocks
    {
        text += &format!(
            "{} of {size} online, {offline} offline; {movable} of those online can be emptied and taken offline (ZONE_MOVABLE)\n",
            counted(online, "memory block")
        );
    }
    for note in &inventory.notes {
        text += &format!("note: {note}\n");
    }
    text
}

/// One object; `docs/formats.md` names its fields.
pub(super) fn json(inventory: &Inventory) -> Value {
    let blocks = inventory.blocks.map(|blocks| {
        json!({
            "size_bytes": blocks.size.0, "online": blocks.online, "offline": blocks.offline, "movable": blocks.movable,
        })
    });
    let devices: Vec<Value> = inventory.devices.iter().map(device).collect();
    json!({ "list": devices, "memory_blocks": blocks, "notes": inventory.notes })
}

fn device(device: &MemoryDevice) -> Value {
    json!({
        "name": device.name,
        "kind": device.kind,
        "capacity_bytes": device.capacity.0,
        "ranks": device.ranks,
        "node": device.node,
        "known_from": device.source.to_string(),
    })
}
