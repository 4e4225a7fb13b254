//! Tests that the preloaded library places no more in a tier of nodes than its capacity, over all processes of a session. The
//! machine needs one node only: both tiers are on it, and a chunk's memory policy says in which it was placed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use isotherm_abi::capacity::{FILE_BYTES, FILE_NAME, SLOTS, first_bytes};
use isotherm_abi::config::{ConfigHeader, NODE_WORDS, RuntimeMode, TierRecord};
use isotherm_abi::env;
use zerocopy::IntoBytes;

/// `MPOL_PREFERRED`, the policy of the fast tier here.
const FAST: u32 = 1;
/// `MPOL_BIND`, the policy of the slow tier.
const SLOW: u32 = 2;
/// MiB of the chunk that the heap of each process begins with: all data is to be fast.
const HEAP: u64 = 2;

/// The library under test, built beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let library = test.with_file_name("libisotherm.so");
    assert!(library.exists(), "{} was not built", library.display());
    library
}

/// Builds the program, one file a test: tests run at the same time.
fn build(test: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/limited.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("limited-{test}"));
    let built = Command::new("cc")
        .args(["-O1", "-Wall", "-o"])
        .args([&program, &source])
        .output()
        .expect("a C compiler");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    program
}

/// A session with two tiers on node 0, of which the fast one has a capacity, and the program to run.
struct Session {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Session {
    fn new(test: &str, fast_mib: u64) -> Self {
        Self::of(RuntimeMode::Guided, test, fast_mib)
    }

    fn of(mode: RuntimeMode, test: &str, fast_mib: u64) -> Self {
        // Where the tools make it: a session file on a disk takes milliseconds.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let directory = directory.expect("a directory");
        let mut nodes = [0; NODE_WORDS];
        nodes[0] = 1;
        let tier = |policy, capacity_bytes| TierRecord {
            kind: 0,
            policy,
            capacity_bytes,
            nodes,
        };
        let tiers = [tier(FAST, fast_mib << 20), tier(SLOW, 1 << 40)];
        let mut header = ConfigHeader::new(mode);
        header.tier_count = 2;
        header.file_bytes += size_of_val(&tiers) as u64;
        header.entries_offset = header.file_bytes;
        header.callers_offset = header.file_bytes;
        let mut configuration = header.as_bytes().to_vec();
        configuration.extend_from_slice(tiers.as_bytes());
        std::fs::write(directory.path().join("configuration"), configuration).expect("room");
        let mut capacity = vec![0; FILE_BYTES];
        capacity[..first_bytes().len()].copy_from_slice(&first_bytes());
        std::fs::write(directory.path().join(FILE_NAME), capacity).expect("room");
        Self {
            directory,
            program: build(test),
        }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words.split(' '))
            .env("LD_PRELOAD", library())
            .env(env::CONFIG, self.directory.path().join("configuration"))
            .env(env::SESSION, self.directory.path());
        command
    }

    /// The lines that a process prints.
    fn prints(&self, words: &str) -> Vec<String> {
        let output = self.command(words).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.is_empty(), "{words}: {said}");
        let printed = String::from_utf8_lossy(&output.stdout);
        printed.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Starts a process that prints one line, and waits.
    fn start(&self, words: &str) -> (Running, Vec<String>) {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let lines = output.lines().map(|line| line.expect("text"));
        let lines = lines.take_while(|line| line != "waits");
        let lines = lines.map(|line| line.trim().to_owned()).collect();
        let input = child.stdin.take();
        (Running { child, input }, lines)
    }
}

/// A process that waits.
struct Running {
    child: Child,
    input: Option<ChildStdin>,
}

impl Running {
    /// Lets it go on, and waits until it has ended.
    fn end(mut self) {
        if let Some(mut input) = self.input.take() {
            input.write_all(b"\n").expect("it reads");
        }
        self.child.wait().expect("it ends");
    }
}

fn placed(fast: u32, slow: u32) -> String {
    let part = |mode, mib| match mib {
        0 => None,
        mib => Some(format!("{mode}={mib}")),
    };
    let parts: Vec<_> = [part(FAST, fast), part(SLOW, slow)]
        .into_iter()
        .flatten()
        .collect();
    parts.join(" ")
}

#[test]
fn what_has_no_room_spills_and_what_is_given_back_is_used_again() {
    let session = Session::new("spill", 16 + HEAP);
    let lines = session.prints("map:10 print map:10 print unmap print map:8 print");
    assert_eq!(lines[0], placed(10, 0));
    assert_eq!(lines[1], placed(16, 4));
    assert_eq!(lines[2], placed(6, 4));
    assert_eq!(lines[3], placed(14, 4));
}

#[test]
fn two_processes_of_a_session_share_the_limit() {
    let session = Session::new("share", 16 + 2 * HEAP);
    let (first, lines) = session.start("map:10 print wait");
    assert_eq!(lines, [placed(10, 0)]);
    assert_eq!(session.prints("map:10 print"), [placed(6, 4)]);
    first.end();
    assert_eq!(session.prints("map:20 print"), [placed(18, 2)]);
}

#[test]
fn the_share_of_a_killed_process_is_given_back() {
    let session = Session::new("kill", 16 + HEAP);
    assert_eq!(session.prints("map:16 print die"), [placed(16, 0)]);
    assert_eq!(session.prints("map:16 print"), [placed(16, 0)]);
}

#[test]
fn an_exec_gives_back_what_the_former_image_had() {
    let session = Session::new("exec", 16 + HEAP);
    let lines = session.prints("map:16 print exec map:16 print");
    assert_eq!(lines, [placed(16, 0), placed(16, 0)]);
}

/// The child's inherited array is its parent's share; what it maps itself is its own, and goes with it.
#[test]
fn a_forked_child_begins_with_a_share_of_nothing() {
    let session = Session::new("fork", 16 + HEAP);
    let lines = session.prints("map:10 fork map:10 unmap map:2 print end map:8 print");
    // The child unmapped the inherited array, which gave nothing back.
    assert_eq!(lines, [placed(6, 6), placed(16, 2)]);
}

#[test]
fn freed_heap_gives_its_room_to_other_data_when_that_is_short_of_it() {
    let session = Session::new("heap", 16 + HEAP);
    let lines = session.prints("malloc:14 print free map:14 print malloc:10 print");
    // The heap uses its chunks again, which are slow now.
    let expected = [placed(14, 0), placed(14, 0), placed(14, 10)];
    assert_eq!(lines, expected);
}

#[test]
fn more_processes_than_there_are_slots_come_one_after_the_other() {
    let session = Session::new("many", 64 + HEAP);
    let children = "fork map:2 end ".repeat(SLOTS + 10);
    let lines = session.prints(&format!("{children}fork map:2 print end map:62 print"));
    assert_eq!(lines, [placed(2, 0), placed(62, 0)]);
}

/// Four instances of the allocator begin with a chunk each, of which one counts.
#[test]
fn an_online_run_has_the_limit_for_its_data() {
    let session = Session::of(RuntimeMode::Online, "online", 8);
    let lines = session.prints("malloc:24 print");
    assert_eq!(lines, [placed(6, 18)]);
    let lines = session.prints("map:24 print");
    assert_eq!(lines, [placed(6, 18)]);
}

/// jemalloc takes 28 MiB for 24 and a page.
#[test]
fn what_the_allocator_rounds_up_is_left_to_others() {
    let session = Session::new("rounded", 28 + HEAP);
    let lines = session.prints("malloc:24 map:4 print");
    assert_eq!(lines, [placed(28, 0)]);
}

#[test]
fn a_session_without_a_capacity_file_runs_without_isotherm() {
    let session = Session::new("without", 16 + HEAP);
    std::fs::remove_file(session.directory.path().join(FILE_NAME)).expect("it is there");
    let output = session.command("map:10 print").output().expect("it starts");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0=10");
}
