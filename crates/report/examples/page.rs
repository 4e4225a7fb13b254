//! Writes the report of an invented graph program:
//! `page html|text|json [plain|planned|hostile|many] [columns]`: without a plan or accessing code, with both, with hostile names,
//! with 50,000 sites.
//! `page daemon` writes the page of an invented daemon, one of whose processes has a hostile name, and `page simulation`
//! that of an invented sweep over a file with such a name, `page sensitivity` that of a program with a data object of such a name.
//! `tests/pages` opens what it prints.

#[path = "../tests/support/graph.rs"]
mod graph;

#[path = "../tests/support/accessing.rs"]
mod accessing;

#[path = "../tests/support/many.rs"]
mod many;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Unit, UnitHeat};
use isotherm_report::Report;
use isotherm_report::sensitivity::{
    MeasuredBenefit, MeasuredSensitivity, ObjectBenefit, ObjectSensitivity, PlacementTimes,
    ProgramSensitivity, SensitivityTable,
};
use isotherm_report::simulation::{SCHEMA_VERSION, SimulatedCapacity, SimulatedPolicy, Simulation};
use isotherm_report::watch_heat::HeatHistory;

const UNIT: u64 = 2 << 20;

/// Markup that would run a script.
const HOSTILE: &str = "</script><img src=x onerror=hostile=1>";

/// Three policies at four capacities.
fn simulation_page() -> String {
    let policy = |name: &str, hit_rate| SimulatedPolicy {
        policy: name.to_owned(),
        is_bound: name != "payback",
        hit_rate,
        hits: 0,
        time_ns: 0,
        energy_pj: 0,
        moved_bytes: 0,
        fast_used_bytes: 0,
        gap_closed: None,
        energy_of_interleaved: None,
    };
    let capacity = |halving: i32| {
        let share = 0.5_f64.powi(halving);
        SimulatedCapacity {
            fast_bytes: (1 << 30) >> halving,
            share_of_footprint: share,
            policies: vec![
                policy("first touch", share),
                policy("payback", share.powf(0.5)),
                policy("oracle", share.powf(0.3)),
            ],
        }
    };
    let simulation = Simulation {
        schema_version: SCHEMA_VERSION,
        input: HOSTILE.to_owned(),
        seed: None,
        machine: "cxl".to_owned(),
        power: "flat".to_owned(),
        accesses_per_count: 1,
        source: "exact".to_owned(),
        page_bytes: 4096,
        footprint_bytes: 1 << 30,
        epochs: 64,
        counted: CountUnit::Accesses,
        accesses: 1_000_000,
        left_out: 0,
        all_fast_ns: 1_000_000,
        all_slow_ns: 2_500_000,
        notes: vec!["there is one epoch".to_owned()],
        capacities: (1..5).map(capacity).collect(),
    };
    simulation.html()
}

/// Twenty epochs of two processes, whose heat wanders.
fn daemon_page() -> String {
    let process = |pid| Process { pid, image: 0 };
    let names = ["redis-server", HOSTILE];
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

/// Three objects, measured and predicted; one was slower in fast memory.
fn sensitivity_page() -> String {
    let program = |slowdown| ProgramSensitivity {
        slowdown,
        class: "medium",
        class_factor: 2,
        printed_factor: 2,
    };
    let benefit = |benefit| ObjectBenefit {
        benefit,
        co_benefit: 2.0 * benefit,
        printed_co_benefit: 2.0 * benefit,
    };
    let times = |millis: u64| {
        let rounds = [millis, millis + 20, millis + 10].map(|it| Nanos(it * 1_000_000));
        PlacementTimes::of(&rounds).expect("rounds")
    };
    let object = |name: &str, alone, measured: f64, predicted| ObjectSensitivity {
        site: "00000000000000ab".to_owned(),
        object: name.to_owned(),
        kind: "heap",
        size_bytes: 64 << 20,
        measured: Some(MeasuredBenefit {
            of_medians: benefit(measured),
            benefit_min: Some(measured - 0.04),
            benefit_max: Some(measured + 0.06),
            times: times(alone),
        }),
        exceeded_limit: false,
        predicted: Some(benefit(predicted)),
    };
    let table = SensitivityTable {
        schema_version: 1,
        command: vec!["./sim".to_owned()],
        tiers: "emulated:cxl".to_owned(),
        emulated: true,
        latency_factor: Some(2.3),
        bandwidth_factor: Some(2.0),
        footprint_bytes: 192 << 20,
        measured: Some(MeasuredSensitivity {
            program: program(2.1),
            all_slow: times(2_100),
            all_fast: times(1_000),
        }),
        time_limit: None,
        predicted: Some(program(2.2)),
        objects: vec![
            object("grid.cc:12 make_grid: energies", 1_300, 0.72, 0.66),
            object(HOSTILE, 1_600, 0.31, 0.34),
            object("log.cc:80 open_log", 2_150, -0.05, 0.0),
        ],
        objects_left_out: 0,
        benefit_left_out: Some(0.0),
        outputs_differ: false,
    };
    table.html()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let form = arguments.next().unwrap_or_default();
    let kind = arguments.next().unwrap_or_default();
    let planned = kind != "plain" && !kind.is_empty();
    let columns = arguments.next().and_then(|text| text.parse().ok());
    let mut profile = match kind.as_str() {
        "many" => many::profile(),
        _ => graph::profile(),
    };
    if kind == "planned" || kind == "hostile" {
        accessing::add(&mut profile);
    }
    if kind == "hostile" {
        graph::make_hostile(&mut profile);
    }
    let capacity = Bytes(profile.footprint().0.0 / 4);
    let plan = planned.then(|| graph::split(graph::plan(&profile, capacity)));
    let report = Report::new(&profile, plan.as_ref());
    let report = report.named("bfs.iso", planned.then_some("bfs.plan"));
    match form.as_str() {
        "text" => print!("{}", report.text(columns.unwrap_or(100))),
        "json" => print!("{}", report.json()),
        "daemon" => print!("{}", daemon_page()),
        "simulation" => print!("{}", simulation_page()),
        "sensitivity" => print!("{}", sensitivity_page()),
        _ => print!("{}", report.html()),
    }
}
