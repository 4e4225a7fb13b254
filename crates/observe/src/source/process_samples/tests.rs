//! Tests of the weight and the storage of samples, and of events on threads of real processes that start and end.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command};

use isotherm_model::batch::{ObservedAccess, Process, SourceReport};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_sys::perf::PerfEventAttributes;

use super::{
    ADDRESSES_AT_MOST, AccessList, AccessSums, BlindSample, ProcessSamples, SampleRate,
    SampleWorth, Source, TIMER_HZ_LEAST, TimedSample, WaitEstimates, ring_bytes,
};
use crate::clock::MachineClock;
use crate::source::{ACCESSES_AT_MOST, scan_of};
use isotherm_model::port::Clock;
use isotherm_model::source_kind::SourceKind;

const RATE: SampleRate = SampleRate {
    timer_hz: 100,
    pmu: 1,
};

/// Number of processes at a time, and number of replacements.
const AT_A_TIME: usize = 10;
const TIMES: u32 = 100;

/// A process that waits until the test ends it.
struct Waiting(Child);

impl Waiting {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep"))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_thousand_processes_that_start_and_end_leave_no_event_open() {
    let source = ProcessSamples::open(SourceKind::Timer, Path::new("/"), RATE, 1_000_000_000);
    let mut samples = source.expect("a source of perf's");
    // As without the right to sample all processes at once.
    samples.all = None;
    // Events are open on each processor, and their total number is limited.
    samples.cpus.truncate(1);
    for image in 0..TIMES {
        let processes: Vec<Waiting> = (0..AT_A_TIME).map(|_| Waiting::start()).collect();
        let pids = processes.iter().map(|process| process.0.id());
        let watched: Vec<Process> = pids.map(|pid| Process { pid, image }).collect();
        samples.watch(&watched);
        if samples.threads.is_empty() {
            return isotherm_skip::skip!("no events on threads here: {}", samples.report().warning);
        }
        let open = |samples: &ProcessSamples| (samples.threads.len(), samples.owners.len());
        assert_eq!(
            open(&samples),
            (AT_A_TIME, AT_A_TIME),
            "{}",
            samples.report().warning
        );
        drop(processes);
        let machine: (&dyn Clock, _) = (&MachineClock, Path::new("/proc"));
        let _ = scan_of(&mut samples, machine, &watched, &BTreeMap::new());
        // Every other time the processes have ended before the source was informed.
        let told = if image % 2 == 0 { &watched[..] } else { &[] };
        samples.watch(told);
        assert_eq!(open(&samples), (0, 0), "after {image} times");
    }
}

/// The weight of a sample of a source on a machine with IBS, whose events no kernel opens here.
fn worth(source: SourceKind, timer_hz: u32, pmu: u32) -> SampleWorth {
    let root = tempfile::tempdir().expect("a directory");
    let unit = root.path().join("sys/bus/event_source/devices/ibs_op");
    std::fs::create_dir_all(unit.join("format")).expect("makes it");
    std::fs::write(unit.join("type"), "99999").expect("writes");
    std::fs::write(unit.join("format/cnt_ctl"), "config:19").expect("writes");
    let rate = SampleRate { timer_hz, pmu };
    let samples = ProcessSamples::open(source, root.path(), rate, 10_000).expect("is perf's");
    samples.worth()
}

#[test]
fn a_sample_of_a_pmu_stands_for_its_period_and_one_of_the_timer_for_time() {
    let one = worth(SourceKind::Ibs, 1_000, 1);
    assert_eq!(one, SampleWorth::Accesses(262_144));
    assert_eq!(worth(SourceKind::Ibs, 50, 4), SampleWorth::Accesses(65_536));
    let timer = worth(SourceKind::Timer, 500, 4);
    assert_eq!(timer, SampleWorth::Time(Nanos(2_000_000)));
}

#[test]
fn a_timer_that_costs_the_daemon_too_much_is_slowed_to_a_few_samples_and_not_to_none() {
    let second = Nanos(1_000_000_000);
    for (asked, least) in [(1_000, TIMER_HZ_LEAST), (5, 5)] {
        let rate = SampleRate {
            timer_hz: asked,
            pmu: 1,
        };
        let source = ProcessSamples::open(SourceKind::Timer, Path::new("/"), rate, 1);
        let mut samples = source.expect("a source of perf's");
        for spent in 1..20 {
            samples.interval.learn(Nanos(spent * second.0), second);
        }
        assert_eq!(samples.of_timer(), Some(least));
    }
}

#[test]
fn a_ring_holds_more_than_a_second_of_samples_and_no_more_than_a_mebibyte() {
    let timer = PerfEventAttributes::cpu_clock(1_000_000);
    let pmu = PerfEventAttributes::precise(4, [0; 3], 10_007, 2);
    for (event, hz) in [
        (&timer, 1),
        (&timer, 1_000),
        (&timer, 20_000),
        (&pmu, 10_000),
    ] {
        let ring = ring_bytes(event, hz);
        let second = event.layout().sample_bytes() * hz as usize;
        assert!(ring > second || ring == 1 << 20, "{hz}");
        assert!((64 << 10..=1 << 20).contains(&ring), "{hz}");
    }
}

#[test]
fn a_page_that_moved_between_two_samples_is_told_with_both_places() {
    let process = Process { pid: 7, image: 0 };
    let mut sums = AccessSums::default();
    for physical in [Some(0x1000), None, Some(0x9000), Some(0x1000)] {
        assert!(sums.add((process, 0x7f00, physical), false));
    }
    let mut seen = AccessList::default();
    let mut report = SourceReport::default();
    sums.add_to(&mut seen, SourceKind::Ibs, &mut report);
    assert_eq!((report.usable, report.lost), (4, 0));
    let seen = seen.take();
    let seen: Vec<_> = seen
        .iter()
        .map(|one| (one.address, one.physical, one.count))
        .collect();
    assert_eq!(
        seen,
        [
            (0x7f00, None, 1),
            (0x7f00, Some(0x1000), 2),
            (0x7f00, Some(0x9000), 1)
        ]
    );
}

#[test]
fn samples_of_a_small_set_are_told_as_served_in_the_order_of_time_and_none_without_a_cache() {
    let process = Process { pid: 7, image: 0 };
    // Two rings: each is in order, together they are not.
    let ring = |first: u64| (first..2000).step_by(2);
    let times = ring(0).chain(ring(1));
    let timed: Vec<_> = times
        .map(|time_ns| TimedSample {
            blind: BlindSample {
                process,
                thread: 7,
                time_ns,
                instruction: 0x400,
                address: time_ns % 64 * 4096,
                is_behind_access: true,
            },
            physical: None,
        })
        .collect();
    for (cache, served) in [(Bytes(1 << 20), true), (Bytes::ZERO, false)] {
        let (mut sums, mut seen) = (AccessSums::default(), AccessList::default());
        let lost = sums.add_timed(timed.clone(), &mut WaitEstimates::new(cache));
        let mut report = SourceReport::default();
        sums.add_to(&mut seen, SourceKind::Timer, &mut report);
        assert_eq!((lost, report.usable, report.lost), (0, 2000, 0));
        let seen = seen.take();
        let (beyond, by_caches) = (
            seen.iter().map(|one| one.count),
            seen.iter().map(|one| one.served),
        );
        let (beyond, by_caches) = (beyond.sum::<u64>(), by_caches.sum::<u64>());
        assert_eq!(beyond + by_caches, 2000, "no sample is lost");
        assert_eq!(by_caches > 1900, served, "{by_caches}");
    }
}

#[test]
fn a_sample_without_room_is_lost_and_not_usable() {
    let process = Process { pid: 7, image: 0 };
    let mut seen = AccessList::default();
    let other = ObservedAccess::at((process, 0), SourceKind::Ibs, (1, CountUnit::Samples));
    // Room for one more.
    for _ in 1..ACCESSES_AT_MOST {
        assert!(seen.push(other));
    }
    let mut sums = AccessSums::default();
    for address in [0x7000, 0x7000, 0x8000, 0x8000, 0x8000] {
        assert!(sums.add((process, address, None), false));
    }
    let mut report = SourceReport::default();
    sums.add_to(&mut seen, SourceKind::Ibs, &mut report);
    assert_eq!((report.usable, report.lost), (2, 3));
}

#[test]
fn samples_at_known_addresses_count_where_there_are_too_many_addresses() {
    let mut sums = AccessSums::default();
    let at = |address: u64| (Process { pid: 7, image: 0 }, address, None);
    for address in 0..ADDRESSES_AT_MOST as u64 {
        assert!(sums.add(at(address), false));
    }
    assert!(!sums.add(at(ADDRESSES_AT_MOST as u64), false));
    assert!(sums.add(at(5), true));
    assert_eq!(sums.0[&at(5)], [1, 1]);
}
