//! Tests the promises of the payback policy on every generator and several seeds: a hit rate lower than History's by chance alone, nine
//! tenths of the oracle's on phases, no more bytes moved than by History, and no more time.

use isotherm_model::units::{Bytes, Capacity};
use isotherm_sim::generate::{self, GeneratorSettings};
use isotherm_sim::{
    AtCapacity, EpochLength, SimulationReport, SimulationRequest, Workload, simulate,
};

const SEEDS: [u64; 3] = [1, 2, 3];

/// Difference of two hit rates by chance: three standard deviations of the difference of two
/// counts. Where pages are equally hot, as in uniform traces, all choices are equally good.
fn chance(rate: f64, accesses: u64) -> f64 {
    3.0 * (2.0 * rate * (1.0 - rate) / accesses as f64).sqrt()
}

fn report(generator: &str, seed: u64) -> SimulationReport {
    let settings = GeneratorSettings {
        seed,
        footprint: Bytes(4 << 20),
        accesses: 1 << 20,
        ..GeneratorSettings::default()
    };
    let accesses = generate::by_name(generator, settings).unwrap();
    let epoch = EpochLength::Accesses(settings.accesses / 64);
    let workload = Workload::of_trace(accesses, Bytes(4096), epoch).unwrap();
    let mut request = SimulationRequest::new(&workload);
    request.capacities = [0.25, 0.125, 0.0625].map(Capacity::Share).to_vec();
    request.policies = vec!["history".to_owned(), "payback".to_owned()];
    simulate(&request).unwrap()
}

/// Runs `check` on every capacity of every generator and seed, and names all three.
fn on_every_trace(check: impl Fn(&AtCapacity, &str)) {
    for generator in generate::names() {
        for seed in SEEDS {
            for at in report(generator, seed).capacities {
                check(&at, &format!("{generator}, seed {seed}, {} fast", at.fast));
            }
        }
    }
}

#[test]
fn payback_serves_no_less_than_history_and_moves_no_more_in_no_more_time_on_every_trace() {
    on_every_trace(|at, trace| {
        let [history, payback] = &at.policies[..] else {
            panic!("two policies were asked for");
        };
        let (of_history, of_payback) = (history.hit_rate(), payback.hit_rate());
        let short = chance(of_history, history.accesses);
        assert!(
            of_payback >= of_history - short,
            "{trace}: payback {of_payback:.4}, history {of_history:.4}"
        );
        assert!(
            payback.moved <= history.moved,
            "{trace}: {payback:?} {history:?}"
        );
        let (of_history, of_payback) = (history.time.0 as f64, payback.time.0 as f64);
        assert!(
            of_payback <= of_history * (1.0 + short),
            "{trace}: payback {of_payback} ns, history {of_history} ns"
        );
    });
}

#[test]
fn payback_serves_nine_tenths_of_what_the_oracle_does_on_phases() {
    for seed in SEEDS {
        for at in report("phases", seed).capacities {
            let (oracle, payback) = (at.oracle.hit_rate(), at.policies[1].hit_rate());
            let trace = format!("seed {seed}, {} fast", at.fast);
            assert!(
                payback >= 0.9 * oracle,
                "{trace}: {payback:.4} of {oracle:.4}"
            );
        }
    }
}

#[test]
fn payback_wins_much_where_history_runs_after_a_sweep() {
    for seed in SEEDS {
        let report = report("stencil-sweep", seed);
        let at = &report.capacities[0];
        let (history, payback) = (at.policies[0].hit_rate(), at.policies[1].hit_rate());
        assert!(
            payback > history + 0.05,
            "seed {seed}: {payback:.4} {history:.4}"
        );
    }
}
