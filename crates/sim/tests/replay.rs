//! Tests replays that can be followed by hand, and properties of every replay.

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::trace::Access;
use isotherm_model::units::{Accesses, Bytes, Capacity, Nanos};
use isotherm_policy::epoch;
use isotherm_sim::{
    AtCapacity, EpochLength, Machine, ModelledTier, Monitor, MonitorSource, PolicyResult,
    SimulateError, SimulationRequest, Workload, replay, simulate,
};
use proptest::prelude::*;

const PAGE: Bytes = Bytes(4096);

/// A trace of epochs of pages, each access a load.
fn trace(epochs: &[Vec<u64>]) -> Workload {
    let accesses = epochs.iter().zip(0..).flat_map(|(pages, epoch)| {
        pages.iter().map(move |page| Access {
            time: Nanos(epoch * 10),
            address: page * PAGE.0,
            write: false,
        })
    });
    Workload::of_trace(accesses, PAGE, EpochLength::Time(Nanos(10))).unwrap()
}

fn result(workload: &Workload, policy: &str, pages: u64) -> PolicyResult {
    let capacity = Capacity::Bytes(Bytes(pages * PAGE.0));
    replay(&SimulationRequest::new(workload), policy, capacity).unwrap()
}

fn hits_and_moves(workload: &Workload, policy: &str, pages: u64) -> (u64, u64) {
    let result = result(workload, policy, pages);
    (result.hits, result.moved.0 / PAGE.0)
}

#[test]
fn three_epochs_by_hand_under_every_policy_but_ours() {
    // Room for one page. Page 1 is touched first and enters.
    //   epoch 0: 1 2 2     epoch 1: 2 2 1     epoch 2: 1 1 2
    let workload = trace(&[vec![1, 2, 2], vec![2, 2, 1], vec![1, 1, 2]]);
    // 1 stays: 1 + 1 + 2 hits.
    assert_eq!(
        hits_and_moves(&workload, "first-come-first-allocated", 1),
        (4, 0)
    );
    // 1, then the hottest of the epoch before: 2 and 2. Hits 1 + 2 + 1; one swap.
    assert_eq!(hits_and_moves(&workload, "history", 1), (4, 2));
    // 2 before its first touch, which moves nothing, 2, then 1. Hits 2 + 2 + 2; one swap.
    assert_eq!(hits_and_moves(&workload, "oracle", 1), (6, 2));
}

#[test]
fn time_and_energy_are_those_of_the_accesses_and_the_moves() {
    let workload = trace(&[vec![1, 2, 2], vec![2, 2, 1], vec![1, 1, 2]]);
    // CXL: 4 hits at 100 ns, 5 misses at 250 ns, and for history 2 moved pages at 2 us.
    let first = result(&workload, "first-come-first-allocated", 1);
    assert_eq!(first.time, Nanos(4 * 100 + 5 * 250));
    let history = result(&workload, "history", 1);
    assert_eq!(history.time, Nanos(4 * 100 + 5 * 250 + 2 * 2_000));
    assert!(history.energy > first.energy);
    assert_eq!(history.fast_used, PAGE);
}

#[test]
fn history_is_the_oracle_one_epoch_late_on_a_periodic_trace() {
    let period = vec![1, 2, 3, 4, 4, 3, 3, 4, 4];
    let first = trace(std::slice::from_ref(&period));
    let whole = trace(&vec![period; 6]);
    for pages in 0..5 {
        let after_first =
            |policy: &str| result(&whole, policy, pages).hits - result(&first, policy, pages).hits;
        assert_eq!(
            after_first("history"),
            after_first("oracle"),
            "{pages} pages"
        );
    }
}

#[test]
fn the_bounds_stand_beside_every_policy_and_the_curve_falls_between_them() {
    let workload = trace(&vec![(0..64).chain(0..8).chain(0..8).collect(); 4]);
    let report = simulate(&SimulationRequest::new(&workload)).unwrap();
    assert_eq!(report.capacities.len(), 7);
    assert_eq!(report.capacities[0].fast, Bytes(32 * PAGE.0));
    assert_eq!(report.capacities[6].fast, Bytes(PAGE.0 / 2));
    assert_eq!(report.capacities[6].pages, 0);
    assert!(report.all_fast < report.all_slow);
    let all_fast = report.all_fast.0 as f64;
    let lost = |at: &AtCapacity| {
        let name = "first-come-first-allocated";
        let mut policies = at.policies.iter().chain([&at.oracle, &at.first_touch]);
        let result = policies.find(|result| result.policy == name);
        result.expect("the policy").time.0 as f64 / all_fast - 1.0
    };
    let curve: Vec<f64> = report.capacities.iter().map(lost).collect();
    assert!(curve.is_sorted(), "{curve:?}");
    // 80 accesses an epoch; with 32 pages fast 32 are misses: 80 * 100 + 32 * 150 ns.
    assert!((curve[0] - 0.6).abs() < 1e-9, "{curve:?}");
}

/// Three sites of four, two and two chunks; the last is hot.
fn profile() -> Profile {
    let mut profile = Profile::new(Meta {
        chunk: PAGE,
        ..Meta::default()
    });
    for epoch in 0..3 {
        profile.epochs.push(EpochSpan {
            epoch: Epoch(epoch),
            span: Nanos(1_000),
        });
        for chunk in 0..8_u64 {
            let (site, count) = [(2, 1), (2, 1), (3, 2), (4, 50)][chunk as usize / 2];
            profile.heat.push(Heat {
                epoch: Epoch(epoch),
                process: Process::default(),
                site: SiteId(site),
                address: chunk * PAGE.0,
                object: None,
                accesses: Accesses(count),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
        }
    }
    profile
}

#[test]
fn a_plan_of_sites_is_replayed_chunk_by_chunk_and_what_does_not_fit_spills() {
    let workload = Workload::of_profile(&profile()).unwrap();
    // Room for three chunks. Thermos takes the hot site, and hotset half of the next one too.
    assert_eq!(hits_and_moves(&workload, "thermos", 3), (300, 0));
    assert_eq!(hits_and_moves(&workload, "all-slow", 3), (0, 0));
    // All fast fills in the order of first allocation: three chunks of one access each, three times.
    assert_eq!(hits_and_moves(&workload, "all-fast", 3), (9, 0));
    // Hotset takes sites 4 and 3, of which the chunks of 3 came first: 2 + 2 + 50, three times.
    assert_eq!(hits_and_moves(&workload, "hotset", 3), (162, 0));
    assert_eq!(hits_and_moves(&workload, "oracle", 3), (306, 0));
}

#[test]
fn a_balance_takes_less_time_than_a_full_fast_tier_where_that_is_overloaded() {
    let mut profile = profile();
    // Three sites of one chunk, alike.
    profile
        .heat
        .retain(|heat| heat.address % (2 * PAGE.0) == 0 && heat.address > 0);
    for heat in &mut profile.heat {
        heat.accesses = Accesses(100);
        heat.site = SiteId(2 + heat.address / PAGE.0);
    }
    let workload = Workload::of_profile(&profile).unwrap();
    let tier = |bandwidth| ModelledTier {
        read_bandwidth: bandwidth,
        write_bandwidth: bandwidth,
        ..Machine::CXL.fast
    };
    let request = SimulationRequest {
        machine: Machine {
            fast: tier(10_000_000_000),
            slow: tier(5_000_000_000),
            overlap: 20,
            ..Machine::CXL
        },
        ..SimulationRequest::new(&workload)
    };
    let capacity = Capacity::Bytes(Bytes(3 * PAGE.0));
    let by = |policy: &str| replay(&request, policy, capacity).unwrap();
    // In each epoch 300 lines at 10 GB/s; and 300 accesses of 100 ns, 20 at once, with 200 lines at 10 GB/s beside 100 at 5 GB/s.
    assert_eq!(
        (by("thermos").hits, by("thermos").time),
        (900, Nanos(3 * 1_920))
    );
    assert_eq!(
        (by("balance").hits, by("balance").time),
        (600, Nanos(3 * 1_500))
    );
}

#[test]
fn a_cache_serves_what_its_places_hold_and_costs_a_look_at_each_miss() {
    // Room for two pages; pages 1 and 3 share a place. A page has 64 lines, which are new in the first epoch.
    let epoch: Vec<u64> = [(1, 100), (2, 100), (3, 100)]
        .iter()
        .flat_map(|(page, count)| vec![*page; *count])
        .collect();
    let workload = trace(&[epoch.clone(), epoch]);
    let cached = result(&workload, "cache-mode", 2);
    // 36 of 100 accesses to page 2 and half as many to the others, then 100 and half of 100 each.
    assert_eq!((cached.hits, cached.moved), (36 + 18 + 18 + 200, Bytes(0)));
    assert_eq!(cached.fast_used, Bytes(2 * PAGE.0));
    let misses = 600 - cached.hits;
    assert_eq!(cached.time, Nanos(600 * 100 + misses * 250));
}

#[test]
fn bounds_are_no_rows_of_the_table_of_policies() {
    let workload = Workload::of_profile(&profile()).unwrap();
    let policies = SimulationRequest::new(&workload).policies;
    assert!(
        policies.iter().any(|name| name == "thermos"),
        "{policies:?}"
    );
    assert!(
        policies.iter().any(|name| name == "history"),
        "{policies:?}"
    );
    for bound in [
        "oracle",
        "first-touch",
        "all-fast",
        "all-slow",
        "fractional",
    ] {
        assert!(policies.iter().all(|name| name != bound), "{bound}");
    }
}

#[test]
fn chunk_selection_takes_the_hot_part_of_a_site_that_no_site_policy_can_split() {
    let mut profile = profile();
    for heat in &mut profile.heat {
        heat.site = SiteId(2);
    }
    let workload = Workload::of_profile(&profile).unwrap();
    // Eight chunks of one site in one object, of which the last two are hot. The site does not fit
    // as a whole, and first touch admits only its beginning.
    assert_eq!(hits_and_moves(&workload, "knapsack", 2), (0, 0));
    assert_eq!(hits_and_moves(&workload, "hotset", 2), (6, 0));
    assert_eq!(hits_and_moves(&workload, "atmem", 2), (300, 0));
    // Every sampled chunk is critical: one range of all eight, cut to its best three.
    let all = "atmem=m:2,alpha:0,N:100";
    assert_eq!(hits_and_moves(&workload, all, 3), (306, 0));
    assert_eq!(result(&workload, all, 3).policy, all);
}

#[test]
fn a_parameter_of_a_policy_is_heeded_and_a_wrong_one_is_explained() {
    let workload = Workload::of_profile(&profile()).unwrap();
    // Site 2 has four chunks, the other sites two.
    assert_eq!(
        hits_and_moves(&workload, "size-threshold=8KiB", 4).0,
        306 + 6
    );
    for (text, part) in [
        ("atmem=m:1", "m is 1, and must be at least 2"),
        ("size-threshold=8", "a unit is required"),
        ("thermos=1", "thermos has no parameter"),
        ("atmen", "no policy is named \"atmen\""),
    ] {
        let error = replay(
            &SimulationRequest::new(&workload),
            text,
            Capacity::Share(0.5),
        )
        .unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    let trace = trace(&[vec![1]]);
    let error = replay(
        &SimulationRequest::new(&trace),
        "atmem",
        Capacity::Share(0.5),
    )
    .unwrap_err();
    assert_eq!(error, SimulateError::NeedsSites("atmem".to_owned()));
}

#[test]
fn counts_that_stand_for_many_accesses_make_moves_pay_that_did_not() {
    let workload = trace(&vec![vec![1, 2, 2, 2]; 8]);
    let mut request = SimulationRequest::new(&workload);
    let one = Capacity::Bytes(PAGE);
    assert_eq!(replay(&request, "payback", one).unwrap().moved, Bytes(0));
    request.accesses_per_count = 100;
    let moved = replay(&request, "payback", one).unwrap();
    assert_eq!((moved.moved, moved.hits), (Bytes(2 * PAGE.0), 1 + 7 * 3));
}

#[test]
fn each_source_ranks_by_what_it_sees_and_the_bounds_stay_exact() {
    // Pages 1 and 2 are touched every epoch, 2 sixteen times; accessed bits cannot distinguish
    // them.
    let epoch: Vec<u64> = [1].into_iter().chain([2; 16]).collect();
    let workload = trace(&vec![epoch; 8]);
    let mut hits = Vec::new();
    for source in MonitorSource::ALL {
        let mut request = SimulationRequest::new(&workload);
        request.monitor = Monitor {
            source,
            walks: 1,
            period: 4,
        };
        request.capacities = vec![Capacity::Bytes(PAGE)];
        request.policies = vec!["history".to_owned()];
        let report = simulate(&request).unwrap();
        assert_eq!(report.capacities[0].oracle.hits, 8 * 16);
        hits.push(report.capacities[0].policies[0].hits);
    }
    let hot = 1 + 7 * 16;
    assert_eq!(hits, [hot, 8, hot, hot, hot]);
}

#[test]
fn what_cannot_be_simulated_is_refused_in_words() {
    let trace = trace(&[vec![1]]);
    let profile = Workload::of_profile(&profile()).unwrap();
    let refusal = |change: fn(&mut SimulationRequest<'_>), workload: &Workload| {
        let mut request = SimulationRequest::new(workload);
        change(&mut request);
        simulate(&request).unwrap_err()
    };
    let none = refusal(|request| request.capacities.clear(), &trace);
    assert_eq!(none, SimulateError::NoCapacity);
    let unknown = refusal(|request| request.policies = vec!["lru".to_owned()], &trace);
    assert!(
        unknown
            .to_string()
            .starts_with("no policy is named \"lru\"; there are payback, ")
    );
    let sites = refusal(
        |request| request.policies = vec!["thermos".to_owned()],
        &trace,
    );
    assert_eq!(sites, SimulateError::NeedsSites("thermos".to_owned()));
    let order = refusal(
        |request| request.monitor.source = MonitorSource::Both,
        &profile,
    );
    assert_eq!(order, SimulateError::NeedsTrace(MonitorSource::Both));
}

fn epochs() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(0_u64..24, 1..40), 1..8)
}

proptest! {
    #[test]
    fn no_policy_holds_more_than_fits_or_serves_more_than_the_oracle(
        epochs in epochs(), pages in 0_u64..26
    ) {
        let workload = trace(&epochs);
        let mut request = SimulationRequest::new(&workload);
        request.capacities = vec![Capacity::Bytes(Bytes(pages * PAGE.0))];
        request.policies = epoch::names().map(str::to_owned).collect();
        let report = simulate(&request).unwrap();
        let at = &report.capacities[0];
        for result in at.policies.iter().chain([&at.first_touch]) {
            prop_assert!(result.fast_used <= at.fast, "{result:?}");
            prop_assert!(result.hits <= at.oracle.hits, "{result:?} {:?}", at.oracle);
            prop_assert!((0.0..=1.0).contains(&result.hit_rate()));
            prop_assert_eq!(result.accesses, workload.accesses());
        }
        prop_assert!(at.policies[0].moved <= at.policies[1].moved, "payback past history");
    }

    #[test]
    fn the_same_request_gives_the_same_report(epochs in epochs()) {
        let workload = trace(&epochs);
        let request = SimulationRequest::new(&workload);
        prop_assert_eq!(simulate(&request), simulate(&request));
    }

    #[test]
    fn more_fast_memory_never_serves_less_by_the_oracle_or_without_a_policy(
        epochs in epochs(), pages in 0_u64..25
    ) {
        let workload = trace(&epochs);
        for policy in ["oracle", "first-come-first-allocated"] {
            let (few, many) = (pages, pages + 1);
            prop_assert!(
                result(&workload, policy, few).hits <= result(&workload, policy, many).hits
            );
        }
    }
}
