//! [`HeatHistory`] keeps the heat that the daemon observed over time and address (TMP, figures 3 and 4); [`HeatMap`] is the daemon's answer
//! that shows it, as JSON, text and a page, with the distribution of accesses over memory (figure 5).
//!
//! The vertical axis is the virtual memory of the watched processes, one after the other, where TMP
//! shows physical addresses: what a program keeps together is together there. Memory that no
//! process holds has no row.
//!
//! ```text
//! epoch         7   8   9             one column per epoch, the newest epochs only
//! 4711 redis  | 9 | 9 | 8 |           one row a *part*: an aligned range of a process
//! 4711 redis  |   | 1 |   |
//! 4712 sort   | - | 3 | 5 |           it was not there in epoch 7
//! ```
//!
//! Parts are units, or as many together as it takes to have few enough of them: each epoch is kept in
//! the parts that suited it, and all are shown in the coarsest of those. So the history is bounded,
//! whatever is watched.

mod page;
mod text;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::{Accesses, Bytes, Nanos};
use isotherm_model::watch::{Unit, UnitHeat};
use serde::{Deserialize, Serialize};

use crate::capacity_curve::{CapacityCurve, Piece};
use crate::json_line::JsonLine;

/// Epochs that are kept: two minutes of epochs of a second.
const COLUMNS: usize = 120;

/// Parts of an epoch: more cannot be distinguished on a screen. With the columns they bound the history
/// to 0.7 MiB and a page to 5 MB.
const ROWS: usize = 128;

/// The last epochs.
#[derive(Clone, Debug, Default)]
pub struct HeatHistory {
    columns: VecDeque<Column>,
    names: BTreeMap<Process, String>,
}

/// One epoch in its parts.
#[derive(Clone, Debug, Default)]
struct Column {
    epoch: Epoch,
    span: Nanos,
    /// Bytes of a part.
    part: u64,
    /// By process and address. A list, because a tree of this few parts would mostly be empty room.
    cells: Box<[UnitHeat]>,
}

/// Joins parts into parts of `part` bytes.
fn joined(cells: impl IntoIterator<Item = UnitHeat>, part: u64) -> BTreeMap<Unit, UnitHeat> {
    let mut parts = BTreeMap::<Unit, UnitHeat>::new();
    for cell in cells {
        let start = cell.unit.start / part.max(1) * part.max(1);
        let unit = Unit { start, ..cell.unit };
        let sum = parts.entry(unit).and_modify(|sum| add(sum, &cell));
        sum.or_insert(UnitHeat { unit, ..cell });
    }
    parts
}

fn add(sum: &mut UnitHeat, other: &UnitHeat) {
    sum.resident += other.resident;
    sum.fast += other.fast;
    for (sum, hits) in sum.hits.iter_mut().zip(other.hits) {
        *sum = sum.saturating_add(hits);
    }
}

/// Joins cells to parts of `part` bytes, and doubles this size until the parts fit the rows; at the end every process is
/// one part. Returns the parts and their size.
fn fitted(cells: impl Iterator<Item = UnitHeat>, mut part: u64) -> (BTreeMap<Unit, UnitHeat>, u64) {
    let mut parts = joined(cells, part);
    while parts.len() > ROWS && part < 1 << 62 {
        part *= 2;
        parts = joined(parts.into_values(), part);
    }
    (parts, part)
}

/// Keeps as many parts as there are rows: those that are biggest now, then those that were biggest over time.
fn cut(cells: &mut BTreeMap<Unit, UnitHeat>, now: &BTreeMap<Unit, UnitHeat>) {
    let size = |(unit, heat): (&Unit, &UnitHeat)| {
        let now = now.get(unit).map_or(Bytes::ZERO, |now| now.resident);
        ((now, heat.resident), *unit)
    };
    let mut sizes: Vec<((Bytes, Bytes), Unit)> = cells.iter().map(size).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    for (_, unit) in sizes.into_iter().skip(ROWS) {
        cells.remove(&unit);
    }
}

impl HeatHistory {
    /// Adds an epoch. `names` are the programs of the processes, `unit` the size of a unit.
    pub fn push<'a>(
        &mut self,
        epoch: Epoch,
        span: Nanos,
        unit: Bytes,
        names: impl IntoIterator<Item = (Process, &'a str)>,
        units: impl IntoIterator<Item = UnitHeat>,
    ) {
        let units: Vec<UnitHeat> = units.into_iter().collect();
        // With this number of units, any smaller part gives more parts than rows: a machine with
        // millions of units is joined in one step.
        let together = units.len().div_ceil(ROWS).next_power_of_two() as u64;
        let finest = unit.0.max(1).saturating_mul(together);
        let (mut cells, part) = fitted(units.into_iter(), finest);
        cut(&mut cells, &BTreeMap::new());
        if self.columns.len() == COLUMNS {
            self.columns.pop_front();
        }
        self.columns.push_back(Column {
            epoch,
            span,
            part,
            cells: cells.into_values().collect(),
        });
        let names = names.into_iter();
        let names = names.map(|(process, name)| (process, name.to_owned()));
        self.names.extend(names);
        let cells = self.columns.iter().flat_map(|column| &column.cells);
        let kept: BTreeSet<Process> = cells.map(|cell| cell.unit.process).collect();
        self.names.retain(|process, _| kept.contains(process));
    }

    /// The kept epochs as one grid.
    #[must_use]
    pub fn map(&self) -> HeatMap {
        let parts = self.columns.iter().map(|column| column.part);
        let finest = parts.max().unwrap_or(1);
        let processes = |column: &Column| -> BTreeSet<Process> {
            let cells = column.cells.iter();
            cells.map(|cell| cell.unit.process).collect()
        };
        let living = self.columns.back().map(processes).unwrap_or_default();
        let all: BTreeSet<Process> = self.columns.iter().flat_map(processes).collect();
        // Memory of ended processes is left out: where many processes come and go, it would fill all rows.
        let is_there = |cell: &UnitHeat| living.contains(&cell.unit.process);
        let cells = self.columns.iter().flat_map(|column| &column.cells);
        // Each epoch has few enough parts, but processes come and go.
        let (mut rows, part) = fitted(cells.copied().filter(is_there), finest);
        let last = self.columns.back().into_iter();
        let last = joined(last.flat_map(|column| &column.cells).copied(), part);
        cut(&mut rows, &last);
        let row = |unit: &Unit| {
            let now = last.get(unit);
            HeatPlace {
                pid: unit.process.pid,
                name: self.names.get(&unit.process).cloned().unwrap_or_default(),
                start: unit.start,
                resident_bytes: now.map_or(0, |now| now.resident.0),
                fast_bytes: now.map_or(0, |now| now.fast.0),
            }
        };
        let columns = self.columns.iter().map(|column| HeatTime {
            epoch: column.epoch.0,
            span_ns: column.span.0,
        });
        let numbers: BTreeMap<Unit, usize> = rows.keys().copied().zip(0..).collect();
        let mut hits = [(); 2].map(|()| vec![vec![0; self.columns.len()]; rows.len()]);
        for (at, column) in self.columns.iter().enumerate() {
            for (unit, heat) in joined(column.cells.iter().copied(), part) {
                let Some(row) = numbers.get(&unit) else {
                    continue;
                };
                for (grid, hits) in hits.iter_mut().zip(heat.hits) {
                    grid[*row][at] = hits;
                }
            }
        }
        let [accessed_bits, trace_samples] = hits;
        HeatMap {
            version: HeatMap::VERSION,
            part_bytes: part,
            columns: columns.collect(),
            rows: rows.keys().map(row).collect(),
            processes_left_out: (all.len() - living.len()) as u64,
            accessed_bits,
            trace_samples,
        }
    }
}

/// A grid: time in columns, the memory of processes in rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatMap {
    /// [`JsonLine::VERSION`] of the daemon that wrote it.
    pub version: u32,
    /// Size of the part that a row stands for.
    pub part_bytes: u64,
    /// Time, oldest first.
    pub columns: Vec<HeatTime>,
    /// Places, by process and address, of processes that are there now.
    pub rows: Vec<HeatPlace>,
    /// Processes of these epochs that have no row, mostly because they have ended.
    #[serde(default)]
    pub processes_left_out: u64,
    /// Accessed bits found set, by row and column.
    pub accessed_bits: Vec<Vec<u64>>,
    /// Trace samples, likewise.
    pub trace_samples: Vec<Vec<u64>>,
}

/// An epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatTime {
    /// Its number.
    pub epoch: u32,
    /// How long it took.
    pub span_ns: u64,
}

/// A part of a process's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatPlace {
    /// The process.
    pub pid: u32,
    /// Its program.
    pub name: String,
    /// First address.
    pub start: u64,
    /// Bytes that are resident now; 0 where the process has given it back.
    pub resident_bytes: u64,
    /// Of these, bytes in the fast tier.
    pub fast_bytes: u64,
}

impl HeatMap {
    /// Hits of one kind, by row and column.
    #[must_use]
    pub fn hits(&self, method: ProfilingMethod) -> &[Vec<u64>] {
        match method {
            ProfilingMethod::AccessedBits => &self.accessed_bits,
            ProfilingMethod::TraceSamples => &self.trace_samples,
        }
    }

    /// How the hits of one kind are distributed over what is resident now.
    #[must_use]
    pub fn distribution(&self, method: ProfilingMethod) -> CapacityCurve {
        let rows = self.rows.iter().zip(self.hits(method));
        let pieces = rows
            .filter(|(row, _)| row.resident_bytes > 0)
            .map(|(row, hits)| Piece {
                accesses: Accesses(hits.iter().fold(0, |sum, hits| sum.saturating_add(*hits))),
                bytes: Bytes(row.resident_bytes),
            });
        CapacityCurve::new(pieces.collect())
    }

    /// The profiling methods with any hits.
    fn seen(&self) -> impl Iterator<Item = ProfilingMethod> {
        ProfilingMethod::ALL.into_iter().filter(|method| {
            let mut hits = self.hits(*method).iter().flatten();
            hits.any(|hits| *hits > 0)
        })
    }

    /// A sentence on the processes without a row; empty where there are none.
    fn left_out(&self) -> String {
        match usize::try_from(self.processes_left_out).unwrap_or(usize::MAX) {
            0 => String::new(),
            1 => "One process of these epochs is not shown: it has ended.".to_owned(),
            count => format!("{count} processes of these epochs are not shown: they have ended."),
        }
    }

    /// The time that the columns cover.
    fn span(&self) -> Nanos {
        let spans = self.columns.iter().map(|column| column.span_ns);
        Nanos(spans.fold(0, u64::saturating_add))
    }
}

/// How dark hits are drawn: 0 for none, otherwise 1 to `darkest`. By the logarithm: what is a hundred times hotter is
/// not a hundred times darker.
fn shade(hits: u64, most: u64, darkest: usize) -> usize {
    if hits == 0 {
        return 0;
    }
    let share = ((hits as f64 + 1.0).ln() / (most as f64 + 1.0).ln()).clamp(0.0, 1.0);
    ((share * darkest as f64).ceil() as usize).clamp(1, darkest)
}

impl JsonLine for HeatMap {
    const REQUEST: &'static str = "heat";
    const NAME: &'static str = "heat map";
    const VERSION: u32 = 1;

    fn check(&self) -> Result<(), String> {
        let fits = |grid: &[Vec<u64>]| {
            let width = self.columns.len();
            grid.len() == self.rows.len() && grid.iter().all(|row| row.len() == width)
        };
        match fits(&self.accessed_bits) && fits(&self.trace_samples) {
            true => Ok(()),
            false => Err("the daemon's heat map has rows of different lengths".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests;
