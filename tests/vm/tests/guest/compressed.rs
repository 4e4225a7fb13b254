//! Compressed memory: a guest of its own kernel can always have it, which a machine with containers may not.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use isotherm_vm::payload::MODULES;
use serde_json::Value;

use crate::limit::isotherm;
use crate::{GuestTest, on, skip, stand};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(TWO, compressed_memory_is_set_up_measured_and_removed),
    on!(TWO, forks_with_memory_out_find_its_contents_whole),
    on!(TWO, incompressible_pages_leave_and_come_back_whole),
    on!(
        TWO,
        swap_that_is_removed_in_the_middle_leaves_contents_whole
    ),
];

/// Started by [`incompressible_pages_leave_and_come_back_whole`].
pub(crate) const RANDOM_MEMORY: &str = "random-memory";

/// A run that keeps less than half of a program's memory whatever that costs.
const RUN: [&str; 8] = [
    "run",
    "--tiers",
    "compressed",
    "--fast",
    "40%",
    "--slowdown",
    "100%",
    "--summary",
];

const SWAPS: &str = "/proc/swaps";
const DISK: &str = "/sys/block/zram0/disksize";

/// Loads zram and what it needs, in the order of the files' names.
fn load_zram() {
    let load = format!(
        "for module in {MODULES}/*; do xzcat $module > /tmp/module.ko && insmod /tmp/module.ko; done"
    );
    let loaded = Command::new("sh").args(["-c", &load]).output();
    if !Path::new(DISK).exists() {
        skip(&format!("this kernel has no zram: {loaded:?}"));
    }
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).expect("the kernel shows it")
}

/// Compressed memory for one test; at its end nothing of it may stay.
struct Compressed {
    before: String,
}

impl Compressed {
    fn make() -> Self {
        load_zram();
        let before = text(SWAPS);
        isotherm(&["tiers", "--make-compressed", "256MiB"]);
        Self { before }
    }

    fn remove(self) {
        isotherm(&["tiers", "--remove-compressed"]);
        self.assert_removed();
    }

    fn assert_removed(&self) {
        assert_eq!(text(SWAPS), self.before);
        assert_eq!(text(DISK).trim(), "0");
    }
}

/// Bytes that left memory and that came back, by the summary of the run.
fn moved(path: &str) -> [u64; 2] {
    let summary: Value = serde_json::from_str(&text(path)).expect("JSON");
    ["left_bytes", "returned_bytes"].map(|name| summary["paged"][name].as_u64().expect("a number"))
}

fn forks_with_memory_out_find_its_contents_whole() {
    let compressed = Compressed::make();
    let program = ["/tmp/f.json", "--", "hot-and-cold", "30", "0", "0", "f"];
    let printed = isotherm(&[&RUN[..], &program].concat());
    assert!(printed.contains("contents whole"), "{printed}");
    let [left, _] = moved("/tmp/f.json");
    assert!(left >= 4 << 20, "{left} bytes left memory");
    compressed.remove();
}

fn incompressible_pages_leave_and_come_back_whole() {
    let compressed = Compressed::make();
    let program = std::env::current_exe().expect("has a path");
    let program = program.to_str().expect("text");
    let program = ["/tmp/r.json", "--", program, stand::IN_GUEST, RANDOM_MEMORY];
    isotherm(&[&RUN[..], &program].concat());
    let [left, returned] = moved("/tmp/r.json");
    assert!(
        left >= 4 << 20 && returned > 0,
        "{left} left, {returned} returned"
    );
    compressed.remove();
}

/// 32 MiB of random words, of which a sixteenth is written for a while; then all are checked.
pub(crate) fn random_memory() {
    const WORDS: usize = (32 << 20) / 8;
    const ROUNDS: u64 = 400;
    let wanted = |at: usize, round: u64| {
        let mixed = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round;
        let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 29
    };
    let mut words: Vec<u64> = (0..WORDS).map(|at| wanted(at, 0)).collect();
    for round in 0..ROUNDS {
        for (at, word) in words.iter_mut().enumerate().take(WORDS / 16) {
            assert_eq!(*word, wanted(at, round));
            *word = wanted(at, round + 1);
        }
    }
    for (at, word) in words.iter().enumerate() {
        let rounds = if at < WORDS / 16 { ROUNDS } else { 0 };
        assert_eq!(*word, wanted(at, rounds), "word {at}");
    }
}

fn swap_that_is_removed_in_the_middle_leaves_contents_whole() {
    let compressed = Compressed::make();
    let mut run = Command::new("isotherm");
    run.arg("--quiet").args(RUN).arg("/tmp/s.json");
    run.args(["--", "hot-and-cold", "1", "0", "0", "i"]);
    let mut run = run
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for_swap(&mut run);
    isotherm(&["tiers", "--remove-compressed"]);
    compressed.assert_removed();
    drop(run.stdin.take());
    let output = run.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("contents whole"), "{printed}");
    assert!(moved("/tmp/s.json")[0] > 0);
    compressed.assert_removed();
}

/// Waits until some megabytes of the program are out; what is out before is the measurement of costs.
fn wait_for_swap(run: &mut Child) {
    let used = || {
        let line = text(SWAPS).lines().nth(1)?.to_owned();
        line.split_ascii_whitespace().nth(3)?.parse::<u64>().ok()
    };
    while !(is_running("hot-and-cold") && used().unwrap_or(0) >= 4096) {
        assert!(run.try_wait().expect("a child").is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// True of a program of this name that has passed its exec.
fn is_running(name: &str) -> bool {
    let processes = std::fs::read_dir("/proc").expect("the kernel shows it");
    let mut names = processes.filter_map(|entry| {
        let name = std::fs::read_to_string(entry.ok()?.path().join("comm"));
        name.ok()
    });
    names.any(|comm| comm.trim() == name)
}

fn compressed_memory_is_set_up_measured_and_removed() {
    load_zram();
    let before = text(SWAPS);
    isotherm(&["tiers", "--make-compressed", "256MiB"]);
    assert!(text(SWAPS).contains("/dev/zram0"), "{}", text(SWAPS));
    let measured = isotherm(&["tiers", "--measure", "-o", "/tmp/z.toml", "--json"]);
    let measured: Value = serde_json::from_str(&measured).expect("JSON");
    let swap = &measured["swap"];
    assert_eq!(swap["areas"][0]["medium"], "zram", "{swap}");
    // 32 MiB of pages, of which the kernel may keep a few; half of each is zeroes.
    let costs = |name: &str| swap["costs"][name].as_u64().expect("a number");
    assert!(costs("pages") >= 7_000, "{measured}");
    let (stored, memory) = (costs("stored_bytes"), costs("memory_bytes"));
    assert!(stored >= 7_000 * 4_096, "{swap}");
    assert!((stored * 2 / 5..stored * 2 / 3).contains(&memory), "{swap}");
    isotherm(&["tiers", "--remove-compressed"]);
    assert_eq!(text(SWAPS), before);
    assert_eq!(text(DISK).trim(), "0");
}
