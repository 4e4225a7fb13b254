//! Compares the two readings of ATMem's equation 2 with thermos, on every generated trace: `chunk_selection [ACCESSES [SEED]]`, a
//! million accesses and seed 1 by default.
//!
//! The memory of a trace is one data object of one site, with exact counts for each page. A figure is the share of the accesses between
//! first touch, 0, and the oracle, 1, that the fast memory serves; a case in which the two differ by less than a hundredth of the accesses
//! is left out. `bench/run chunks` reads the lines, whose columns are separated by tabs.

use std::collections::BTreeMap;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::trace::Access;
use isotherm_model::units::{Accesses, Bytes, Capacity, Nanos};
use isotherm_sim::generate::{self, GeneratorSettings};
use isotherm_sim::{AtCapacity, PolicyResult, SimulationRequest, Workload, simulate};

const EPOCHS: u64 = 64;
const PAGE: u64 = 4096;
const SITE: SiteId = SiteId(2);
const POLICIES: [&str; 3] = ["atmem=eq2:printed", "atmem=eq2:prose", "thermos"];
const CAPACITIES: [f64; 3] = [0.5, 0.25, 0.125];
/// The least difference between the oracle and first touch, as a share of the accesses.
const LEAST: f64 = 0.01;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| {
        text.parse::<u64>()
            .unwrap_or_else(|_| panic!("\"{text}\" is not a whole number"))
    });
    let settings = GeneratorSettings {
        accesses: arguments.next().unwrap_or(1 << 20),
        seed: arguments.next().unwrap_or(1),
        ..GeneratorSettings::default()
    };
    println!("trace\tfast\t{}", POLICIES.join("\t"));
    for name in generate::names() {
        let trace = generate::by_name(name, settings).expect("a known name");
        let workload = Workload::of_profile(&profile(trace, settings)).expect("a workload");
        for (capacity, shares) in shares(&workload) {
            let words: Vec<String> = shares.iter().map(|share| format!("{share:.3}")).collect();
            println!("{name}\t{capacity}\t{}", words.join("\t"));
        }
    }
}

/// The trace as an exact profile.
fn profile(trace: impl Iterator<Item = Access>, settings: GeneratorSettings) -> Profile {
    let mut profile = Profile::new(Meta {
        chunk: Bytes(PAGE),
        ..Meta::default()
    });
    let length = settings.accesses.div_ceil(EPOCHS);
    let mut counts = BTreeMap::<(u64, u64), u64>::new();
    for (number, access) in (0..).zip(trace) {
        *counts
            .entry((number / length, access.address / PAGE * PAGE))
            .or_default() += 1;
    }
    profile.epochs = (0..EPOCHS as u32)
        .map(|epoch| EpochSpan {
            epoch: Epoch(epoch),
            span: Nanos(1),
        })
        .collect();
    profile.sites = vec![Site {
        peak_rss: settings.footprint,
        ..Site::new(SITE, SiteKind::Heap)
    }];
    let heat = counts.into_iter().map(|((epoch, address), count)| Heat {
        epoch: Epoch(epoch as u32),
        process: Process::default(),
        site: SITE,
        address,
        object: None,
        accesses: Accesses(count),
        streamed: Accesses::ZERO,
        served: Accesses::ZERO,
    });
    profile.heat = heat.collect();
    profile
}

/// For each capacity, the shares between first touch and the oracle that the policies serve.
fn shares(workload: &Workload) -> Vec<(f64, Vec<f64>)> {
    let mut request = SimulationRequest::new(workload);
    request.policies = POLICIES.map(str::to_owned).into();
    request.capacities = CAPACITIES.map(Capacity::Share).into();
    let report = simulate(&request).expect("known policies");
    let capacities = CAPACITIES.into_iter().zip(&report.capacities);
    let shares = |(capacity, at): (f64, &AtCapacity)| {
        let (least, most) = (at.first_touch.hit_rate(), at.oracle.hit_rate());
        let share = |policy: &PolicyResult| (policy.hit_rate() - least) / (most - least);
        (most - least >= LEAST).then(|| (capacity, at.policies.iter().map(share).collect()))
    };
    capacities.filter_map(shares).collect()
}
