//! Tests a live run: a real program under the real sources, with a session file written by hand.
//!
//! Where perf events are not allowed the tests print so and stop: `doctor` covers missing features.

mod support;

use std::path::Path;
use std::process::Command;

use isotherm_model::batch::{Batch, Epoch, Process, SourceReport};
use isotherm_model::port::Observer;
use isotherm_model::site::SiteId;
use isotherm_model::source_kind::SourceKind;
use isotherm_observe::live::{LiveConfig, LiveRun};
use isotherm_observe::probe::{KernelProbe, Probe};
use isotherm_sys::spawn::spawn_suspended;
use support::session_bytes::SessionBytes;

/// Epochs of 50 ms that are kept: on a loaded machine a program of seconds takes minutes.
const EPOCHS_AT_MOST: usize = 4_000;

const HOT: u64 = 0x1000_0000_0000;
const COLD: u64 = 0x1100_0000_0000;
const BYTES: u64 = 64 << 20;
const HOT_SITE: SiteId = SiteId(111);
const COLD_SITE: SiteId = SiteId(222);

/// Runs `hot` with these arguments under these sources, with a session file that names its two
/// arrays. Returns the batches of all epochs, the last of them from after its end.
fn observe(sources: Vec<SourceKind>, arguments: &[&str]) -> Option<(u32, Vec<Batch>)> {
    observe_at_rates(sources, 1000, &[], arguments, |_, _| {})
}

/// As [`observe`], with this rate of the timer at first, and further rates; `each` is called after each epoch with the batches so far.
fn observe_at_rates(
    sources: Vec<SourceKind>,
    hz: u32,
    other_hz: &'static [u32],
    arguments: &[&str],
    mut each: impl FnMut(&[Batch], &mut LiveRun),
) -> Option<(u32, Vec<Batch>)> {
    let directory = tempfile::tempdir().expect("a directory");
    let program = support::program::compile("hot", directory.path())?;
    let sessions = directory.path().join("sessions");
    std::fs::create_dir(&sessions).expect("makes");
    let mut command = Command::new(program);
    command.args(arguments);
    let held = spawn_suspended(command).expect("forks");
    let pid = held.pid;
    write_session(&sessions, pid);
    let mut config = LiveConfig::new(&sessions, sources);
    config.events.hz = hz;
    config.events.other_hz = other_hz;
    let mut run = LiveRun::attach(config, pid);
    let mut child = held.release().expect("runs");
    let mut batches = Vec::new();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(50));
        run.drain();
        let over = child.try_wait().expect("waits").is_some();
        let epoch = Epoch(batches.len() as u32);
        if over {
            batches.push(run.observe(epoch).expect("finishes"));
            return Some((pid, batches));
        }
        if batches.len() < EPOCHS_AT_MOST {
            batches.push(run.observe(epoch).expect("observes"));
            each(&batches, &mut run);
        }
    }
}

fn write_session(directory: &Path, pid: u32) {
    let mut file = SessionBytes::new(pid, 1, 0);
    file.site(0, HOT_SITE.0, &[], 1);
    file.site(1, COLD_SITE.0, &[], 1);
    file.mapping(0, 0, HOT, BYTES, 2);
    file.mapping(1, 1, COLD, BYTES, 2);
    // Started after the exec that begins the run, as the runtime would.
    let now = isotherm_model::port::Clock::now(&isotherm_observe::clock::MachineClock);
    let start = std::mem::offset_of!(isotherm_abi::session::SessionHeader, start_ns);
    file.put(start as u64, &(now.0 + 5_000_000_000).to_ne_bytes());
    file.save(&directory.join(format!("{pid}.0")));
}

fn report<'a>(batches: &'a [Batch], name: &str) -> &'a SourceReport {
    let last = batches.last().expect("there is one");
    let found = last.sources.iter().find(|report| report.name == name);
    found.expect("the source reports")
}

/// Counts in the hot and in the cold array, and all together, of this process. The count of a range is divided over
/// the arrays in it.
fn weights(batches: &[Batch], process: Process) -> (u64, u64, u64) {
    let accesses = batches.iter().flat_map(|batch| &batch.accesses);
    let of_process = accesses.filter(|access| access.process == process);
    of_process.fold((0, 0, 0), |(hot, cold, all), access| {
        let within = |base: u64| {
            let end = access.end().min(base + BYTES);
            end.saturating_sub(access.address.max(base))
        };
        let both = (within(HOT) + within(COLD)).max(1);
        let share = |part: u64| access.count * part / both;
        (
            hot + share(within(HOT)),
            cold + share(within(COLD)),
            all + access.count,
        )
    })
}

fn perf_is_allowed() -> bool {
    let allowed = KernelProbe.timer();
    if let Err(error) = &allowed {
        isotherm_skip::skip!("perf events are not allowed: {error}");
    }
    allowed.is_ok()
}

#[test]
fn the_timer_finds_the_hot_array() {
    if !perf_is_allowed() {
        return;
    }
    let Some((pid, batches)) = observe(vec![SourceKind::Timer], &["600"]) else {
        return;
    };
    let timer = report(&batches, "timer");
    println!("{timer:?}");
    // A sample a millisecond, or fewer where a hypervisor runs other machines meanwhile.
    assert!(timer.taken >= 50 && timer.warning.is_empty(), "{timer:?}");
    assert!(
        timer.usable * 10 > timer.taken * 8,
        "eight in ten decode: {timer:?}"
    );
    let (hot, cold, all) = weights(&batches, Process { pid, image: 0 });
    println!("hot {hot}, cold {cold}, all {all}");
    assert!(
        hot * 2 > all && hot > 3 * cold,
        "hot {hot}, cold {cold}, all {all}"
    );
}

/// Processor time of the program until the end of an epoch.
fn cpu_ns(batch: &Batch) -> u64 {
    let count = batch.counts.iter().find(|count| count.name == "cpu_ns");
    count.map_or(0, |count| count.value)
}

#[test]
fn the_timer_of_a_running_child_changes_its_rate() {
    if !perf_is_allowed() {
        return;
    }
    let mut ends = Vec::new();
    // At first the program fills its arrays, and most of that is time in the kernel, which is not sampled.
    let change = |batches: &[Batch], run: &mut LiveRun| {
        let used_ms = cpu_ns(batches.last().expect("an epoch")) / 1_000_000;
        match (ends.len(), used_ms) {
            (0, 700..) => assert_eq!(run.timer_rates(), [1000, 4000, 250]),
            (1, 2200..) => {
                // Samples that are not read before the change.
                std::thread::sleep(std::time::Duration::from_millis(200));
                run.set_timer_hz(4000);
            }
            (2, 3700..) => {
                // Not one of its rates.
                run.set_timer_hz(3000);
                assert_eq!(run.timer_hz(), Some(4000));
                run.set_timer_hz(250);
            }
            (3, 5200..) => {}
            _ => return,
        }
        ends.push(batches.len() - 1);
    };
    let sources = vec![SourceKind::Timer];
    let arguments = ["6000", "fork"];
    let Some((_, batches)) = observe_at_rates(sources, 1000, &[4000, 250], &arguments, change)
    else {
        return;
    };
    let [begin, first, second, third] = ends[..] else {
        return isotherm_skip::skip!("only {} epochs", batches.len());
    };
    // The epoch after a change has samples of both rates.
    let mut mixed = batches[first + 1].accesses.iter();
    assert!(mixed.any(|it| it.sampled_hz == 1000));
    let spans = [(begin, first), (first + 1, second), (second + 1, third)];
    for ((from, to), hz) in spans.into_iter().zip([1000, 4000, 250]) {
        let batches = batches[from + 1..=to].iter();
        let mut accesses = batches.flat_map(|batch| &batch.accesses).peekable();
        assert!(accesses.peek().is_some(), "no sample at {hz} Hz");
        assert!(accesses.all(|it| it.sampled_hz == hz), "{hz}");
    }
}

#[test]
fn a_forked_child_without_a_file_counts_for_its_parent() {
    if !perf_is_allowed() {
        return;
    }
    let Some((pid, batches)) = observe(vec![SourceKind::Timer], &["400", "fork"]) else {
        return;
    };
    let (hot, _, all) = weights(&batches, Process { pid, image: 0 });
    assert!(hot > 20 && hot * 2 > all, "hot {hot} of {all}");
}

#[test]
fn page_faults_tell_each_page_once() {
    if !perf_is_allowed() {
        return;
    }
    let sources = vec![SourceKind::PageFaults];
    // The rate gives the ring its size: with this one it has room for every fault.
    let observed = observe_at_rates(sources, 20_000, &[], &["100"], |_, _| {});
    let Some((pid, batches)) = observed else {
        return;
    };
    let (hot, cold, _) = weights(&batches, Process { pid, image: 0 });
    let faults = report(&batches, "page-faults");
    // Each page is written once, and a huge page faults once.
    let pages = 2 * BYTES / 4096;
    assert!(
        hot + cold <= pages + 4096 && faults.lost == 0,
        "{hot} + {cold}: {faults:?}"
    );
    assert!(hot > 0 && cold > 0, "{hot}, {cold}: {faults:?}");
}

#[test]
fn resident_bytes_and_sites_come_with_the_batch() {
    let Some((pid, batches)) = observe(vec![], &["700"]) else {
        return;
    };
    let first = &batches[0];
    let ids: Vec<SiteId> = first.sites.iter().map(|site| site.id).collect();
    assert_eq!(ids, [HOT_SITE, COLD_SITE]);
    let most = |site| {
        let extents = batches.iter().flat_map(|batch| &batch.extents);
        let own = extents.filter(|extent| extent.process == Process { pid, image: 0 });
        own.filter(|extent| extent.site == site)
            .map(|extent| extent.resident.0)
            .max()
    };
    assert_eq!(
        (most(HOT_SITE), most(COLD_SITE)),
        (Some(BYTES), Some(BYTES))
    );
    let cpu = batches
        .last()
        .and_then(|batch| batch.counts.iter().find(|it| it.name == "cpu_ns"));
    assert!(
        cpu.is_some_and(|count| count.value > 100_000_000),
        "{cpu:?}"
    );
}

#[test]
fn accessed_bits_are_attributed_to_the_arrays() {
    if let Err(error) = KernelProbe.clear_refs() {
        return isotherm_skip::skip!("clear_refs: {error}");
    }
    let Some((pid, batches)) = observe(vec![SourceKind::AccessedBits], &["900"]) else {
        return;
    };
    let bits = report(&batches, "accessed-bits");
    println!("{bits:?}");
    let (hot, cold, all) = weights(&batches, Process { pid, image: 0 });
    assert!(bits.warning.is_empty() && bits.taken > 0, "{bits:?}");
    // One window may contain all pages of both arrays, or the initial writes to one of them.
    assert!(hot + cold > 0, "hot {hot}, cold {cold}");
    assert!(
        (hot + cold) * 10 > all * 9,
        "hot {hot}, cold {cold}, all {all}"
    );
}

#[test]
fn accessed_bits_of_a_forked_child_without_a_file_are_read_and_count_for_its_parent() {
    if let Err(error) = KernelProbe.clear_refs() {
        return isotherm_skip::skip!("clear_refs: {error}");
    }
    // A scan takes its time on a loaded machine, and the source spends a share of the time on scans only: room for several.
    let Some((pid, batches)) = observe(vec![SourceKind::AccessedBits], &["5000", "fork"]) else {
        return;
    };
    // Only the child reads; its parent waits, and could be seen in one window at most.
    let parent = Process { pid, image: 0 };
    let seen = |batch: &Batch| weights(std::slice::from_ref(batch), parent).0 > 0;
    let epochs = batches.iter().filter(|batch| seen(batch)).count();
    assert!(epochs >= 2, "in {epochs} of {} epochs", batches.len());
}

#[test]
fn a_source_that_is_not_there_says_so() {
    let sources = vec![SourceKind::Spe, SourceKind::TrappedPages];
    let Some((_, batches)) = observe(sources, &["300"]) else {
        return;
    };
    assert!(!report(&batches, "spe").warning.is_empty());
    let trapped = report(&batches, "trapped-pages");
    assert!(trapped.warning.contains("delivered nothing"), "{trapped:?}");
}
