//! Writes the report of an invented graph program:
//! `page html|text|json [plain|planned|hostile] [columns]`.
//! `tests/pages` opens what it prints.

#[path = "../tests/support/graph.rs"]
mod graph;

use isotherm_model::units::Bytes;
use isotherm_report::Report;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let form = arguments.next().unwrap_or_default();
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
}
