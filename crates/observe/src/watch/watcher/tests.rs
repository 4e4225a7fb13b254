//! Tests of a watcher on a recorded machine: in a day of programs that start and end, only live processes have kept data; and
//! the samples of the timer cost the programs no more than allowed.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{create_dir_all, remove_file, rename, write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::rc::Rc;

use isotherm_model::batch::Epoch;
use isotherm_model::units::{Bytes, Nanos};

use super::{AccessedBitChoice, Watcher, WatcherConfig};
use crate::source::damon::fake_kdamond;
use crate::source::frames::PRESENT;
use crate::source::process_samples::SampleRate;
use crate::watch::candidates::{Filter, ProcessSelection};
use isotherm_model::port::Clock;
use isotherm_model::source_kind::SourceKind;

const PAGE: u64 = 4096;

/// Epochs of 108 seconds in a day, and programs that start and end in it: a thousand an hour.
const EPOCHS: u32 = 800;
const PROGRAMS: u32 = 24_000;

/// The longest life, in nanoseconds: two epochs.
const LIFE: u64 = 216_000_000_000;

/// The first of the thousand pids in the test, above the pids of all real processes.
const FIRST: u32 = 5_000_000;
const NUMBERS: u32 = 1_000;

/// A page table in which the second to fourth pages of the mapping are present.
const MAPPING: &str = "10000-14000 rw-p 00000000 00:00 0";

/// A machine of files. Time passes, and programs end, when an epoch begins and during a window.
struct Machine {
    root: tempfile::TempDir,
    now: Cell<u64>,
    begun: Cell<u32>,
    /// Directories of live processes, by number, and their end times.
    alive: RefCell<BTreeMap<u32, (PathBuf, u64)>>,
    /// Directories of processes that have ended, for reuse.
    ended: RefCell<Vec<PathBuf>>,
}

impl Machine {
    fn new() -> Self {
        let root = fake_kdamond::machine(1, "0\n", "paddr\n", "-1\n");
        // DAMON finds all frames accessed.
        fake_kdamond::tell(root.path(), &[(0..1 << 30, 5), (1 << 30..1 << 31, 5)]);
        let proc_root = root.path().join("proc");
        create_dir_all(&proc_root).unwrap();
        write(proc_root.join("iomem"), "00001000-ffffffff : System RAM\n").unwrap();
        write(proc_root.join("meminfo"), "MemTotal: 1048576 kB\n").unwrap();
        Self {
            root,
            now: Cell::new(0),
            begun: Cell::new(0),
            alive: RefCell::default(),
            ended: RefCell::default(),
        }
    }

    /// Starts the programs of an epoch. Each replaces the one that had its number an hour ago.
    fn begin(&self, epoch: u32) {
        while self.begun.get() < PROGRAMS / EPOCHS * (epoch + 1) {
            let number = self.begun.replace(self.begun.get() + 1);
            let pid = FIRST + number % NUMBERS;
            let directory = self.ended.borrow_mut().pop();
            let directory = directory.unwrap_or_else(|| self.directory(number));
            let stat =
                format!("{pid} (p{number}) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {number} 9 4 0");
            // A new file: some file systems write one that was made empty to the disk at once.
            let _ = remove_file(directory.join("stat"));
            write(directory.join("stat"), stat).unwrap();
            let there = self.root.path().join(format!("proc/{pid}"));
            rename(&directory, &there).unwrap();
            // Some end in the middle of the epoch, some live on into the next.
            let end = self.now.get() + 1 + LIFE / 7 * u64::from(number % 7);
            self.alive.borrow_mut().insert(pid, (directory, end));
        }
    }

    /// A process of four pages, three of them resident. The resident pages of one in five cannot be
    /// read.
    fn directory(&self, number: u32) -> PathBuf {
        let directory = self.root.path().join(format!("proc/ended-{number}"));
        create_dir_all(&directory).unwrap();
        let file = |name: &str| directory.join(name);
        write(file("status"), "Name:\tp\nUid:\t0\t0\t0\t0\n").unwrap();
        write(file("cgroup"), "0::/services/p\n").unwrap();
        symlink("/dev/null", file("clear_refs")).unwrap();
        write(file("maps"), format!("{MAPPING}\n")).unwrap();
        write(
            file("smaps"),
            format!("{MAPPING}\nRss: 12 kB\nReferenced: 8 kB\n"),
        )
        .unwrap();
        if number.is_multiple_of(5) {
            create_dir_all(file("pagemap")).unwrap();
        } else {
            let entry = |page| {
                if (17..20).contains(&page) {
                    PRESENT | (page + 100)
                } else {
                    0
                }
            };
            let entries: Vec<u8> = (0..20_u64)
                .flat_map(|page| entry(page).to_ne_bytes())
                .collect();
            write(file("pagemap"), entries).unwrap();
        }
        directory
    }

    /// Time passes, and programs end.
    fn pass(&self, nanos: u64) {
        self.now.set(self.now.get() + nanos);
        let is_over = |_: &u32, (_, end): &mut (PathBuf, u64)| *end <= self.now.get();
        for (pid, (directory, _)) in self.alive.borrow_mut().extract_if(.., is_over) {
            rename(self.root.path().join(format!("proc/{pid}")), &directory).unwrap();
            self.ended.borrow_mut().push(directory);
        }
    }
}

impl Clock for Machine {
    fn now(&self) -> Nanos {
        Nanos(self.now.get())
    }

    fn busy(&self) -> Nanos {
        Nanos::ZERO
    }

    fn sleep(&self, span: Nanos) {
        self.pass(span.0);
    }
}

fn config(machine: &Machine, bits: AccessedBitChoice) -> WatcherConfig {
    WatcherConfig {
        root: machine.root.path().to_owned(),
        state: None,
        selection: ProcessSelection::default(),
        filter: Filter::Off,
        unit: Bytes(4 * PAGE),
        fast: BTreeSet::new(),
        emulated: false,
        fast_limit: Bytes(1 << 30),
        kernel_promotes: false,
        bits,
        samples: None,
        cache: Bytes::ZERO,
        sample_rate: SampleRate {
            timer_hz: 100,
            pmu: 1,
        },
        sample_cost: None,
        budget_ppm: 1_000_000_000,
    }
}

fn watcher(machine: &Rc<Machine>, bits: AccessedBitChoice) -> Watcher {
    Watcher::new(config(machine, bits), Box::new(Rc::clone(machine)))
}

/// Number of kept entries of processes, by owner.
fn kept(watcher: &Watcher) -> [usize; 4] {
    let of_bits = watcher.bits.as_ref().map_or(0, |bits| bits.kept());
    let (resident, warning) = (watcher.resident.len(), watcher.warning.len());
    [watcher.watched.len(), resident, warning, of_bits]
}

/// Simulates the day and checks the kept entries after every epoch.
fn nothing_is_left_after_a_day_of(bits: AccessedBitChoice) {
    let machine = Rc::new(Machine::new());
    let mut watcher = watcher(&machine, bits);
    let mut seen = [0; 4];
    for epoch in 0..EPOCHS {
        machine.begin(epoch);
        let there = machine.alive.borrow().len();
        let observed = watcher.observe(Epoch(epoch));
        let kept = kept(&watcher);
        assert!(there <= (3 * PROGRAMS / EPOCHS) as usize, "epoch {epoch}");
        assert!(
            kept.iter().all(|count| *count <= there),
            "epoch {epoch}: {kept:?} of {there}"
        );
        assert_eq!(observed.processes.len(), there, "epoch {epoch}");
        assert!(watcher.accesses.as_slice().is_empty());
        let [known, numbers] = watcher.candidates.kept();
        assert_eq!(known, there, "epoch {epoch}");
        assert!(
            known + numbers <= NUMBERS as usize,
            "epoch {epoch}: {known} and {numbers}"
        );
        for (sum, count) in seen.iter_mut().zip([
            observed.residency.len(),
            observed.accesses.len(),
            kept[2],
            kept[3],
        ]) {
            *sum += count;
        }
        machine.pass(LIFE / 2);
    }
    let [held, accesses, warning, of_bits] = seen;
    assert!(
        held > 0 && accesses > 0 && warning > 0,
        "it saw all day: {seen:?}"
    );
    assert_eq!(
        of_bits > 0,
        matches!(bits, AccessedBitChoice::Source(SourceKind::DamonPhysical))
    );
    machine.pass(LIFE);
    let observed = watcher.observe(Epoch(EPOCHS));
    assert_eq!(
        (observed.processes, observed.residency, observed.accesses),
        Default::default()
    );
    assert_eq!(kept(&watcher), [0; 4]);
    assert_eq!(watcher.candidates.kept(), [0, NUMBERS as usize]);
}

#[test]
fn a_watcher_by_mappings_keeps_nothing_of_a_day_of_programs_that_start_and_end() {
    nothing_is_left_after_a_day_of(AccessedBitChoice::Source(SourceKind::AccessedBits));
}

#[test]
fn a_watcher_by_frames_keeps_nothing_of_a_day_of_programs_that_start_and_end() {
    nothing_is_left_after_a_day_of(AccessedBitChoice::Source(SourceKind::DamonPhysical));
}

#[test]
fn the_timer_samples_as_often_as_the_programs_can_pay_for() {
    let machine = Rc::new(Machine::new());
    let (price, one_percent) = (Some(Nanos(20_000)), 10_000);
    let config = WatcherConfig {
        samples: Some(SourceKind::Timer),
        cache: Bytes::ZERO,
        sample_rate: SampleRate {
            timer_hz: 1_000,
            pmu: 1,
        },
        sample_cost: price,
        budget_ppm: one_percent,
        ..config(
            &machine,
            AccessedBitChoice::Source(SourceKind::AccessedBits),
        )
    };
    let fast = config.fast_limit;
    let mut watcher = Watcher::new(config, Box::new(Rc::clone(&machine)));
    let three_quarters = 375;
    assert_eq!(watcher.timer_samples(), Some((three_quarters, price)));
    watcher.set_limits(fast, 2 * one_percent);
    assert_eq!(watcher.timer_samples(), Some((2 * three_quarters, price)));
    watcher.set_limits(fast, 100 * one_percent);
    assert_eq!(watcher.timer_samples(), Some((1_000, price)), "as wanted");
}
