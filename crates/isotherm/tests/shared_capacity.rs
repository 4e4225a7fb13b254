//! Tests that programs of several runs on one emulated machine with a name have its fast tier together.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use isotherm_abi::capacity::{CapacityHeader, CapacitySlot, SLOTS_OFFSET};
use support::{built, isotherm};

const MIB: u64 = 1 << 20;
/// Fast memory of the machine.
const FAST: u64 = 16 * MIB;

/// For each letter that it reads, allocates 12 MiB and uses them for some time (`g`), or has a child that gives the last ones back and ends
/// (`f`).
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
enum { SIZE = 12 << 20 };
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static void use(volatile char *data) {
    unsigned random = 1;
    for (double end = worked() + 0.3; worked() < end;)
        for (int i = 0; i < 20000; i++) {
            random = random * 1664525u + 1013904223u;
            (void)data[random % SIZE];
        }
}
int main(void) {
    char *data = 0;
    printf("%d\n", getpid());
    fflush(stdout);
    for (int word; (word = getchar()) != EOF;) {
        if (word == 'g') {
            data = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memset(data, 1, SIZE);
            use(data);
        }
        if (word == 'f' && fork() == 0) {
            use(data);
            munmap(data, SIZE);
            _exit(0);
        }
        while (wait(0) > 0) {}
        puts("done");
        fflush(stdout);
    }
    return 0;
}
"#;

/// A run of the program.
struct Running {
    run: Child,
    words: ChildStdin,
    lines: BufReader<ChildStdout>,
    /// The program's process.
    pid: u32,
}

impl Running {
    fn start(directory: &Path, tiers: &str) -> Self {
        let mut run = Command::new(env!("CARGO_BIN_EXE_isotherm"))
            .current_dir(directory)
            .args(["run", "--tiers", tiers, "--fast", "16MiB", "--", "./app"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("isotherm starts");
        let words = run.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(run.stdout.take().expect("a pipe"));
        let pid = line(&mut lines).parse().expect("a number");
        Self {
            run,
            words,
            lines,
            pid,
        }
    }

    fn asks(&mut self, word: &str) {
        self.words.write_all(word.as_bytes()).expect("it reads");
        assert_eq!(line(&mut self.lines), "done");
    }

    fn end(self) {
        let Self { mut run, words, .. } = self;
        drop(words);
        run.wait().expect("it ends");
    }
}

fn line(lines: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).expect("text");
    line.trim().to_owned()
}

/// The file of the machine's capacity: bytes that all processes have, and those of one.
struct Ledger(PathBuf);

impl Ledger {
    fn word(content: &[u8], at: usize) -> u64 {
        u64::from_ne_bytes(*content[at..].first_chunk().expect("within the file"))
    }

    fn placed(&self) -> u64 {
        let content = std::fs::read(&self.0).expect("the machine's file");
        Self::word(&content, offset_of!(CapacityHeader, placed))
    }

    fn share(&self, pid: u32) -> u64 {
        let content = std::fs::read(&self.0).expect("the machine's file");
        let slots = content[SLOTS_OFFSET..].chunks(size_of::<CapacitySlot>());
        let of_process = slots
            .filter(|slot| Self::word(slot, 0) >> 32 == u64::from(pid))
            .map(|slot| Self::word(slot, offset_of!(CapacitySlot, placed)));
        of_process.sum()
    }
}

#[test]
fn two_runs_never_have_more_fast_memory_than_the_machine_and_what_a_killed_program_had_is_free() {
    let directory = built(PROGRAM);
    let name = format!("test-{}", std::process::id());
    let tiers = format!("emulated:{name},limit:1PiB/s");
    let probe = ["run", "--tiers", &tiers, "--fast", "16MiB", "--", "true"];
    if !isotherm(&directory, &probe).status.success() {
        return isotherm_skip::skip!("threads cannot be sampled here");
    }
    let user = rustix::process::getuid().as_raw();
    let file = format!("/dev/shm/isotherm-machines-{user}/{name}");
    let ledger = Ledger(PathBuf::from(format!("{file}.capacity")));
    let mut first = Running::start(directory.path(), &tiers);
    first.asks("g");
    let of_first = ledger.share(first.pid);
    assert!((12 * MIB..=FAST).contains(&of_first), "{of_first}");
    // The child has no part of it, and gives nothing of it back.
    first.asks("f");
    let after = ledger.share(first.pid);
    // A sample meanwhile may have found a page of its static data.
    assert!(
        (of_first..of_first + MIB).contains(&after),
        "{after}, {of_first} before"
    );
    assert!((after..=FAST).contains(&ledger.placed()));

    let mut second = Running::start(directory.path(), &tiers);
    second.asks("g");
    let of_second = ledger.share(second.pid);
    assert!(
        of_first + of_second <= FAST && ledger.placed() <= FAST,
        "{of_first} and {of_second}"
    );
    assert!(ledger.placed() > FAST - 2 * MIB, "{}", ledger.placed());

    rustix::process::kill_process(
        rustix::process::Pid::from_raw(first.pid as i32).expect("a process"),
        rustix::process::Signal::KILL,
    )
    .expect("it lives");
    first.end();
    // A process searches for others that ended at most each 0.1 s, and may have done so just before the kill.
    std::thread::sleep(Duration::from_millis(200));
    second.asks("g");
    let of_second = ledger.share(second.pid);
    assert!(
        (FAST - of_first + 2 * MIB..=FAST).contains(&of_second),
        "{of_second}, and the other had {of_first}"
    );
    assert_eq!(ledger.placed(), of_second);
    second.end();
    assert_eq!(ledger.placed(), 0);
    for end in ["capacity", "machine"] {
        std::fs::remove_file(format!("{file}.{end}")).expect("it is there");
    }
}
