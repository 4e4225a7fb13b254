//! Renders the daemon's [`HeatMap`] as an HTML page: charts of accessed bits, samples and their distribution, and a table of its rows.

use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Bytes;
use maud::html;
use serde_json::{Map, Value, json};

use super::{HeatMap, HeatPlace};
use crate::page::{chart, document, table};
use crate::table::DataTable;
use crate::words::{clip, counted};

/// Points of a distribution.
const POINTS: u32 = 200;

impl HeatMap {
    /// A self-contained page with a map of each kind of hits, their distribution, and a table of the rows.
    #[must_use]
    pub fn html(&self) -> String {
        let seen: Vec<ProfilingMethod> = self.seen().collect();
        let words = "Each row is a part of a process's memory, in the order of processes and addresses; each column is an epoch. \
                     Colour: hits, by the logarithm.";
        let distribution = "Share of the hits that the hottest part of the memory has.";
        let summary = format!(
            "{} in {}; a row is {} of a process's memory. {}",
            counted(self.columns.len(), "epoch"),
            self.span(),
            Bytes(self.part_bytes),
            self.left_out()
        );
        let body = html! {
            header {
                p.brand { "Isotherm daemon" }
                h1 { "What the daemon observed" }
                p.headline { (summary) }
            }
            main {
                @for kind in &seen {
                    @let label = format!("Heat map of {}", counted(self.rows.len(), "row"));
                    (chart(kind.word(), &format!("Hits of {}", kind.word()), words, &label, &html! {}))
                }
                @if seen.is_empty() {
                    section { p { "Nothing was seen yet." } }
                } @else {
                    (chart("distribution", "Hits by share of memory", distribution, distribution, &html! {}))
                }
                section {
                    h2 { "Parts of memory" }
                    (self.table())
                }
            }
        };
        let charts = self.charts(&seen);
        document("Isotherm: what the daemon observed", &body, &charts)
    }

    /// The figures of each chart.
    fn charts(&self, seen: &[ProfilingMethod]) -> Value {
        let map = |kind: &ProfilingMethod| (kind.word().to_owned(), self.map_figures(*kind));
        let mut charts: Map<String, Value> = seen.iter().map(map).collect();
        if !seen.is_empty() {
            charts.insert("distribution".to_owned(), self.distribution_figures(seen));
        }
        charts.into()
    }

    /// Rows by their addresses; the first one of a process has its name beside it.
    fn map_figures(&self, kind: ProfilingMethod) -> Value {
        let row = |(at, row): (usize, &HeatPlace)| {
            let process = format!("{} {}", row.pid, clip(&row.name, 64));
            let is_first = at == 0 || self.rows[at - 1].pid != row.pid;
            json!({
                "title": format!("{process} at {:x}", row.start),
                "label": if is_first { process } else { String::new() },
            })
        };
        let mut start = 0_u64;
        let columns = self.columns.iter().map(|column| {
            let begin = start;
            start = start.saturating_add(column.span_ns);
            json!({ "start_ns": begin, "span_ns": column.span_ns })
        });
        let cells = self.hits(kind).iter().enumerate().flat_map(|(row, hits)| {
            let hit = hits.iter().enumerate().filter(|(_, hits)| **hits > 0);
            hit.map(move |(column, hits)| json!([column, row, hits, hits]))
        });
        json!({
            "kind": "heat",
            "counted": "hits",
            "columns": columns.collect::<Vec<_>>(),
            "rows": self.rows.iter().enumerate().map(row).collect::<Vec<_>>(),
            "cells": cells.collect::<Vec<_>>(),
        })
    }

    /// One curve for each kind of hits.
    fn distribution_figures(&self, seen: &[ProfilingMethod]) -> Value {
        let curve = |kind: &ProfilingMethod| {
            let curve = self.distribution(*kind);
            let point = |step: u32| {
                let share = f64::from(step) / f64::from(POINTS);
                let bytes = Bytes((curve.bytes().0 as f64 * share) as u64);
                [share, curve.share_at(bytes)]
            };
            let points: Vec<[f64; 2]> = (0..=POINTS).map(point).collect();
            json!({ "name": kind.word(), "points": points })
        };
        json!({
            "kind": "lines",
            "x": "share of the memory, hottest first",
            "y": "share of the hits",
            "series": seen.iter().map(curve).collect::<Vec<_>>(),
        })
    }

    /// The content of each row, for readers who do not see the charts.
    fn table(&self) -> maud::Markup {
        let sum = |hits: &Vec<u64>| hits.iter().copied().fold(0, u64::saturating_add);
        let [bits, samples] = [&self.accessed_bits, &self.trace_samples];
        let hits = bits.iter().map(sum).zip(samples.iter().map(sum));
        let rows: Vec<(&HeatPlace, (u64, u64))> = self.rows.iter().zip(hits).collect();
        let rows = DataTable::of(&rows)
            .left("process", |row| row.0.pid)
            .left("program", |row| row.0.name.clone())
            .left("address", |row| format!("{:x}", row.0.start))
            .right("resident", |row| Bytes(row.0.resident_bytes))
            .right("fast", |row| Bytes(row.0.fast_bytes))
            .right("accessed bits", |row| row.1.0)
            .right("trace samples", |row| row.1.1);
        table("Parts of memory", &rows)
    }
}
