//! Writes the report of an invented graph program:
//! `page html|text|json [plain|planned|hostile] [columns]`.
//! `page daemon` writes the page of an invented daemon, one of whose processes has a hostile name.
//! `tests/pages` opens what it prints.

#[path = "../tests/support/graph.rs"]
mod graph;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Unit, UnitHeat};
use isotherm_report::Report;
use isotherm_report::watch_heat::HeatHistory;

const UNIT: u64 = 2 << 20;

/// Twenty epochs of two processes, whose heat wanders.
fn daemon_page() -> Result<String, String> {
    let process = |pid| Process { pid, image: 0 };
    let names = ["redis-server", "</script><img src=x onerror=hostile=1>"];
    let mut history = HeatHistory::default();
    for epoch in 0..20_u32 {
        let heat = |number: u64| UnitHeat {
            unit: Unit {
                process: process(1 + number as u32 % 2),
                start: number * UNIT,
            },
            resident: Bytes(UNIT),
            fast: Bytes(number % 3 * UNIT / 2),
            hits: [number, (number * u64::from(epoch)) % 37],
        };
        let named = (1..).map(process).zip(names);
        let (epoch, second) = (Epoch(epoch), Nanos(1_000_000_000));
        history.push(epoch, second, Bytes(UNIT), named, (0..40).map(heat));
    }
    history.map().html()
}

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let form = arguments.next().unwrap_or_default();
    if form == "daemon" {
        print!("{}", daemon_page()?);
        return Ok(());
    }
    let kind = arguments.next().unwrap_or_default();
    let planned = kind != "plain" && !kind.is_empty();
    let columns = arguments.next().and_then(|text| text.parse().ok());
    let mut profile = graph::profile();
    if kind == "hostile" {
        graph::make_hostile(&mut profile);
    }
    let plan = planned.then(|| graph::plan(&profile, Bytes(profile.footprint().0.0 / 4)));
    let report = Report::new(&profile, plan.as_ref());
    let report = report.named("bfs.iso", planned.then_some("bfs.plan"));
    match form.as_str() {
        "text" => print!("{}", report.text(columns.unwrap_or(100))),
        "json" => print!("{}", report.json()),
        _ => print!("{}", report.html()),
    }
    Ok(())
}
