//! Shows the swap of a machine, compressed or not, and its measured costs, as text and as JSON, for `isotherm tiers`.

use isotherm_model::units::Bytes;
use isotherm_model::words;
use isotherm_report::table::DataTable;
use isotherm_report::words::printable;
use isotherm_topology::measure::PageOutCosts;
use isotherm_topology::{SwapArea, SwapMedium, SwapSpace};
use serde_json::{Value, json};

/// A table of the areas, a line for zswap, and a line for the measured costs; nothing on a machine without swap.
pub(super) fn text(swap: &SwapSpace, costs: Option<&PageOutCosts>) -> String {
    if swap.areas.is_empty() {
        return String::new();
    }
    let made_of = |area: &SwapArea| match &area.medium {
        SwapMedium::Zram(zram) => format!("compressed memory (zram, {})", zram.algorithm),
        SwapMedium::Device => "a device".to_owned(),
        SwapMedium::File => "a file".to_owned(),
    };
    let memory = |area: &SwapArea| match &area.medium {
        SwapMedium::Zram(zram) => zram.memory.to_string(),
        SwapMedium::Device | SwapMedium::File => "-".to_owned(),
    };
    let table = DataTable::of(&swap.areas)
        .left("swap", |area| printable(&area.path.to_string_lossy()))
        .left("made of", made_of)
        .right("size", |area| area.size)
        .right("used", |area| area.used)
        .right("takes in memory", memory)
        .right("priority", |area| area.priority)
        .render();
    let mut text = format!("\n{table}");
    if let Some(zswap) = &swap.zswap {
        text += &format!(
            "zswap ({}) keeps up to {} % of the machine's memory compressed before it writes: {} now, which take {}\n",
            zswap.algorithm, zswap.share, zswap.stored, zswap.memory
        );
    }
    if let Some(costs) = costs {
        text += &sentence(costs);
    }
    text
}

fn sentence(costs: &PageOutCosts) -> String {
    let (stored, memory) = costs.compressed;
    let compressed = match stored {
        Bytes::ZERO => String::new(),
        stored => format!(
            "; half-random pages take {} of their size there",
            words::percent(words::share(memory.0, stored.0))
        ),
    };
    format!(
        "a page of 4 KiB leaves memory in {} and comes back in {} (measured over {}){compressed}\n",
        costs.out,
        costs.back,
        words::counted(costs.pages, "page"),
    )
}

/// One object; `docs/formats.md` names its fields.
pub(super) fn json(swap: &SwapSpace, costs: Option<&PageOutCosts>) -> Value {
    let zswap = swap.zswap.as_ref().map(|zswap| {
        json!({
            "algorithm": zswap.algorithm,
            "share_percent": zswap.share,
            "stored_bytes": zswap.stored.0,
            "memory_bytes": zswap.memory.0,
        })
    });
    let costs = costs.map(|costs| {
        json!({
            "pages": costs.pages,
            "out_ns": costs.out.0,
            "back_ns": costs.back.0,
            "stored_bytes": costs.compressed.0.0,
            "memory_bytes": costs.compressed.1.0,
        })
    });
    json!({
        "compressed": swap.is_compressed(),
        "areas": swap.areas.iter().map(area).collect::<Vec<_>>(),
        "zswap": zswap,
        "costs": costs,
    })
}

fn area(area: &SwapArea) -> Value {
    let (medium, zram) = match &area.medium {
        SwapMedium::Zram(zram) => ("zram", Some(zram)),
        SwapMedium::Device => ("device", None),
        SwapMedium::File => ("file", None),
    };
    json!({
        "path": area.path.to_string_lossy(),
        "medium": medium,
        "size_bytes": area.size.0,
        "used_bytes": area.used.0,
        "priority": area.priority,
        "algorithm": zram.map(|zram| &zram.algorithm),
        "stored_bytes": zram.map(|zram| zram.stored.0),
        "memory_bytes": zram.map(|zram| zram.memory.0),
    })
}
