//! Tests of the filter and the selection of processes on recorded `/proc` roots.

use super::{Candidate, Candidates, Filter, ProcessSelection, fits, is_within};
use isotherm_model::batch::Process;
use isotherm_model::units::Nanos;
use std::path::Path;

const SECOND: u64 = 1_000_000_000;

/// A process of a recorded `/proc`.
struct Recorded {
    pid: u32,
    parent: u32,
    user: u32,
    program: &'static str,
    group: &'static str,
    ticks: u64,
    start: u64,
    pages: u64,
}

const REDIS: Recorded = Recorded {
    pid: 10,
    parent: 1,
    user: 999,
    program: "/usr/bin/redis-server",
    group: "/system.slice/redis.service",
    ticks: 0,
    start: 5,
    pages: 1000,
};

fn record(root: &Path, recorded: &Recorded) {
    let directory = root.join(recorded.pid.to_string());
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let Recorded {
        pid,
        parent,
        user,
        program,
        group,
        ticks,
        start,
        pages,
    } = recorded;
    let stat = format!(
        "{pid} (a) name) S {parent} 1 1 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {start} 9 {pages} 0"
    );
    std::fs::write(directory.join("stat"), stat).unwrap();
    let status = format!("Name:\tx\nUid:\t{user}\t{user}\t{user}\t{user}\n");
    std::fs::write(directory.join("status"), status).unwrap();
    std::fs::write(directory.join("cgroup"), format!("1:cpu:/x\n0::{group}\n")).unwrap();
    std::os::unix::fs::symlink(program, directory.join("exe")).unwrap();
}

/// One GiB of memory, so that 10 % are 26,215 pages of 4 KiB.
fn machine(processes: &[Recorded]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("meminfo"), "MemTotal: 1048576 kB\n").unwrap();
    for recorded in processes {
        record(root.path(), recorded);
    }
    root
}

fn pids(candidates: &[Candidate]) -> Vec<u32> {
    candidates
        .iter()
        .map(|candidate| candidate.process.pid)
        .collect()
}

fn select(root: &Path, selection: &ProcessSelection) -> Vec<u32> {
    pids(&Candidates::new(root).look(selection, Filter::Off, Nanos(0), 1))
}

/// A server, its child process, and another user's program of the same kind.
fn four_programs() -> tempfile::TempDir {
    let of = |pid, parent, user, program, group| Recorded {
        pid,
        parent,
        user,
        program,
        group,
        ..REDIS
    };
    machine(&[
        REDIS,
        of(11, 10, 0, "/bin/sh", "/a"),
        of(12, 11, 0, "/bin/cat", "/a/b"),
        of(13, 1, 7, "/opt/x/cat", "/ab"),
        Recorded {
            pid: 14,
            pages: 0,
            ..REDIS
        },
    ])
}

#[test]
fn processes_are_selected_by_number_user_program_group_and_parent() {
    let root = four_programs();
    let root = root.path();
    let none = ProcessSelection::default();
    let kernel = "a thread of the kernel has no memory";
    assert_eq!(select(root, &none), [10, 11, 12, 13], "{kernel}");
    let one = ProcessSelection {
        pids: vec![11],
        ..none.clone()
    };
    assert_eq!(select(root, &one), [11]);
    let with_children = ProcessSelection {
        children: true,
        ..one
    };
    assert_eq!(select(root, &with_children), [11, 12]);
    let user = ProcessSelection {
        users: vec![7],
        ..none.clone()
    };
    assert_eq!(select(root, &user), [13]);
    let programs = |pattern: &str| ProcessSelection {
        programs: vec![pattern.into()],
        ..none.clone()
    };
    assert_eq!(select(root, &programs("redis-*")), [10]);
    assert_eq!(select(root, &programs("/opt/*")), [13]);
    assert_eq!(select(root, &programs("opt")), [0; 0]);
    let by_kernel = "the name that the kernel gives, and `status` shows, selects as well";
    assert_eq!(
        select(root, &programs("a) n*")),
        [10, 11, 12, 13],
        "{by_kernel}"
    );
    let group = ProcessSelection {
        control_groups: vec!["/a".into()],
        ..none.clone()
    };
    assert_eq!(select(root, &group), [11, 12]);
    let both = ProcessSelection {
        pids: vec![13],
        ..group
    };
    assert_eq!(select(root, &both), [11, 12, 13], "any of the lists");
}

#[test]
fn a_process_is_worth_it_by_processor_or_memory_and_is_looked_at_again() {
    let big = Recorded {
        pid: 11,
        pages: 26_300,
        ..REDIS
    };
    let root = machine(&[REDIS, big]);
    let mut candidates = Candidates::new(root.path());
    let all = ProcessSelection::default();
    let mut look = |second| {
        let found = candidates.look(&all, Filter::Tmp, Nanos(second * SECOND), 1);
        pids(&found)
    };
    assert_eq!(look(0), [10, 11], "nothing is known of it yet");
    assert_eq!(look(1), [11], "idle and small");
    // Six of a hundred ticks.
    record(root.path(), &Recorded { ticks: 6, ..REDIS });
    assert_eq!(look(2), [10, 11]);
    assert_eq!(look(3), [11]);
}

#[test]
fn the_strict_filter_keeps_to_its_number_and_prefers_what_passes_both_halves() {
    let root = machine(&[
        REDIS,
        Recorded {
            pid: 11,
            pages: 30_000,
            ..REDIS
        },
        Recorded {
            pid: 12,
            pages: 27_000,
            ..REDIS
        },
    ]);
    let mut candidates = Candidates::new(root.path());
    let all = ProcessSelection::default();
    candidates.look(&all, Filter::Off, Nanos(0), 1);
    for pid in [10, 12] {
        let pages = if pid == 12 { 27_000 } else { 1000 };
        record(
            root.path(),
            &Recorded {
                pid,
                pages,
                ticks: 50,
                ..REDIS
            },
        );
    }
    let found = candidates.look(&all, Filter::Strict(2), Nanos(SECOND), 1);
    assert_eq!(pids(&found), [11, 12]);
    for pid in [10, 12] {
        let pages = if pid == 12 { 27_000 } else { 1000 };
        record(
            root.path(),
            &Recorded {
                pid,
                pages,
                ticks: 100,
                ..REDIS
            },
        );
    }
    let found = candidates.look(&all, Filter::Strict(1), Nanos(2 * SECOND), 1);
    assert_eq!(pids(&found), [12]);
}

#[test]
fn another_program_and_a_number_that_is_used_again_are_other_images() {
    let root = machine(&[REDIS]);
    let mut candidates = Candidates::new(root.path());
    let all = ProcessSelection::default();
    let mut image = || {
        let found = candidates.look(&all, Filter::Off, Nanos(0), 1);
        found.first().map(|candidate| candidate.process)
    };
    let process = |image| Some(Process { pid: 10, image });
    assert_eq!(image(), process(0));
    record(
        root.path(),
        &Recorded {
            program: "/bin/sh",
            ..REDIS
        },
    );
    assert_eq!(image(), process(1));
    record(
        root.path(),
        &Recorded {
            program: "/bin/sh",
            start: 9,
            ..REDIS
        },
    );
    assert_eq!(image(), process(2));
    std::fs::remove_dir_all(root.path().join("10")).unwrap();
    assert_eq!(image(), None);
    record(root.path(), &REDIS);
    assert_eq!(image(), process(3));
}

#[test]
fn a_process_that_ends_between_two_files_is_left_out() {
    let root = machine(&[REDIS]);
    std::fs::remove_file(root.path().join("10/status")).unwrap();
    assert_eq!(select(root.path(), &ProcessSelection::default()), [0; 0]);
    std::fs::write(root.path().join("10/stat"), "10 (x").unwrap();
    assert_eq!(select(root.path(), &ProcessSelection::default()), [0; 0]);
}

#[test]
fn patterns_and_groups_fit_as_they_should() {
    for (pattern, text, wanted) in [
        ("*", "", true),
        ("a*b*c", "axxbyyc", true),
        ("a*b*c", "axxbyy", false),
        ("*ab", "aab", true),
        ("a", "ab", false),
        ("a**", "a", true),
    ] {
        assert_eq!(
            fits(pattern.as_bytes(), text.as_bytes()),
            wanted,
            "{pattern} {text}"
        );
    }
    assert!(is_within("/a/b", "/a/") && is_within("/a", "/a") && is_within("/a", "/"));
    assert!(!is_within("/ab", "/a") && !is_within("", "/a"));
}
