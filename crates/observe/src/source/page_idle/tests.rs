//! Tests of the source `page-idle` against files that a test's clock changes during the window, as a kernel would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, create_dir_all, write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use isotherm_model::batch::ObservedAccess;
use isotherm_model::batch::Process;
use isotherm_model::source_kind::ProfilingMethod;
use isotherm_model::units::Nanos;

use super::{BITMAP, LISTED, PageIdle, TAIL};
use crate::source::frames::PRESENT;
use crate::source::{Source, scan_of};
use crate::watch::memory::ProcessMemory;
use isotherm_model::port::Clock;

const PAGE: u64 = 4096;
const UNIT: u64 = 64 * PAGE;
const FRAMES: u64 = 4096;

const PROCESS: Process = Process { pid: 7, image: 0 };

/// A kernel made of files: page `n` of the process is in frame `2000 - n`.
struct Kernel {
    root: tempfile::TempDir,
    /// Frames whose bits the program sets during the window.
    accessed: BTreeSet<u64>,
}

impl Kernel {
    fn new(frames_are_shown: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = root.path().join(name);
            create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        write(path(BITMAP), vec![0; FRAMES as usize / 8]).unwrap();
        let flags = (0..FRAMES).flat_map(|_| LISTED.to_ne_bytes());
        write(path("proc/kpageflags"), flags.collect::<Vec<u8>>()).unwrap();
        let shown = |page: u64| if frames_are_shown { frame(page) } else { 0 };
        let pages = (0..1024).flat_map(|page| (PRESENT | shown(page)).to_ne_bytes());
        write(path("proc/7/pagemap"), pages.collect::<Vec<u8>>()).unwrap();
        Self {
            root,
            accessed: BTreeSet::new(),
        }
    }

    fn bitmap(&self) -> PathBuf {
        self.root.path().join(BITMAP)
    }

    fn flag(&self, frame: u64, flags: u64) {
        let path = self.root.path().join("proc/kpageflags");
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(&flags.to_ne_bytes(), frame * 8).unwrap();
    }

    /// Hits by unit in one window on the first units of the process.
    fn look(&self, source: &mut PageIdle, units: u64) -> Vec<(u64, u64)> {
        let whole = 0..units * UNIT;
        let resident = ProcessMemory::of_spans(std::slice::from_ref(&whole), UNIT);
        let resident = BTreeMap::from([(PROCESS, resident)]);
        let proc_root = self.root.path().join("proc");
        let seen = scan_of(source, (self, &proc_root), &[], &resident);
        let method = |one: &ObservedAccess| one.source.method();
        assert!(
            seen.iter()
                .all(|one| method(one) == ProfilingMethod::AccessedBits)
        );
        let seen = seen.iter();
        seen.map(|one| (one.address / UNIT, one.count)).collect()
    }

    fn open(&self) -> PageIdle {
        PageIdle::open(self.root.path(), 1_000_000).expect("opens")
    }
}

impl Clock for Kernel {
    fn now(&self) -> Nanos {
        Nanos(0)
    }

    fn busy(&self) -> Nanos {
        Nanos(0)
    }

    /// The program runs: the pages that it accesses are no longer idle.
    fn sleep(&self, _: Nanos) {
        let mut bits = std::fs::read(self.bitmap()).unwrap();
        for frame in &self.accessed {
            let (word, bit) = ((frame / 64 * 8) as usize, frame % 64);
            let mut value = u64::from_ne_bytes(bits[word..word + 8].try_into().unwrap());
            value &= !(1 << bit);
            bits[word..word + 8].copy_from_slice(&value.to_ne_bytes());
        }
        write(self.bitmap(), bits).unwrap();
    }
}

const fn frame(page: u64) -> u64 {
    2000 - page
}

#[test]
fn units_whose_pages_are_accessed_are_told_from_those_whose_are_not() {
    let mut kernel = Kernel::new(true);
    kernel.accessed = (64..128).map(frame).collect();
    let mut source = kernel.open();
    for window in 0..5 {
        assert_eq!(kernel.look(&mut source, 4), [(1, 64)], "window {window}");
    }
    assert_eq!(
        (source.report().taken, source.report().usable),
        (5 * 32, 5 * 8)
    );
    kernel.accessed.clear();
    assert_eq!(kernel.look(&mut source, 4), []);
    assert_eq!(source.report().warning, "");
}

#[test]
fn over_the_windows_a_unit_that_is_accessed_in_part_counts_by_that_part() {
    let mut kernel = Kernel::new(true);
    kernel.accessed = (0..16).map(frame).collect();
    let mut source = kernel.open();
    let windows = (0..64).map(|_| kernel.look(&mut source, 1));
    let hits: u64 = windows.flatten().map(|(_, hits)| hits).sum();
    assert_eq!(hits, 64 * 16, "a quarter of 64 pages");
}

#[test]
fn a_huge_page_has_the_bit_of_its_first_frame_and_what_is_on_no_list_is_not_asked() {
    let mut kernel = Kernel::new(true);
    // The first unit is one huge page, and half of the second is on no LRU list.
    let first = frame(63);
    (first + 1..=frame(0)).for_each(|frame| kernel.flag(frame, LISTED | TAIL));
    (64..96).map(frame).for_each(|frame| kernel.flag(frame, 0));
    kernel.accessed = std::iter::once(first).chain((96..128).map(frame)).collect();
    let mut source = kernel.open();
    assert_eq!(kernel.look(&mut source, 2), [(0, 64), (1, 64)]);
    assert_eq!(source.report().taken, 8 + 4);
    kernel.accessed.clear();
    assert_eq!(kernel.look(&mut source, 2), []);
}

#[test]
fn what_is_missing_is_named_with_what_would_bring_it() {
    let nothing = tempfile::tempdir().unwrap();
    let said = PageIdle::open(nothing.path(), 1).expect_err("no bitmap");
    assert!(said.contains("CONFIG_IDLE_PAGE_TRACKING"), "{said}");
    let kernel = Kernel::new(false);
    let mut source = kernel.open();
    assert_eq!(kernel.look(&mut source, 1), []);
    let warning = &source.report().warning;
    assert!(
        warning.contains("hides frame numbers") && warning.contains("CAP_SYS_ADMIN"),
        "{warning}"
    );
}

#[test]
fn a_process_that_ended_and_a_file_that_ends_early_are_no_failure() {
    let kernel = Kernel::new(true);
    let mut source = kernel.open();
    std::fs::remove_file(kernel.root.path().join("proc/7/pagemap")).unwrap();
    assert_eq!(kernel.look(&mut source, 1), []);
    assert_eq!(source.report().warning, "");
    write(kernel.root.path().join("proc/7/pagemap"), [0; 3]).unwrap();
    assert_eq!(kernel.look(&mut source, 1), []);
    assert!(source.report().warning.contains("frame numbers"));
    assert!(Path::new(&kernel.bitmap()).exists());
}
