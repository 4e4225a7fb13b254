//! Tests that measurements of this machine run, with little memory and little time, and that figures are there; their
//! values are not compared.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::units::{Bytes, Nanos};

use super::{
    MeasureError, MeasureSettings, MeasureStep, Pair, Rates, measure, speeds, thread_counts,
};
use crate::grouping::View;

const QUICK: MeasureSettings = MeasureSettings {
    memory: Some(Bytes(4 << 20)),
    chase: Duration::from_millis(1),
    trial: Duration::from_millis(1),
};

#[test]
fn this_machine_is_measured_pair_by_pair_with_every_step_announced() {
    let mut steps: Vec<MeasureStep> = Vec::new();
    let found = measure(Path::new("/"), QUICK, &mut |step| {
        steps.push(step);
        ControlFlow::Continue(())
    });
    let found = found.expect("this machine has memory and processors");
    assert!(found.memory <= Bytes(4 << 20) && found.elapsed > Nanos::ZERO);
    for pair in &found.pairs {
        assert!(pair.latency > Nanos::ZERO, "{pair:?}");
        assert!(
            pair.rates
                .iter()
                .all(|rates| rates.read > 0 && rates.write > 0),
            "{pair:?}"
        );
        assert!(
            pair.loaded.len() == if pair.rates.len() > 1 { 5 } else { 0 },
            "{pair:?}"
        );
        let threads: Vec<u32> = pair.rates.iter().map(|rates| rates.threads).collect();
        assert!(threads.is_sorted() && threads[0] == 1, "{threads:?}");
    }
    let announced: Vec<usize> = steps.iter().map(|step| step.done).collect();
    assert_eq!(announced, (0..steps.len()).collect::<Vec<_>>());
    assert!(
        steps.iter().all(|step| step.total >= steps.len()),
        "{steps:?}"
    );
    let detected = crate::examine_measured(Path::new("/"), &found.pairs, View::Machine);
    let tiers = detected.expect("tiers").tiers;
    let fastest = &tiers.all()[0];
    assert!(fastest.latency.is_some(), "{tiers:?}");
    assert_eq!(fastest.loaded.is_empty(), found.pairs[0].loaded.is_empty());
}

#[test]
fn a_measurement_that_is_broken_off_ends_at_the_next_step() {
    let mut left = 2;
    let broken = measure(Path::new("/"), QUICK, &mut |_| {
        left -= 1;
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert!(
        matches!(broken, Err(MeasureError::Interrupted)),
        "{broken:?}"
    );
    assert_eq!(left, 0);
}

#[test]
fn a_machine_without_free_memory_is_an_error_that_says_so() {
    let root = tempfile::tempdir().unwrap();
    let node = root.path().join("sys/devices/system/node/node0");
    std::fs::create_dir_all(&node).unwrap();
    std::fs::write(node.join("cpulist"), "0\n").unwrap();
    let meminfo = "Node 0 MemTotal: 1048576 kB\nNode 0 MemFree: 512 kB\n";
    std::fs::write(node.join("meminfo"), meminfo).unwrap();
    let error = measure(root.path(), QUICK, &mut |_| ControlFlow::Continue(()));
    let error = error.expect_err("nothing to measure").to_string();
    assert!(error.contains("node 0: 512 KiB are available"), "{error}");
}

#[test]
fn threads_double_up_to_all_processors() {
    assert_eq!(thread_counts(1), [1]);
    assert_eq!(thread_counts(2), [1, 2]);
    assert_eq!(thread_counts(8), [1, 2, 4, 8]);
    assert_eq!(thread_counts(12), [1, 2, 4, 8, 12]);
}

#[test]
fn a_memory_is_judged_from_its_best_processors_or_from_those_of_the_view() {
    let pair = |cpu_node, memory_node, latency, read| Pair {
        cpu_node,
        memory_node,
        latency: Nanos(latency),
        rates: vec![Rates {
            threads: 1,
            read,
            write: read,
            triad: read,
        }],
        loaded: vec![LoadPoint {
            bandwidth: read / 2,
            latency: Nanos(latency + 1),
        }],
    };
    let pairs = [
        pair(0, 4, 200, 40_000_000_000),
        pair(1, 4, 100, 90_000_000_000),
        pair(1, 5, 0, 0),
    ];
    let best = speeds(&pairs, View::Machine);
    assert_eq!(best[&4].words, "measured from node 1: 100 ns, 90 GB/s");
    assert!(!best.contains_key(&5), "nothing was measured there");
    assert_eq!(best[&4].loaded, pairs[1].loaded);
    let viewed = speeds(&pairs, View::Node(0));
    assert_eq!(viewed[&4].latency, Some(200.0));
    assert_eq!(viewed[&4].loaded, pairs[0].loaded);
}
