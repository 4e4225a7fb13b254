//! `isotherm tiers`: the tiers of this machine, of a file, or the emulated pair.

use anyhow::{Context, Result};
use isotherm_model::tier::{Emulation, Tier, TierKind, Tiers};
use isotherm_model::units::Nanos;
use isotherm_report::table::{left, render, right};

use crate::cli::TiersArgs;
use crate::notes::{Notes, print};
use crate::tiers_choice;

/// Prints the tiers, or writes them to a file.
///
/// # Errors
/// Tiers that cannot be had; a file that cannot be written.
pub(crate) fn run(args: &TiersArgs, notes: Notes) -> Result<()> {
    let tiers = tiers_choice::resolve(&args.tiers, None, notes)?;
    if let Some(path) = &args.output {
        isotherm_observe::tiers::write_file(path, &tiers)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        notes.next(&format!("isotherm plan PROFILE --tiers {}", path.display()));
        return Ok(());
    }
    if args.json {
        let list: Vec<_> = tiers.all().iter().map(to_json).collect();
        let json = serde_json::json!({ "emulated": tiers.emulates(), "tiers": list });
        return print(&format!("{json:#}\n"));
    }
    print(&table(&tiers))?;
    let Some(costs) = tiers.all().iter().find_map(emulation) else {
        return Ok(());
    };
    print(&format!(
        "emulated: every {} the first access to a slow page takes {}, {} more if it is hot; a \
         moved page {}\n",
        costs.period, costs.access, costs.hot, costs.migrate
    ))
}

const fn emulation(tier: &Tier) -> Option<Emulation> {
    match tier.kind {
        TierKind::EmulatedSlow(costs) => Some(costs),
        TierKind::EmulatedFast | TierKind::Nodes(_) => None,
    }
}

fn made_of(tier: &Tier) -> String {
    match &tier.kind {
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => "emulated".to_owned(),
        TierKind::Nodes(nodes) => {
            let numbers: Vec<String> = nodes.iter().map(ToString::to_string).collect();
            format!("nodes {}", numbers.join(","))
        }
    }
}

fn bandwidth(bytes_per_second: Option<u64>) -> String {
    bytes_per_second.map_or("-".to_owned(), |rate| {
        format!("{:.1} GB/s", rate as f64 / 1e9)
    })
}

fn table(tiers: &Tiers) -> String {
    let columns = [
        left("tier"),
        left("made of"),
        right("capacity"),
        right("latency"),
        right("read"),
        right("write"),
        left("why here"),
    ];
    let latency = |nanos: Option<Nanos>| nanos.map_or("-".to_owned(), |nanos| nanos.to_string());
    let row = |tier: &Tier| {
        vec![
            tier.name.clone(),
            made_of(tier),
            tier.capacity.to_string(),
            latency(tier.latency),
            bandwidth(tier.read_bandwidth),
            bandwidth(tier.write_bandwidth),
            tier.reason.clone(),
        ]
    };
    let rows: Vec<_> = tiers.all().iter().map(row).collect();
    render(&columns, &rows)
}

fn to_json(tier: &Tier) -> serde_json::Value {
    let nodes = match &tier.kind {
        TierKind::Nodes(nodes) => Some(nodes.clone()),
        TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => None,
    };
    let costs = emulation(tier).map(|costs| {
        serde_json::json!({
            "period_ns": costs.period.0,
            "access_ns": costs.access.0,
            "hot_ns": costs.hot.0,
            "migrate_ns": costs.migrate.0,
        })
    });
    serde_json::json!({
        "name": tier.name,
        "nodes": nodes,
        "emulation": costs,
        "capacity_bytes": tier.capacity.0,
        "latency_ns": tier.latency.map(|latency| latency.0),
        "read_bytes_per_second": tier.read_bandwidth,
        "write_bytes_per_second": tier.write_bandwidth,
        "reason": tier.reason,
    })
}
