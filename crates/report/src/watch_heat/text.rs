//! Formats the daemon's [`HeatMap`] for a terminal: maps of accessed bits and of trace samples, and their distribution over memory.

use isotherm_model::count_unit::CountUnit;
use isotherm_model::footprint::Footprint;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Bytes;

use super::{HeatMap, HeatPlace, shade};
use crate::capacity_table::CapacityCurves;
use crate::plot;
use crate::words::clip;

/// Characters for hits, from none to the most.
const LEVELS: [char; 6] = [' ', '·', '░', '▒', '▓', '█'];

/// Columns for the process, the program, the address and the share that is fast.
const LABEL: usize = 8 + 1 + 16 + 1 + 14 + 1 + 5 + 1;

/// Rows of a map printed on paper or into a pipe.
const LINES: usize = 32;

impl HeatMap {
    /// Maps of both kinds of hits and how these are distributed, in a terminal of this width.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        let mut text = String::new();
        for method in self.seen() {
            text += &self.lines(method, columns, LINES);
            let parts = self.distribution(method);
            let curves = CapacityCurves {
                counted: match method {
                    ProfilingMethod::TraceSamples => CountUnit::Samples,
                    ProfilingMethod::AccessedBits => CountUnit::Touches,
                },
                footprint: Footprint(parts.bytes()),
                curves: vec![("parts", parts)],
            };
            text += &format!("\n{}\n", curves.text(columns));
        }
        let left_out = self.left_out();
        if !left_out.is_empty() {
            text += &format!("{left_out}\n");
        }
        if text.is_empty() {
            text += "Nothing was seen yet: `isotherm status` says what the sources do.\n";
        }
        text
    }

    /// The map of one kind of hits, in at most `lines` rows and `columns` columns.
    #[must_use]
    pub fn lines(&self, method: ProfilingMethod, columns: usize, lines: usize) -> String {
        let width = columns.saturating_sub(LABEL).max(10);
        let (rows, cells) = self.shrunk(method, width, lines.max(1));
        let most = cells.iter().flatten().copied().max().unwrap_or(0);
        let mut text = format!(
            "{}: one row is {} of a process at least, darkest {most} hits\n",
            method.word(),
            Bytes(self.part_bytes)
        );
        for (row, cells) in rows.iter().zip(&cells) {
            let share = row.fast_bytes as f64 / row.resident_bytes.max(1) as f64;
            let line = format!(
                "{:>8} {:<16} {:>14x} {:>4.0}% ",
                row.pid,
                clip(&row.name, 16),
                row.start,
                share * 100.0
            );
            let cell = |hits: &u64| LEVELS[shade(*hits, most, LEVELS.len() - 1)];
            let cells: String = cells.iter().map(cell).collect();
            text += (line + &cells).trim_end();
            text.push('\n');
        }
        let shown = cells.first().map_or(0, Vec::len);
        let indent = LABEL.saturating_sub(plot::MARGIN);
        let ends = plot::ends(shown.max(16), &format!("-{}", self.span()), "now");
        text + &" ".repeat(indent) + &ends
    }

    /// Neighbouring rows of one process and neighbouring columns put together until they fit.
    fn shrunk(
        &self,
        method: ProfilingMethod,
        width: usize,
        lines: usize,
    ) -> (Vec<HeatPlace>, Vec<Vec<u64>>) {
        let every = self.columns.len().div_ceil(width).max(1);
        let sum = |hits: &[u64]| hits.iter().copied().fold(0, u64::saturating_add);
        let rows = self.rows.iter().zip(self.hits(method));
        let rows = rows.map(|(row, hits)| (row.clone(), hits.chunks(every).map(sum).collect()));
        let mut rows: Vec<(HeatPlace, Vec<u64>)> = rows.collect();
        while rows.len() > lines {
            let before = rows.len();
            rows = paired(rows);
            if rows.len() == before {
                // A row a process, and still too many: the biggest stay.
                rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.resident_bytes));
                rows.truncate(lines);
                rows.sort_by_key(|(row, _)| (row.pid, row.start));
            }
        }
        rows.into_iter().unzip()
    }
}

/// Every two neighbours of one process as one.
fn paired(rows: Vec<(HeatPlace, Vec<u64>)>) -> Vec<(HeatPlace, Vec<u64>)> {
    let mut paired: Vec<(HeatPlace, Vec<u64>)> = Vec::new();
    let mut open = false;
    for (row, hits) in rows {
        match paired.last_mut() {
            Some((first, sums)) if open && first.pid == row.pid => {
                first.resident_bytes = first.resident_bytes.saturating_add(row.resident_bytes);
                first.fast_bytes = first.fast_bytes.saturating_add(row.fast_bytes);
                for (sum, hits) in sums.iter_mut().zip(hits) {
                    *sum = sum.saturating_add(hits);
                }
                open = false;
            }
            _ => {
                paired.push((row, hits));
                open = true;
            }
        }
    }
    paired
}
