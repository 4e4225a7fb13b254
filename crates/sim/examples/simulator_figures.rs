//! Measures the promised figures of the simulator and the epoch policies: `simulator_figures
//! [ACCESSES [SEED ...]]`, four million accesses and seeds 1 to 3 by default.
//!
//! First it prints the speed, page accesses replayed a second with History on one core, then, for
//! every generator, seed and capacity, the hit rate and the bytes moved of each policy. Lines that
//! begin with `reached` or `not reached` compare the figures with SPECIFICATION.md; `bench/run
//! policies` reads them.

use std::time::{Duration, Instant};

use isotherm_model::units::{Bytes, Capacity};
use isotherm_sim::generate::{self, GeneratorSettings};
use isotherm_sim::{EpochLength, PolicyResult, SimulationRequest, Workload, replay, simulate};

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
    let speeds = ["zipf", "uniform"].map(|generator| speed(generator, seeds[0]));
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
    let mut tally = Tally::default();
    for name in generate::names() {
        for &seed in &seeds {
            hit_rates(name, seed, accesses, &mut tally);
        }
    }
    println!();
    let slowest = speeds.into_iter().fold(f64::INFINITY, f64::min);
    verdict(
        "simulator with history, slower of two traces",
        "at least 50 million page accesses/s",
        &format!("{slowest:.0} million page accesses/s"),
        slowest >= 50.0,
    );
    tally.verdicts();
}

/// Prints a promise, and whether this machine keeps it.
fn verdict(what: &str, promised: &str, measured: &str, is_reached: bool) {
    let word = if is_reached { "reached" } else { "not reached" };
    println!("{word}: {what}: promised {promised}, measured {measured}");
}

/// The results of payback over all cases.
#[derive(Default)]
struct Tally {
    cases: u32,
    /// Cases in which payback serves less than History, and the largest difference.
    below: u32,
    most_below: f64,
    /// Cases in which payback serves less by more than chance explains.
    below_chance: u32,
    moved_more: u32,
    /// On phases: payback's hit rate over the oracle's, and the divisor of the capacity.
    of_oracle: Vec<(f64, u32)>,
}

impl Tally {
    fn add(&mut self, history: &PolicyResult, payback: &PolicyResult) {
        let rate = history.hit_rate();
        let below = rate - payback.hit_rate();
        // Three standard deviations of the difference of two counts.
        let chance = 3.0 * (2.0 * rate * (1.0 - rate) / history.accesses as f64).sqrt();
        self.cases += 1;
        self.below += u32::from(payback.hits < history.hits);
        self.below_chance += u32::from(below > chance);
        self.most_below = self.most_below.max(below);
        self.moved_more += u32::from(payback.moved > history.moved);
    }

    fn verdicts(&self) {
        let cases = self.cases;
        verdict(
            "payback, hit rate against history",
            "no lower anywhere",
            &format!(
                "lower in {} of {cases} cases, by at most {:.2} % of the accesses, in {} by more \
                 than chance",
                self.below,
                self.most_below * 100.0,
                self.below_chance
            ),
            self.below == 0,
        );
        verdict(
            "payback, bytes moved against history",
            "no more anywhere",
            &format!("more in {} of {cases} cases", self.moved_more),
            self.moved_more == 0,
        );
        let lowest = |parts: std::ops::RangeInclusive<u32>| {
            let of = self.of_oracle.iter();
            let shares = of.filter(|(_, part)| parts.contains(part));
            shares.fold(f64::INFINITY, |lowest, (share, _)| lowest.min(*share))
        };
        for (parts, words) in [
            (2..=16, "from 1/2 to 1/16"),
            (32..=128, "from 1/32 to 1/128"),
        ] {
            let lowest = lowest(parts);
            verdict(
                &format!("payback on phases, share of the oracle's hit rate, {words} fast"),
                "at least 0.90",
                &format!("{lowest:.3} at the lowest"),
                lowest >= 0.9,
            );
        }
    }
}

/// Processor time of this thread so far, so that other programs on the machine do not count; the
/// time of day where the kernel does not report it.
fn processor_time(start: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// Replays 64 million accesses to one GiB, an eighth of it fast, under History. Returns million page accesses a second.
fn speed(generator: &str, seed: u64) -> f64 {
    let settings = GeneratorSettings {
        seed,
        footprint: Bytes(1 << 30),
        accesses: 1 << 26,
        ..GeneratorSettings::default()
    };
    let workload = workload(generator, settings);
    let request = SimulationRequest::new(&workload);
    let start = Instant::now();
    let begin = processor_time(start);
    let result = replay(&request, "history", Capacity::Share(0.125)).expect("history is a policy");
    let seconds = processor_time(start).saturating_sub(begin).as_secs_f64();
    let speed = result.accesses as f64 / seconds / 1e6;
    println!(
        "{generator}, {} pages, {EPOCHS} epochs, history, hit rate {:.4}: {speed:.0} million page accesses/s",
        workload.pages(),
        result.hit_rate(),
    );
    speed
}

fn workload(generator: &str, settings: GeneratorSettings) -> Workload {
    let accesses = generate::by_name(generator, settings).expect("a generator by its own name");
    let epoch = EpochLength::Accesses((settings.accesses / EPOCHS).max(1));
    Workload::of_trace(accesses, PAGE, epoch).expect("generated traces can be replayed")
}

fn hit_rates(name: &str, seed: u64, accesses: u64, tally: &mut Tally) {
    let settings = GeneratorSettings {
        seed,
        accesses,
        ..GeneratorSettings::default()
    };
    let workload = workload(name, settings);
    let mut request = SimulationRequest::new(&workload);
    request.policies = vec!["history".to_owned(), "payback".to_owned()];
    let report = simulate(&request).expect("the request is whole");
    for (at, share) in report.capacities.iter().zip([2, 4, 8, 16, 32, 64, 128]) {
        let rate = |result: &PolicyResult| format!("{:.4}", result.hit_rate());
        let (history, payback) = (&at.policies[0], &at.policies[1]);
        tally.add(history, payback);
        if name == "phases" {
            let of_oracle = payback.hit_rate() / at.oracle.hit_rate();
            tally.of_oracle.push((of_oracle, share));
        }
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
