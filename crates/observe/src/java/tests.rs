//! Tests of a Java virtual machine made of files: the agent's, and a `/proc` whose memory is a sparse file.

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

use isotherm_abi::java::{HEADER_BYTES, MAGIC, VERSION};
use isotherm_model::batch::{Extent, Process};
use isotherm_model::site::{SiteId, SiteKind};
use isotherm_model::units::Bytes;
use tempfile::TempDir;

use super::{HeapSample, JavaHeaps, range_start};
use crate::source::AccessList;

const PID: u32 = 77;
const HEAP: (u64, u64) = (0x10_0000, 0x20_0000);
/// A sampled array, and a sampled object of another class.
const ARRAY: u64 = 0x10_1000;
const SMALL: u64 = 0x11_0000;
/// An object of the class of the second, which is not sampled.
const UNSAMPLED: u64 = 0x11_8000;
const ARRAY_WORD: u64 = 0x400;
const SMALL_WORD: u64 = 0x500;
const COLLECTED_NS: u64 = 1000;

struct Machine {
    directory: TempDir,
    file: File,
    heaps: JavaHeaps,
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("java.77");
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .expect("creates");
        file.set_len(6 * HEADER_BYTES as u64).expect("sizes");
        file.set_permissions(Permissions::from_mode(0o600))
            .expect("permits");
        let made = Self {
            heaps: JavaHeaps::new(directory.path(), &directory.path().join("proc")),
            directory,
            file,
        };
        let texts = "int[]\nA.make\t()V\t5\tA.java\t3\nA$Node\nA.node\t()V\t9\tA.java\t8";
        let first = texts.find("A$Node").expect("is there") as u64 - 1;
        made.write(5, texts.as_bytes());
        let second = (first + 1) | (texts.len() as u64 - first - 1) << 32;
        let site = |text, class, live: u64| [text, class, 10, live, live, live, 2, 0];
        let sites = [site(first << 32, 0, 4096), site(second, 1, 0x8000)];
        made.write(1, &bytes(&sites.concat()));
        let objects = [[ARRAY, 4096, 0], [SMALL, 16, 1 | 1 << 32]];
        made.write(2, &bytes(&objects.concat()));
        made.write(3, &bytes(&[ARRAY_WORD, 0, SMALL_WORD, 1]));
        made.write(4, &bytes(&[0x9000, 0x100, 0]));
        made.collections(2);
        let threads = [(7, "worker"), (8, "GC Thread#0"), (9, "C2 CompilerThre")];
        for (thread, name) in threads {
            let task = made.proc().join(format!("task/{thread}"));
            std::fs::create_dir_all(&task).expect("makes");
            std::fs::write(task.join("comm"), format!("{name}\n")).expect("writes");
        }
        let memory = File::create(made.proc().join("mem")).expect("creates");
        let header = bytes(&[1, SMALL_WORD | 0xdead << 32]);
        memory.write_all_at(&header, UNSAMPLED).expect("writes");
        memory.set_len(HEAP.1).expect("sizes");
        made
    }

    fn proc(&self) -> PathBuf {
        self.directory.path().join("proc/77")
    }

    /// Writes into a table, or the header.
    fn write(&self, table: u64, bytes: &[u8]) {
        let place = table * HEADER_BYTES as u64;
        self.file.write_all_at(bytes, place).expect("writes");
    }

    /// The header with this number of collections; an odd number means that one is running.
    fn collections(&self, collections: u64) {
        let mut words = vec![
            MAGIC,
            u64::from(VERSION) | u64::from(PID) << 32,
            512,
            4,
            HEAP.0,
            HEAP.1,
        ];
        for (table, used) in (1..).zip([2, 2, 2, 1, 128]) {
            let slots = if table == 5 { 4096 } else { 60 };
            words.extend([table * HEADER_BYTES as u64, slots, used]);
        }
        words.extend([collections, COLLECTED_NS, 30, collections, 12, 2, 3]);
        self.write(0, &bytes(&words));
    }

    fn count(&self, name: &str) -> u64 {
        let counts = self.heaps.counts();
        let found = counts.iter().find(|count| count.name == name);
        found.unwrap_or_else(|| panic!("{name}")).value
    }
}

fn sample(tid: u32, address: u64, base: u64) -> HeapSample {
    HeapSample {
        pid: PID,
        tid,
        time_ns: COLLECTED_NS + 1,
        ip: 0x9010,
        address: Some(address),
        bases: [base, 0],
    }
}

#[test]
fn samples_count_in_the_ranges_of_their_sites() {
    let mut machine = Machine::new();
    machine.heaps.discover();
    assert!(!machine.heaps.is_empty());
    machine.heaps.read_sites();
    let late = HeapSample {
        time_ns: COLLECTED_NS,
        ..sample(7, ARRAY, 0)
    };
    let samples = [
        sample(7, ARRAY + 100, 0),
        sample(7, UNSAMPLED + 12, UNSAMPLED),
        sample(7, UNSAMPLED + 12, UNSAMPLED + 8),
        sample(8, ARRAY, 0),
        sample(9, 0x5000, 0),
        late,
        HeapSample {
            pid: PID + 1,
            ..sample(7, ARRAY, 0)
        },
    ];
    let places = machine.heaps.places(&samples);
    let of = |site: u64| range_start(site)..range_start(site) + 0x8000;
    assert!(of(0).contains(&places[0].expect("a place")));
    assert!(of(1).contains(&places[1].expect("a place")));
    assert_eq!(places[2..], [None; 5]);
    let counted = [
        ("java_samples_of_sampled_objects", 1),
        ("java_samples_by_class", 1),
        ("java_samples_of_unknown_objects", 1),
        ("java_collector_samples", 1),
        ("java_compiler_samples", 1),
        ("java_late_samples", 1),
        ("java_stack_samples", 4),
        ("java_allocation_sites", 2),
        ("java_types", 2),
        ("java_compiled_methods", 3),
    ];
    for (name, value) in counted {
        assert_eq!(machine.count(name), value, "{name}");
    }
}

#[test]
fn nothing_is_attributed_while_objects_move() {
    let mut machine = Machine::new();
    machine.heaps.discover();
    machine.collections(3);
    assert_eq!(machine.heaps.places(&[sample(7, ARRAY, 0)]), [None]);
    assert_eq!(machine.count("java_late_samples"), 1);
    machine.collections(4);
    let places = machine.heaps.places(&[sample(7, ARRAY, 0)]);
    assert!(places[0].is_some());
}

#[test]
fn sites_hold_bytes_that_the_heap_then_lacks() {
    let mut machine = Machine::new();
    machine.heaps.discover();
    machine.heaps.read_sites();
    let process = Process { pid: PID, image: 0 };
    let extent = |address, resident| Extent {
        process,
        site: SiteId(9),
        address,
        bytes: Bytes(0x10_0000),
        resident: Bytes(resident),
        tier: None,
    };
    let mut live = vec![extent(HEAP.0, 0x9800), extent(0x70_0000, 0x4000)];
    machine.heaps.add_extents(&mut live, |_| process);
    let resident: Vec<u64> = live.iter().map(|extent| extent.resident.0).collect();
    assert_eq!(resident, [0x800, 0x4000, 4096, 0x8000]);
    assert_eq!(live[2].address, range_start(0));
    let sites = machine.heaps.take_changed_sites();
    let labels: Vec<String> = sites.iter().map(|site| site.label()).collect();
    assert_eq!(
        labels,
        [
            "A.make (A.java:3: new int[])",
            "A.node (A.java:8: new A$Node)"
        ]
    );
    assert!(sites.iter().all(|site| site.kind == SiteKind::Java));
    assert_eq!(live[2].site, sites[0].id);
    assert!(machine.heaps.take_changed_sites().is_empty());
}

#[test]
fn counted_accesses_are_told_once() {
    let mut machine = Machine::new();
    machine.heaps.discover();
    machine
        .file
        .write_all_at(&500_u64.to_ne_bytes(), HEADER_BYTES as u64 + 56)
        .expect("writes");
    let process = Process { pid: PID, image: 0 };
    let mut accesses = AccessList::default();
    for _ in 0..2 {
        machine.heaps.read_sites();
        machine.heaps.count_accesses(|_| process, &mut accesses);
    }
    let counted: Vec<_> = accesses
        .as_slice()
        .iter()
        .map(|it| (it.address, it.count))
        .collect();
    assert_eq!(counted, [(range_start(0), 500)]);
}

#[test]
fn a_file_that_cannot_be_used_is_reported() {
    let mut machine = Machine::new();
    machine.write(0, &5_u64.to_ne_bytes());
    machine.heaps.discover();
    assert!(machine.heaps.is_empty());
    let reports: Vec<_> = machine.heaps.reports().collect();
    assert!(reports[0].warning.contains("77: no file"), "{reports:?}");
}
