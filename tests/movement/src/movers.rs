//! Moves random ranges of the areas by random executors.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::placement::PlacementExecutor;
use isotherm_act::movement::staged::Staged;
use isotherm_act::movement::statistics::{Statistics, Totals};
use isotherm_act::movement::system::Kernel;
use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangePolicy, RangeRequest};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_sys::staged::{
    CopyMethod, ForkLock, Movable, PageKind, StagedCopy, StagedSettings, UNIT_BYTES,
};

use crate::area::{Area, Kind};
use crate::direct::Direct;
use crate::page::PAGE_BYTES;
use crate::say::say;

/// One executor and its results.
struct Mover<'a> {
    name: String,
    /// Moves plain memory alone.
    staged: bool,
    /// Leaves memory alone that a device writes to.
    sees_devices: bool,
    request: fn(NodeId) -> RangeRequest,
    executor: Statistics<Box<dyn RangeExecutor + 'a>>,
}

/// The executor as the others see it: boxed executors are executors.
fn boxed<'a>(executor: impl RangeExecutor + 'a) -> Statistics<Box<dyn RangeExecutor + 'a>> {
    Statistics::new(Box::new(executor))
}

/// Moves until `stop`; returns a table of the results.
pub fn move_often(
    areas: &[Area],
    direct: Option<&Direct>,
    nodes: &[u32],
    gate: &ForkLock,
    stop: &AtomicBool,
    seed: u64,
) -> Result<String> {
    let mut movers = movers(areas, direct, gate);
    let mut paper = copier(None, 1);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut by_paper, mut locked) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let mover = random.usize(..=movers.len());
        let node = NodeId(nodes[random.usize(..nodes.len())]);
        let area = &areas[random.usize(..areas.len())];
        let Some(mover) = movers.get_mut(mover) else {
            if let Some(paper) = &mut paper {
                by_paper += move_alone(paper, areas, gate)?;
            }
            continue;
        };
        if let Some(direct) = direct
            && mover.sees_devices
            && random.u8(..8) == 0
        {
            mover.executor.execute(&[action(
                direct.movable().range().clone(),
                (mover.request)(node),
            )]);
            continue;
        }
        if mover.staged && !area.kind.is_plain() {
            continue;
        }
        let range = some_of(area, mover.staged, &mut random);
        let lock = area.kind == Kind::Locked && area.lock(true).is_ok();
        mover
            .executor
            .execute(&[action(range, (mover.request)(node))]);
        if lock {
            locked += 1;
            let _ = area.lock(false);
        }
    }
    Ok(table(&movers, by_paper, locked))
}

fn movers<'a>(areas: &[Area], direct: Option<&Direct>, gate: &'a ForkLock) -> Vec<Mover<'a>> {
    let kernel = || Kernel::new(Path::new("/"));
    let mut movers = vec![
        Mover {
            name: "kernel migration".to_owned(),
            staged: false,
            sees_devices: true,
            request: RangeRequest::Move,
            executor: boxed(Migration::new(kernel())),
        },
        Mover {
            name: "placement".to_owned(),
            staged: false,
            sees_devices: true,
            request: |node| RangeRequest::Place(RangePolicy::Preferred(node)),
            executor: boxed(PlacementExecutor::new(kernel())),
        },
    ];
    for method in CopyMethod::ALL {
        let Some(copier) = copier(Some(method), 2) else {
            continue;
        };
        let plain = areas.iter().filter(|area| area.kind.is_plain());
        let mut declared: Vec<Movable> = plain.map(declare).collect();
        if method == CopyMethod::Exchange {
            declared.extend(direct.map(Direct::movable));
        }
        movers.push(Mover {
            name: format!("staged, {}", method.word()),
            staged: true,
            sees_devices: method == CopyMethod::Exchange,
            request: RangeRequest::Move,
            executor: boxed(Staged::new(copier, declared, gate)),
        });
    }
    movers
}

fn declare(area: &Area) -> Movable {
    // SAFETY: areas are touched through atomics alone, are never unmapped, and are locked by the one thread
    // that also moves, never while a method works that could not detect it.
    unsafe { Movable::declare(area.range()) }
}

fn copier(method: Option<CopyMethod>, threads: usize) -> Option<StagedCopy> {
    let settings = StagedSettings {
        threads,
        method,
        even_if_there: true,
        ..StagedSettings::DEFAULT
    };
    let name = method.map_or("staged", CopyMethod::word);
    StagedCopy::open(settings)
        .map_err(|error| say(format_args!("without {name}: {error}")))
        .ok()
}

fn action(range: std::ops::Range<usize>, request: RangeRequest) -> RangeAction {
    RangeAction {
        process: Process::default(),
        range: AddressRange {
            start: range.start as u64,
            bytes: Bytes(range.len() as u64),
        },
        request,
    }
}

/// A random part of an area: some units for a staged copy, any pages for the kernel.
fn some_of(area: &Area, staged: bool, random: &mut fastrand::Rng) -> std::ops::Range<usize> {
    let grain = if staged && random.bool() {
        UNIT_BYTES
    } else {
        PAGE_BYTES
    };
    let range = area.range();
    let steps = range.len() / grain;
    let first = random.usize(..steps);
    let last = random.usize(first..steps);
    range.start + first * grain..range.start + (last + 1) * grain
}

/// The paper's method, while no other thread touches the area and no thread forks. Returns bytes moved.
fn move_alone(paper: &mut StagedCopy, areas: &[Area], gate: &ForkLock) -> Result<u64> {
    let Some(area) = areas.iter().find(|area| area.kind == Kind::Paper) else {
        return Ok(0);
    };
    gate.close();
    let moved = area.alone(|| by_two_copies(paper, area));
    gate.open();
    moved
}

fn by_two_copies(paper: &mut StagedCopy, area: &Area) -> Result<u64> {
    let range = area.range();
    let units = range.len() / UNIT_BYTES;
    // SAFETY: the area is full, private and on unit boundaries. No thread touches it: the caller has closed it,
    // or is the canary, which must lose words.
    let moved = unsafe { paper.move_by_two_copies(range.start, units, 0, PageKind::Small) };
    moved.map_err(|error| anyhow::anyhow!("two copies: {error:?}"))?;
    Ok(range.len() as u64)
}

/// The paper's method under writers, once.
pub fn move_unprotected(areas: &[Area]) -> Result<()> {
    let mut paper = copier(None, 1).context("opening the two copies")?;
    let plain = areas.iter().filter(|area| area.kind == Kind::Small);
    for area in plain {
        by_two_copies(&mut paper, area)?;
    }
    Ok(())
}

fn table(movers: &[Mover<'_>], by_paper: u64, locked: u64) -> String {
    let mut text = format!(
        "{:18} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}   MiB\n",
        "executor", "moved", "there", "busy", "denied", "not tried", "placed"
    );
    for mover in movers {
        let Totals {
            moved,
            already_there,
            busy,
            denied,
            not_attempted,
            requested,
            ..
        } = mover.executor.totals;
        let columns = [moved, already_there, busy, denied, not_attempted, requested];
        let _ = write!(text, "{:18}", mover.name);
        for bytes in columns {
            let _ = write!(text, " {:>9}", bytes.0 >> 20);
        }
        text.push('\n');
    }
    let _ = write!(text, "{:18} {:>9}", "two copies, alone", by_paper >> 20);
    let _ = write!(text, "\nmoves tried while locked {locked}");
    text
}
