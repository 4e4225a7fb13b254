//! Compressed memory: a guest of its own kernel can always have it, which a machine with containers may not.

use std::io::Read;
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
    on!(TWO, an_area_without_free_pages_is_full_once),
    on!(TWO, a_device_at_its_limit_is_full_once),
    on!(
        TWO,
        swap_that_is_removed_in_the_middle_leaves_contents_whole
    ),
];

/// Started by [`incompressible_pages_leave_and_come_back_whole`].
pub(crate) const RANDOM_MEMORY: &str = "random-memory";
/// Started by [`an_area_without_free_pages_is_full_once`].
pub(crate) const COLD_MEMORY: &str = "cold-memory";

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

/// Compressed memory for one test; at its end nothing of it may stay. A test that fails leaves none to the next one in the guest.
pub(crate) struct Compressed {
    before: String,
}

impl Compressed {
    pub(crate) fn make() -> Self {
        Self::of("256MiB")
    }

    /// Of this size, before compression.
    fn of(size: &str) -> Self {
        load_zram();
        let before = text(SWAPS);
        isotherm(&["tiers", "--make-compressed", size]);
        Self { before }
    }

    pub(crate) fn remove(self) {
        isotherm(&["tiers", "--remove-compressed"]);
        self.assert_removed();
    }

    fn assert_removed(&self) {
        assert_eq!(text(SWAPS), self.before);
        assert_eq!(text(DISK).trim(), "0");
    }
}

impl Drop for Compressed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = Command::new("isotherm")
                .args(["tiers", "--remove-compressed"])
                .status();
        }
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
    assert_chosen_by_kernel("/tmp/f.json");
    compressed.remove();
}

/// Where groups of version 2 control memory and can be asked to reclaim (Linux 5.19): the kernel chose what left, and the run's group is gone.
fn assert_chosen_by_kernel(path: &str) {
    let groups = Path::new("/sys/fs/cgroup");
    let controllers = std::fs::read_to_string(groups.join("cgroup.controllers"));
    if controllers.is_ok_and(|all| all.split_whitespace().any(|name| name == "memory")) {
        let summary: Value = serde_json::from_str(&text(path)).expect("JSON");
        let chosen = summary["paged"]["kernel_reclaimed_bytes"].as_u64();
        assert!(chosen > Some(1 << 20), "{chosen:?} of {summary}");
        let control = text("/sys/fs/cgroup/cgroup.subtree_control");
        let entries = std::fs::read_dir(groups).expect("listed").flatten();
        let names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let is_left = names.iter().any(|name| name.starts_with("isotherm-run-"));
        assert!(!is_left, "{names:?} {control}");
    }
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

/// A run of a program that continues until its input ends.
struct LongRun(Child);

impl LongRun {
    /// The file of its messages.
    const SAID: &str = "/tmp/long.err";
    const SUMMARY: &str = "/tmp/long.json";

    fn start(program: &[&str]) -> Self {
        let mut run = Command::new("isotherm");
        run.arg("--quiet").args(RUN).arg(Self::SUMMARY).arg("--");
        run.args(program);
        let said = std::fs::File::create(Self::SAID).expect("a file");
        let run = run.stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(run.stderr(said).spawn().expect("it starts"))
    }

    fn wait_until(&mut self, has_happened: impl Fn() -> bool) {
        while !has_happened() {
            let ended = self.0.try_wait().expect("a child");
            assert!(ended.is_none(), "it ended early: {}", text(Self::SAID));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Of `hot-and-cold`; returns when that begins, because until then the costs are measured.
    fn of_hot_and_cold() -> Self {
        let mut run = Self::start(&["hot-and-cold", "1", "0", "0", "i"]);
        run.wait_until(|| is_running("hot-and-cold"));
        run
    }

    /// Waits for these words in its messages, and ends the program, whose contents must be whole. The words must be said once.
    fn end_after(mut self, words: &str) {
        self.wait_until(|| text(Self::SAID).contains(words));
        // Some epochs later they are not said again.
        std::thread::sleep(Duration::from_millis(500));
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().expect("it ends");
        let printed = String::from_utf8_lossy(&output.stdout);
        let said = text(Self::SAID);
        assert!(output.status.success(), "{printed}{said}");
        assert!(printed.contains("contents whole"), "{printed}");
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
}

fn swap_that_is_removed_in_the_middle_leaves_contents_whole() {
    let compressed = Compressed::make();
    let mut run = LongRun::of_hot_and_cold();
    run.wait_until(|| used() >= Some(4096));
    isotherm(&["tiers", "--remove-compressed"]);
    compressed.assert_removed();
    run.end_after("no swap any more");
    assert!(moved(LongRun::SUMMARY)[0] > 0);
    compressed.assert_removed();
}

/// KiB of pages in the first swap area.
fn used() -> Option<u64> {
    let line = text(SWAPS).lines().nth(1)?.to_owned();
    line.split_ascii_whitespace().nth(3)?.parse().ok()
}

const FULL: &str = "swap is full";

fn an_area_without_free_pages_is_full_once() {
    // Four times what the costs are measured with, and less than the program has beyond its limit.
    let compressed = Compressed::of("130MiB");
    let tests = std::env::current_exe().expect("has a path");
    let tests = tests.to_str().expect("text");
    let run = LongRun::start(&[tests, stand::IN_GUEST, COLD_MEMORY]);
    run.end_after(FULL);
    compressed.remove();
}

/// 256 MiB that are not used until the input ends. Each page has one value, so that it takes no memory where it is compressed.
pub(crate) fn cold_memory() {
    const PAGE_WORDS: usize = 512;
    let mut words = vec![0; (256 << 20) / size_of::<usize>()];
    for (at, page) in words.chunks_mut(PAGE_WORDS).enumerate() {
        page.fill(at);
    }
    std::io::stdin()
        .read_to_string(&mut String::new())
        .expect("reads");
    let mut pages = words.chunks(PAGE_WORDS).enumerate();
    let is_whole = pages.all(|(at, page)| page.iter().all(|word| *word == at));
    println!("contents {}", if is_whole { "whole" } else { "damaged" });
}

/// A page that the device refuses stays in memory, and counts as out by the page table.
fn a_device_at_its_limit_is_full_once() {
    let compressed = Compressed::make();
    let run = LongRun::of_hot_and_cold();
    let device = Path::new(DISK).parent().expect("a directory");
    std::fs::write(device.join("mem_limit"), (4 << 20).to_string()).expect("root may");
    run.end_after(FULL);
    let counts = text(device.join("io_stat").to_str().expect("text"));
    let refused = counts.split_ascii_whitespace().nth(1);
    let refused: u64 = refused.expect("counted").parse().expect("a number");
    assert!(refused < 64, "{refused} pages were refused");
    compressed.remove();
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
