//! [`HeatGrid`] has the accesses of a profile by time and place, for the report's JSON and HTML, as a grid of bounded size. A column is one
//! or more epochs. A row is an equal share, by address, of the accessed chunks of a site, for the sites with most accesses; the last row is
//! all other sites. `resident` gathers epochs into [`Columns`], too.

use std::collections::{HashMap, HashSet};

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::profile::{Heat, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::units::Nanos;
use serde::Serialize;

use crate::sites::SiteRow;

/// Columns at most: more cannot be distinguished on a screen.
pub(crate) const COLUMNS: usize = 120;
/// Rows at most, the one for all other sites not counted.
const ROWS: usize = 48;
/// Sites that get rows of their own.
const SITES: usize = 24;
/// Rows that one site gets at most.
const PARTS: usize = 8;

/// Accesses by time and place.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HeatGrid {
    /// Time, one or more epochs a column.
    pub columns: Vec<HeatColumn>,
    /// Place, in the order of the sites.
    pub rows: Vec<HeatRow>,
    /// Where accesses were seen.
    pub cells: Vec<HeatCell>,
}

/// A column: one or more epochs.
#[derive(Clone, Debug, Serialize)]
pub struct HeatColumn {
    /// First epoch.
    pub first_epoch: u32,
    /// Last epoch.
    pub last_epoch: u32,
    /// Start, since the start of the run.
    pub start_ns: u64,
    /// Length.
    pub span_ns: u64,
}

/// A row: a part of a site's data, by address.
#[derive(Clone, Debug, Serialize)]
pub struct HeatRow {
    /// Id of the site; empty for the last row, all other sites.
    pub site: String,
    /// Where it is allocated.
    pub location: String,
    /// Number of the part, from 1.
    pub part: usize,
    /// Number of parts of the site.
    pub parts: usize,
    /// Bytes of the chunks in which accesses were seen.
    pub bytes: u64,
}

/// Accesses in one column and row.
#[derive(Clone, Debug, Serialize)]
pub struct HeatCell {
    /// Index of the column.
    pub column: usize,
    /// Index of the row.
    pub row: usize,
    /// Accesses.
    pub accesses: u64,
    /// Accesses for each MiB and second.
    pub accesses_per_mib_second: f64,
}

/// Epochs gathered into columns.
pub(crate) struct Columns {
    pub(crate) columns: Vec<HeatColumn>,
    of: HashMap<Epoch, usize>,
}

impl Columns {
    /// At most `limit` columns of equal numbers of epochs, as nearly as can be.
    pub(crate) fn new(profile: &Profile, limit: usize) -> Self {
        let count = profile.epochs.len().min(limit);
        let mut columns: Vec<HeatColumn> = Vec::with_capacity(count);
        let mut of = HashMap::new();
        let mut start = Nanos::ZERO;
        for (i, span) in profile.epochs.iter().enumerate() {
            let column = i * count / profile.epochs.len();
            of.insert(span.epoch, column);
            if let Some(open) = columns.get_mut(column) {
                open.last_epoch = span.epoch.0;
                open.span_ns = open.span_ns.saturating_add(span.span.0);
            } else {
                columns.push(HeatColumn {
                    first_epoch: span.epoch.0,
                    last_epoch: span.epoch.0,
                    start_ns: start.0,
                    span_ns: span.span.0,
                });
            }
            start += span.span;
        }
        Self { columns, of }
    }

    pub(crate) fn of(&self, epoch: Epoch) -> Option<usize> {
        self.of.get(&epoch).copied()
    }
}

impl HeatGrid {
    pub(crate) fn new(profile: &Profile, sites: &[SiteRow]) -> Self {
        let columns = Columns::new(profile, COLUMNS);
        let chunk = profile.meta.chunk.0.max(1);
        let places = Places::new(profile, sites);
        let mut rows = places.rows.clone();
        let mut sums = HashMap::<(usize, usize), u64>::new();
        for heat in &profile.heat {
            if let (Some(column), Some(row)) = (columns.of(heat.epoch), places.row(heat)) {
                let sum = sums.entry((column, row)).or_default();
                *sum = sum.saturating_add(heat.accesses.0);
            }
        }
        for (row, chunks) in rows.iter_mut().zip(&places.chunks) {
            row.bytes = (*chunks as u64).saturating_mul(chunk);
        }
        let mut cells: Vec<_> = sums
            .into_iter()
            .filter(|(_, accesses)| *accesses > 0)
            .map(|((column, row), accesses)| {
                let mebibytes = rows[row].bytes as f64 / f64::from(1 << 20);
                let seconds = columns.columns[column].span_ns.max(1) as f64 / 1e9;
                HeatCell {
                    column,
                    row,
                    accesses,
                    accesses_per_mib_second: accesses as f64 / mebibytes / seconds,
                }
            })
            .collect();
        cells.sort_by_key(|cell| (cell.column, cell.row));
        Self {
            columns: columns.columns,
            rows,
            cells,
        }
    }
}

/// The rows of one site.
struct Own {
    first: usize,
    parts: usize,
    /// Its chunks, sorted.
    chunks: Vec<(Process, u64)>,
}

/// Which row each chunk belongs to.
#[derive(Default)]
struct Places {
    rows: Vec<HeatRow>,
    /// Chunks in each row.
    chunks: Vec<usize>,
    /// First row and sorted chunks of each site that has rows of its own.
    own: HashMap<SiteId, Own>,
    placeable: HashSet<SiteId>,
}

impl Places {
    fn new(profile: &Profile, sites: &[SiteRow]) -> Self {
        let mut loudest: Vec<&SiteRow> = sites.iter().filter(|site| site.accesses > 0).collect();
        loudest.sort_by_key(|site| std::cmp::Reverse(site.accesses));
        loudest.truncate(SITES);
        let mut chunks = HashMap::<SiteId, Vec<(Process, u64)>>::new();
        for heat in &profile.heat {
            let known = chunks.entry(heat.site).or_default();
            known.push((heat.process, heat.address));
        }
        for list in chunks.values_mut() {
            list.sort_unstable();
            list.dedup();
        }
        let own: HashSet<SiteId> = loudest.iter().map(|site| site.id).collect();
        let count =
            |id: SiteId, chunks: &HashMap<SiteId, Vec<_>>| chunks.get(&id).map_or(0, Vec::len);
        let total: usize = own.iter().map(|id| count(*id, &chunks)).sum();
        let mut places = Self {
            placeable: sites.iter().map(|site| site.id).collect(),
            ..Self::default()
        };
        for site in sites.iter().filter(|site| own.contains(&site.id)) {
            let chunk_count = count(site.id, &chunks);
            // One row for each site, and the rest by size.
            let by_size = (ROWS - own.len()) * chunk_count / total.max(1);
            let parts = (1 + by_size).min(PARTS).min(chunk_count).max(1);
            let list = chunks.remove(&site.id).unwrap_or_default();
            places.add(site, parts, list);
        }
        let others = sites.len() - own.len();
        let rest = chunks
            .iter()
            .filter(|(site, _)| places.placeable.contains(*site));
        let rest: usize = rest.map(|(_, list)| list.len()).sum();
        if rest > 0 {
            places.rows.push(HeatRow {
                site: String::new(),
                location: crate::words::counted(others, "other site"),
                part: 1,
                parts: 1,
                bytes: 0,
            });
            places.chunks.push(rest);
        }
        places
    }

    fn add(&mut self, site: &SiteRow, parts: usize, list: Vec<(Process, u64)>) {
        let first = self.rows.len();
        for part in 0..parts {
            self.rows.push(HeatRow {
                site: site.site.clone(),
                location: site.location.clone(),
                part: part + 1,
                parts,
                bytes: 0,
            });
            let begin = (part * list.len()).div_ceil(parts);
            let end = ((part + 1) * list.len()).div_ceil(parts);
            self.chunks.push(end - begin);
        }
        self.own.insert(
            site.id,
            Own {
                first,
                parts,
                chunks: list,
            },
        );
    }

    /// The row of an access; none for memory that no site made.
    fn row(&self, heat: &Heat) -> Option<usize> {
        let Some(own) = self.own.get(&heat.site) else {
            let is_other = self.placeable.contains(&heat.site);
            return is_other.then(|| self.rows.len() - 1);
        };
        let chunk = (heat.process, heat.address);
        let index = own.chunks.binary_search(&chunk).ok()?;
        Some(own.first + index * own.parts / own.chunks.len())
    }
}
