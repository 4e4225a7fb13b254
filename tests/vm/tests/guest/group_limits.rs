//! Limits of control groups of version 2 on compressed memory: the daemon makes room below a limit before the kernel reclaims, and leaves
//! the limit to its owner; floors and caps of its own configuration hold.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::compressed::Compressed;
use crate::daemon::{Daemon, HOT_PAGES, Running, hot_in_numa_maps};
use crate::{GuestTest, on, skip};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(TWO, cold_units_leave_before_the_kernel_throttles_a_group),
    on!(TWO, cold_units_leave_before_a_group_is_full),
    on!(TWO, the_kernel_reclaims_what_may_not_be_paged_out),
    on!(TWO, a_group_keeps_its_floor_and_keeps_to_its_cap),
];

const ROOT: &str = "/sys/fs/cgroup";
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4096;

/// A new limit exceeds what the group has by this: each of two processors may hold 64 pages that are charged and not in use.
const MARGIN: u64 = MIB / 2;
/// Limits that are set one after another. At each a sixteenth of the limit less the margin leaves, and together more than the cycle, which
/// is cold and has the lowest addresses, so that a choice by address would go on to the hot array.
const ROUNDS: u32 = 6;
/// One unit of 2 MiB and pages beside it: on a busy host half of the hot array may have no sample for some epochs. The whole of it is 4 MiB.
const ONE_MISTAKE: u64 = 3 * MIB;

/// `hot-and-cold` in a control group of its own, from its start on. Both end with the test.
struct Grouped {
    directory: PathBuf,
    program: Option<Running>,
    output: BufReader<ChildStdout>,
}

impl Grouped {
    /// Returns once all of its memory is filled; skips the test without a controller of memory.
    fn start(name: &str) -> Self {
        let directory = Path::new(ROOT).join(name);
        let made = std::fs::write(Path::new(ROOT).join("cgroup.subtree_control"), "+memory")
            .and_then(|()| std::fs::create_dir(&directory));
        if let Err(error) = made {
            skip(&format!("no control group of version 2: {error}"));
        }
        let enter = format!(
            "echo $$ > {}/cgroup.procs && exec hot-and-cold 0 0 0 i",
            directory.display()
        );
        let program = Command::new("sh")
            .args(["-c", &enter])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut program = Running(program.expect("the program starts"));
        let output = program.0.stdout.take().expect("a pipe");
        let mut group = Self {
            directory,
            program: Some(program),
            output: BufReader::new(output),
        };
        group.wait_for_line("hot-at-first");
        group
    }

    fn wait_for_line(&mut self, word: &str) {
        let mut line = String::new();
        while !line.starts_with(word) {
            line.clear();
            let bytes = self.output.read_line(&mut line).expect("reads");
            assert!(bytes > 0, "the program ended without {word}");
        }
    }

    fn text(&self, file: &str) -> String {
        std::fs::read_to_string(self.directory.join(file)).expect("the kernel shows it")
    }

    fn bytes(&self, file: &str) -> u64 {
        self.text(file).trim().parse().expect("a number")
    }

    /// How often the kernel acted for a limit's sake, by the name of the event.
    fn events(&self, name: &str) -> u64 {
        let events = self.text("memory.events");
        let count = events.lines().find_map(|line| {
            let (event, count) = line.split_once(' ')?;
            (event == name).then(|| count.parse().ok())?
        });
        count.expect("counted")
    }

    /// Sets a limit to little more than the group has.
    fn limit(&self, file: &str) -> u64 {
        let limit = self.bytes("memory.current") / PAGE * PAGE + MARGIN;
        self.write(file, &limit.to_string());
        limit
    }

    fn write(&self, file: &str, word: &str) {
        std::fs::write(self.directory.join(file), word).expect("root may");
    }

    /// The limit must be as its owner left it. Without it the program reads all of its memory at its end as fast as it can.
    fn lift(&self, file: &str, limit: u64) {
        assert_eq!(self.bytes(file), limit, "the limit is its owner's");
        self.write(file, "max");
    }

    fn pid(&self) -> u32 {
        self.program.as_ref().expect("it runs").0.id()
    }

    fn has_hot_array(&self) -> bool {
        hot_in_numa_maps(self.pid(), 0) >= HOT_PAGES * 9 / 10
    }

    /// Ends the program, whose contents must be whole.
    fn end(mut self) {
        let mut program = self.program.take().expect("it runs");
        drop(program.0.stdin.take());
        let mut printed = String::new();
        self.output.read_to_string(&mut printed).expect("reads");
        assert!(program.0.wait().expect("a child").success());
        assert!(printed.contains("contents whole"), "{printed}");
    }
}

impl Drop for Grouped {
    fn drop(&mut self) {
        self.program = None;
        let _ = std::fs::remove_dir(&self.directory);
    }
}

/// A daemon that watches `hot-and-cold`, with these keys of `[compressed]`.
fn config(compressed: &str) -> String {
    format!(
        "epoch = \"500ms\"\n[memory]\ntiers = \"compressed\"\n[compressed]\n{compressed}\n\
         [processes]\nprograms = [\"hot-and-cold\"]\nfilter = \"off\"\n[sources]\nbudget = \"50%\"\ncache = \"0B\"\n\
         [serve]\nmetrics = \"\"\n"
    )
}

/// One that pages nothing out for the sake of its own budget.
const KEEPS_ALL: &str = "keep = \"100%\"";

/// Leaves a sixteenth of a limit free, as docs/page-out.md promises.
const fn with_room(limit: u64) -> u64 {
    limit / 16 * 15
}

fn cold_units_leave_before_the_kernel_throttles_a_group() {
    cold_units_leave_below("memory.high", "high");
}

fn cold_units_leave_before_a_group_is_full() {
    cold_units_leave_below("memory.max", "max");
}

/// The limit in this file is lowered again and again, and the kernel never has this event.
fn cold_units_leave_below(file: &str, event: &str) {
    let compressed = Compressed::make();
    let group = Grouped::start("near");
    let mut daemon = Daemon::with(&config(KEEPS_ALL));
    daemon.wait("samples of the program", |status| {
        let sources = status["sources"].as_array().into_iter().flatten();
        let usable = sources.filter_map(|source| source["usable"].as_u64());
        usable.sum::<u64>() >= 100 && status["epochs"].as_u64() >= Some(4)
    });
    let mut limit = 0;
    for _ in 0..ROUNDS {
        limit = group.limit(file);
        daemon.wait("room in the group", |_| {
            group.bytes("memory.current") <= with_room(limit)
        });
    }
    daemon.wait("moves in the status", |status| {
        status["paged"]["left_bytes"].as_u64() > Some(6 * MIB)
    });
    assert_eq!(group.events(event), 0, "the kernel has reclaimed");
    // The coldest units leave: of a hot array that leaves, each page comes back at its next access.
    let status = daemon.wait("the hot array in memory", |_| group.has_hot_array());
    let returned = status["paged"]["returned_bytes"].as_u64();
    assert!(returned < Some(ONE_MISTAKE), "{status}");
    daemon.stop();
    group.lift(file, limit);
    group.end();
    compressed.remove();
}

fn the_kernel_reclaims_what_may_not_be_paged_out() {
    let compressed = Compressed::make();
    let group = Grouped::start("near");
    // The daemon is started without the right to page out memory of others.
    remove_capability_from_bounding_set(CapabilitySet::SYS_NICE).expect("of root");
    let limit = group.limit("memory.high");
    let mut daemon = Daemon::with(&config(KEEPS_ALL));
    let status = daemon.wait("room in the group", |status| {
        status["paged"]["reclaimed_bytes"].as_u64() > Some(0)
            && group.bytes("memory.current") <= with_room(limit)
    });
    assert_eq!(status["paged"]["left_bytes"], 0, "{status}");
    assert_eq!(group.events("high"), 0, "the kernel had to reclaim");
    daemon.stop();
    group.lift("memory.high", limit);
    group.end();
    compressed.remove();
}

fn a_group_keeps_its_floor_and_keeps_to_its_cap() {
    const CAP: u64 = 16 * MIB;
    /// The kernel's own memory for the program, and mappings that are too small to be moved.
    const OTHER: u64 = 2 * MIB;
    let compressed = Compressed::make();
    let kept = Grouped::start("kept");
    let capped = Grouped::start("capped");
    let without = config("slowdown = \"50%\"");
    let limits = "[groups.\"/kept\"]\nfloor = \"64MiB\"\n[groups.\"/capped\"]\ncap = \"16MiB\"\n";
    let mut daemon = Daemon::with(&format!("{without}{limits}"));
    daemon.wait("a group within its cap, with its hot memory", |_| {
        assert_eq!(
            kept.bytes("memory.swap.current"),
            0,
            "it is below its floor"
        );
        capped.bytes("memory.current") <= CAP + OTHER && capped.has_hot_array()
    });
    // Only the floor keeps it there.
    daemon.reload(&without);
    daemon.wait("page-out of what no floor keeps", |_| {
        kept.bytes("memory.swap.current") >= 4 * MIB && kept.has_hot_array()
    });
    daemon.stop();
    kept.end();
    capped.end();
    compressed.remove();
}
