//! Moves random ranges of the areas by random executors.

use std::fmt::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use isotherm_act::movement::migration::Migration;
use isotherm_act::movement::system::Kernel;
use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, NodeId, RangeAction};
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;
use isotherm_movement::fork_lock::ForkLock;
use isotherm_movement::placement::PlacementExecutor;
use isotherm_movement::staged::Staged;
use isotherm_movement::statistics::{FATES, Totals};
use isotherm_sys::staged::{Exclusion as _, PageKind, StagedCopy, StagedSettings, UNIT_BYTES};

use crate::area::{Area, Kind};
use crate::direct::Direct;
use crate::out_and_back::{OutAndBack, swap_areas};
use crate::output::say;
use crate::page::PAGE_BYTES;
use crate::two_copies::move_by_two_copies;

/// One executor and its results.
struct Mover<'a> {
    name: &'static str,
    /// Moves plain memory alone.
    staged: bool,
    executor: Box<dyn RangeExecutor + 'a>,
    totals: Totals,
}

impl<'a> Mover<'a> {
    fn new(name: &'static str, executor: impl RangeExecutor + 'a) -> Self {
        Self {
            name,
            staged: false,
            executor: Box::new(executor),
            totals: Totals::default(),
        }
    }

    fn carry_out(&mut self, range: Range<usize>, node: NodeId) {
        let range = AddressRange {
            start: range.start as u64,
            bytes: Bytes(range.len() as u64),
        };
        let outcome = self.executor.carry_out(RangeAction {
            process: Process::default(),
            range,
            node,
        });
        self.totals.add(&outcome);
    }
}

/// Moves until `stop`; returns a table of the results.
pub fn move_often(
    areas: &[Area],
    direct: Option<&Direct>,
    nodes: &[u32],
    lock: &ForkLock,
    stop: &AtomicBool,
    seed: u64,
) -> Result<String> {
    let mut movers = movers(lock);
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut by_paper, mut locked) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let mover = random.usize(..=movers.len());
        let node = NodeId(nodes[random.usize(..nodes.len())]);
        let area = &areas[random.usize(..areas.len())];
        let Some(mover) = movers.get_mut(mover) else {
            by_paper += move_alone(areas, lock)?;
            continue;
        };
        if let Some(direct) = direct
            && random.u8(..8) == 0
        {
            mover.carry_out(direct.range(), node);
            continue;
        }
        if mover.staged && !area.kind.is_plain() {
            continue;
        }
        let range = some_of(area, mover.staged, &mut random);
        let lock = area.kind == Kind::Locked && area.lock(true).is_ok();
        mover.carry_out(range, node);
        if lock {
            locked += 1;
            let _ = area.lock(false);
        }
    }
    Ok(table(&movers, by_paper, locked))
}

fn movers(lock: &ForkLock) -> Vec<Mover<'_>> {
    let mut movers = vec![
        Mover::new("kernel migration", Migration::new(Kernel::default())),
        Mover::new("placement", PlacementExecutor),
    ];
    match swap_areas() {
        0 => say(format_args!("without page-out: this machine has no swap")),
        _ => movers.push(Mover::new("page-out and back", OutAndBack::default())),
    }
    let settings = StagedSettings {
        even_if_there: true,
        ..StagedSettings::DEFAULT
    };
    match StagedCopy::open(settings) {
        Ok(copier) => movers.push(Mover {
            staged: true,
            // SAFETY: the areas are touched through atomics alone, and the memory of direct I/O by `read(2)` and
            // raw reads. Neither is ever unmapped, and areas are locked by the one thread that also moves.
            ..Mover::new("staged copy", unsafe { Staged::new(copier, lock) })
        }),
        Err(error) => say(format_args!("without staged copy: {error}")),
    }
    movers
}

/// A random part of an area: some units for a staged copy, any pages for the kernel.
fn some_of(area: &Area, staged: bool, random: &mut fastrand::Rng) -> Range<usize> {
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
fn move_alone(areas: &[Area], lock: &ForkLock) -> Result<u64> {
    let Some(area) = areas.iter().find(|area| area.kind == Kind::Paper) else {
        return Ok(0);
    };
    lock.enter();
    let moved = area.alone(|| by_two_copies(area));
    lock.leave();
    moved
}

fn by_two_copies(area: &Area) -> Result<u64> {
    let range = area.range();
    // SAFETY: the area is full, private and on unit boundaries. No thread touches it: the caller has closed it,
    // or is the canary, which must lose words.
    let moved = unsafe { move_by_two_copies(range.start, range.len(), 0, PageKind::Small, 1) };
    moved.map_err(|error| anyhow::anyhow!("two copies: {error:?}"))?;
    Ok(range.len() as u64)
}

/// The paper's method under writers, once.
pub fn move_unprotected(areas: &[Area]) -> Result<()> {
    let plain = areas.iter().filter(|area| area.kind == Kind::Small);
    for area in plain {
        by_two_copies(area)?;
    }
    Ok(())
}

fn table(movers: &[Mover<'_>], by_paper: u64, locked: u64) -> String {
    let columns = FATES.map(|fate| format!(" {fate:>9}")).concat();
    let mut text = format!("{:18}{columns}   MiB\n", "executor");
    for mover in movers {
        let mebibytes = FATES.map(|fate| format!(" {:>9}", mover.totals.of(fate).0 >> 20));
        let _ = writeln!(text, "{:18}{}", mover.name, mebibytes.concat());
    }
    let _ = write!(text, "{:18} {:>9}", "two copies, alone", by_paper >> 20);
    let _ = write!(text, "\nmoves tried while locked {locked}");
    text
}
