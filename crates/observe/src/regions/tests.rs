//! Tests of the regions of processes made of files, and of this process.

use std::fmt::Write as _;
use std::path::Path;

use isotherm_model::batch::{Extent, Process};
use isotherm_model::site::{Site, SiteKind};
use isotherm_model::units::Bytes;

use super::region::{Region, without};
use super::{Regions, waiting_stack};

const PROCESS: Process = Process { pid: 7, image: 0 };
const MIB: u64 = 1 << 20;

/// A directory in place of `/proc` with a process of these mappings, each a range in MiB, its access, inode and name.
fn machine(root: &Path, mappings: &[(u64, u64, &str, u64, &str)]) {
    let directory = root.join("7");
    std::fs::create_dir_all(directory.join("task/7")).expect("makes");
    let mut text = String::new();
    for (start, end, access, inode, name) in mappings {
        let (start, end) = (start * MIB, end * MIB);
        writeln!(
            text,
            "{start:x}-{end:x} {access} 00000000 00:00 {inode} {name}"
        )
        .expect("a text");
    }
    std::fs::write(directory.join("maps"), text).expect("writes");
    std::fs::write(directory.join("statm"), "9 9 9").expect("writes");
    // No page is resident.
    std::fs::write(directory.join("pagemap"), "").expect("writes");
    std::fs::write(directory.join("task/7/stat"), "7 (app) S 1").expect("writes");
}

/// The labels of the sites of a process, by the addresses of its regions.
fn labels(regions: &mut Regions, sites: &mut Vec<Site>) -> Vec<(u64, String)> {
    let extents = regions.extents().live;
    sites.extend(regions.take_sites());
    let label = |extent: &Extent| {
        let site = sites.iter().find(|site| site.id == extent.site);
        let site = site.expect("is passed on");
        assert_eq!(site.kind, SiteKind::Region);
        (extent.address / MIB, site.label())
    };
    extents.iter().map(label).collect()
}

fn expected(labels: &[(u64, &str)]) -> Vec<(u64, String)> {
    labels
        .iter()
        .map(|(address, label)| (*address, (*label).to_owned()))
        .collect()
}

#[test]
fn mappings_are_named_by_what_the_kernel_says_of_them_and_by_their_sizes() {
    let root = tempfile::tempdir().expect("a directory");
    machine(
        root.path(),
        &[
            (1, 2, "r--p", 9, "/data/table (deleted)"),
            (2, 4, "rw-p", 9, "/data/table (deleted)"),
            (4, 6, "rw-p", 0, ""),
            (10, 12, "rw-p", 0, "[heap]"),
            (20, 84, "rw-p", 0, ""),
            (84, 90, "---p", 0, ""),
            (100, 164, "rw-p", 0, ""),
            (200, 201, "rw-s", 5, "/dev/shm/ring"),
            (210, 211, "rw-p", 0, "[anon:jit code]"),
            (220, 228, "rw-p", 0, ""),
            (300, 301, "rw-p", 0, "[stack]"),
            (310, 311, "r--p", 0, "[vvar_vclock]"),
        ],
    );
    let mut regions = Regions::new(root.path());
    // The stack pointer of a thread that was sampled.
    regions.read(PROCESS, &[], &[227 * MIB]);
    let names = [
        (1, "file /data/table"),
        (2, "file /data/table"),
        (4, "file /data/table"),
        (10, "[heap]"),
        (20, "anonymous 64MiB"),
        (100, "anonymous 64MiB (2)"),
        (200, "file /dev/shm/ring"),
        (210, "[anon:jit code]"),
        (220, "thread stacks"),
        (300, "thread stacks"),
    ];
    assert_eq!(labels(&mut regions, &mut Vec::new()), expected(&names));
    let objects = regions.take_objects();
    let objects: Vec<u64> = objects.iter().map(|it| it.range.start / MIB).collect();
    assert_eq!(objects, [1, 2, 4, 20, 100, 200]);
}

#[test]
fn a_mapping_that_grows_keeps_its_name_and_what_another_owner_has_is_left_out() {
    let root = tempfile::tempdir().expect("a directory");
    machine(
        root.path(),
        &[(20, 84, "rw-p", 0, ""), (100, 101, "rw-p", 0, "")],
    );
    let (mut regions, mut sites) = (Regions::new(root.path()), Vec::new());
    regions.read(PROCESS, &[], &[]);
    let names = [(20, "anonymous 64MiB"), (100, "anonymous 1MiB")];
    assert_eq!(labels(&mut regions, &mut sites), expected(&names));
    machine(
        root.path(),
        &[(16, 90, "rw-p", 0, ""), (200, 264, "rw-p", 0, "")],
    );
    let taken = 30 * MIB..40 * MIB;
    regions.read(PROCESS, std::slice::from_ref(&taken), &[]);
    let now = regions.extents();
    let ranges: Vec<_> = now
        .live
        .iter()
        .map(|it| (it.address / MIB, it.bytes))
        .collect();
    let mib = |count| Bytes(count * MIB);
    assert_eq!(ranges, [(16, mib(14)), (40, mib(50)), (200, mib(64))]);
    assert_eq!(now.live[0].site, now.live[1].site);
    let departed: Vec<_> = now.departed.iter().map(|it| it.address / MIB).collect();
    assert_eq!(departed, [100]);
    regions.read(PROCESS, &[], &[]);
    let names = [(16, "anonymous 64MiB"), (200, "anonymous 64MiB (2)")];
    assert_eq!(labels(&mut regions, &mut sites), expected(&names));
}

#[test]
fn a_process_that_ended_has_its_regions_once_more() {
    let root = tempfile::tempdir().expect("a directory");
    machine(root.path(), &[(20, 84, "rw-p", 0, "")]);
    let mut regions = Regions::new(root.path());
    regions.read(PROCESS, &[], &[]);
    std::fs::remove_dir_all(root.path().join("7")).expect("removes");
    regions.read(PROCESS, &[], &[]);
    assert_eq!(regions.extents().live.len(), 1);
    assert!(regions.extents().live.is_empty());
}

#[test]
fn this_process_has_its_variables_and_its_memory_is_measured() {
    static DATA: std::sync::Mutex<[u8; 1 << 20]> = std::sync::Mutex::new([0; 1 << 20]);
    let mut data = DATA.lock().expect("is free");
    data.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    let own = Process {
        pid: std::process::id(),
        image: 0,
    };
    let mut regions = Regions::new(Path::new("/proc"));
    regions.read(own, &[], &[]);
    let at = data.as_ptr() as u64 + (1 << 19);
    let extents = regions.extents().live;
    let holds = |it: &&Extent| it.address <= at && at < it.address + it.bytes.0;
    let variable = extents.iter().find(holds).expect("a region");
    assert!(variable.resident >= Bytes(MIB - 4096), "{variable:?}");
    let sites = regions.take_sites();
    let site = sites.iter().find(|site| site.id == variable.site);
    let site = site.expect("is passed on");
    assert_eq!(site.kind, SiteKind::Static);
    assert!(site.label().contains("DATA"), "{}", site.label());
    assert_eq!(regions.report().warning, "");
}

#[test]
fn ranges_are_cut_out_at_both_ends_and_in_the_middle() {
    let site = isotherm_model::site::SiteId(9);
    let region = |span| Region {
        span,
        site,
        is_object: false,
    };
    let left = without(
        vec![region(10..20), region(30..50), region(60..70)],
        &[0..12, 18..35, 40..41, 60..70],
    );
    let spans: Vec<_> = left.into_iter().map(|it| it.span).collect();
    assert_eq!(spans, [12..18, 35..40, 41..50]);
}

#[test]
fn the_stack_of_a_thread_that_waits_is_known_and_of_one_that_runs_not() {
    let read = "0 0x3 0x7f01 0x400 0x0 0x0 0x0 0x7ffd1230 0x7f55aa\n";
    assert_eq!(waiting_stack(read), Some(0x7ffd_1230));
    assert_eq!(waiting_stack("-1 0x7ffd1230 0x7f55aa\n"), Some(0x7ffd_1230));
    for text in ["running\n", "", "0x7f55aa"] {
        assert_eq!(waiting_stack(text), None, "{text}");
    }
}
