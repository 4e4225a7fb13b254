//! Prints what SPECIFICATION.md promises of the simulator and the epoch policies:
//! `figures [ACCESSES [SEED ...]]`, four million accesses and seeds 1 to 3 unless told.
//!
//! First the speed, page accesses replayed a second with History on one core, then, for every
//! generator, seed and capacity, the hit rate and the bytes moved of each policy.

use std::time::Instant;

use isotherm_model::units::{Bytes, Capacity};
use isotherm_sim::generate::{self, Settings};
use isotherm_sim::{EpochLength, PolicyResult, Request, Workload, replay, simulate};

const EPOCHS: u64 = 64;
const PAGE: Bytes = Bytes(4096);

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| {
        text.parse::<u64>()
            .unwrap_or_else(|_| panic!("\"{text}\" is not a whole number"))
    });
    let accesses = arguments.next().unwrap_or(1 << 22);
    let mut seeds: Vec<u64> = arguments.collect();
    if seeds.is_empty() {
        seeds = vec![1, 2, 3];
    }
    for generator in ["zipf", "uniform"] {
        speed(generator, seeds[0]);
    }
    println!(
        "\n{:<17} {:>5} {:>6}  {:>11} {:>11} {:>11} {:>11}  {:>10} {:>10}",
        "trace",
        "seed",
        "fast",
        "first touch",
        "history",
        "payback",
        "oracle",
        "h. moved",
        "p. moved"
    );
    for name in generate::names() {
        for &seed in &seeds {
            hit_rates(name, seed, accesses);
        }
    }
}

/// One GiB of pages, 64 million accesses, an eighth of it fast.
fn speed(generator: &str, seed: u64) {
    let settings = Settings {
        seed,
        footprint: Bytes(1 << 30),
        accesses: 1 << 26,
        ..Settings::default()
    };
    let workload = workload(generator, settings);
    let request = Request::new(&workload);
    let start = Instant::now();
    let result = replay(&request, "history", Capacity::Share(0.125)).expect("history is a policy");
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{generator}, {} pages, {EPOCHS} epochs, history, hit rate {:.4}: {:.0} million page accesses/s",
        workload.pages(),
        result.hit_rate(),
        result.accesses as f64 / seconds / 1e6
    );
}

fn workload(generator: &str, settings: Settings) -> Workload {
    let accesses = generate::by_name(generator, settings).expect("a generator by its own name");
    let epoch = EpochLength::Accesses((settings.accesses / EPOCHS).max(1));
    Workload::of_trace(accesses, PAGE, epoch).expect("generated traces can be replayed")
}

fn hit_rates(name: &str, seed: u64, accesses: u64) {
    let settings = Settings {
        seed,
        accesses,
        ..Settings::default()
    };
    let workload = workload(name, settings);
    let mut request = Request::new(&workload);
    request.policies = vec!["history".to_owned(), "payback".to_owned()];
    let report = simulate(&request).expect("the request is whole");
    for (at, share) in report.capacities.iter().zip([2, 4, 8, 16, 32, 64, 128]) {
        let rate = |result: &PolicyResult| format!("{:.4}", result.hit_rate());
        let (history, payback) = (&at.policies[0], &at.policies[1]);
        println!(
            "{name:<17} {seed:>5} {:>6}  {:>11} {:>11} {:>11} {:>11}  {:>10} {:>10}",
            format!("1/{share}"),
            rate(&at.first_touch),
            rate(history),
            rate(payback),
            rate(&at.oracle),
            history.moved.to_string(),
            payback.moved.to_string()
        );
    }
}
