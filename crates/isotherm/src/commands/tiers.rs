//! `isotherm tiers` shows the tiers of this machine, of another (`--root`), of a file, or the emulated pair, with the reason for the tier
//! of each node, and swap and memory devices; it writes tiers files, measures this machine, and sets up and removes compressed memory.

mod compressed;
mod devices;
mod measure;
mod show;
mod swap;

use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_model::tier::{Tier, Tiers};
use isotherm_model::units::Bytes;
use isotherm_observe::probe::KernelProbe;
use isotherm_topology::{PlacedNode, View};

use crate::cli_tiers::TiersArgs;
use crate::tiers_choice;
use isotherm_console::shell_quoting;
use isotherm_console::{Console, print};
use show::Shown;

/// Prints the tiers, or writes them to a file; with --json it prints them in both cases. Measures them first with --measure. Returns the
/// exit status for the signal that interrupted a measurement, if any.
///
/// # Errors
/// Tiers that are not available; a file that cannot be written; no node that can be measured.
pub(crate) fn run(args: &TiersArgs, console: Console) -> Result<Option<ExitStatus>> {
    let changes = &args.compressed;
    if changes.make_compressed.is_some() || changes.remove_compressed {
        return compressed::run(changes, args.root.as_deref(), console);
    }
    let view = args.from_node.map_or(View::Machine, View::Node);
    if args.json
        && args
            .output
            .as_deref()
            .is_some_and(super::is_standard_output)
    {
        bail!("--json, --output -: both would go to standard output; leave out one of them");
    }
    if args.measure {
        return measure::run(args, view, console);
    }
    let mut shown = shown(args, view, console)?;
    if let Some(file) = &args.devices {
        let root = args.root.as_deref().unwrap_or(Path::new("/"));
        shown.devices = Some(match file {
            Some(file) => isotherm_topology::inventory_of_file(file, root)?,
            None => isotherm_topology::inventory(root),
        });
    }
    if let Some(path) = &args.output {
        let file = shown.file();
        super::write_text(path, &isotherm_topology::print(&file))?;
        if super::is_standard_output(path) {
            return Ok(None);
        }
        if args.json {
            print(&shown.json())?;
        }
        console.info(&format!("written to {}, in TOML", path.display()));
        console.next(&format!(
            "isotherm plan PROFILE --tiers {}",
            shell_quoting::file(path)
        ));
        return Ok(None);
    }
    shown.print(args.json)?;
    if shown.measured.is_empty() && !shown.tiers.emulates() && !args.json && args.root.is_none() {
        console.next("isotherm tiers --measure -o tiers.toml");
    }
    Ok(None)
}

fn shown(args: &TiersArgs, view: View, console: Console) -> Result<Shown> {
    let root = args.root.as_deref().unwrap_or(Path::new("/"));
    let detected = isotherm_topology::examine(root, view);
    let swap = (isotherm_topology::swap(root), None);
    if args.root.is_some() || args.from_node.is_some() {
        return Ok(Shown::detected(detected?, swap));
    }
    let tiers = tiers_choice::resolve(&args.tiers, None, console)?;
    // If the machine reports no nodes, the named tiers are shown without them.
    let (nodes, mut found) = detected.map_or_else(
        |_| (Vec::new(), Vec::new()),
        |detected| (detected.nodes, detected.notes),
    );
    found.extend(strangers(&nodes, &tiers));
    found.extend(tiers_choice::problem(&tiers, &KernelProbe));
    let (nodes, measured) = match tiers_choice::file(&args.tiers) {
        Some(path) => (
            by_tiers(nodes, &tiers),
            isotherm_topology::read_file(path)?.measured,
        ),
        None if tiers.emulates() => (by_tiers(nodes, &tiers), Vec::new()),
        None => (nodes, Vec::new()),
    };
    Ok(Shown {
        tiers,
        nodes,
        measured,
        notes: found,
        cost: None,
        devices: None,
        swap,
    })
}

/// Nodes by named tiers, which were not detected: the reason of a node is that of its tier.
fn by_tiers(nodes: Vec<PlacedNode>, tiers: &Tiers) -> Vec<PlacedNode> {
    let place = |placed: PlacedNode| {
        let number = placed.node.number;
        let holds = |tier: &&Tier| tier.nodes().contains(&number);
        let tier = tiers.all().iter().find(holds);
        PlacedNode {
            tier: tier.and_then(|tier| tiers.find(&tier.name)),
            reason: tier.map_or(placed.reason, |tier| tier.reason.clone()),
            ..placed
        }
    };
    nodes.into_iter().map(place).collect()
}

/// A note for each node of the tiers at which this machine has no memory; none if it reports no nodes. A file may be that of another
/// machine.
fn strangers(nodes: &[PlacedNode], tiers: &Tiers) -> Vec<String> {
    let has = |number: u32| {
        let found = nodes.iter().find(|placed| placed.node.number == number);
        nodes.is_empty() || found.is_some_and(|placed| placed.node.memory > Bytes::ZERO)
    };
    let mut notes = Vec::new();
    for tier in tiers.all() {
        let missing = tier.nodes().iter().filter(|number| !has(**number));
        let name = &tier.name;
        notes.extend(missing.map(|number| {
            format!(
                "tier {name}: this machine has no memory at node {number}; is the file for another machine?"
            )
        }));
    }
    notes
}
