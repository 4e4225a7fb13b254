//! Isotherm's own commands on real nodes.

use std::collections::BTreeMap;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kernel::{MempolicyMode, join_free_memory, version};
use crate::nodes::described;
use crate::{EVERYWHERE, GuestTest, on};

const TWO: &[&str] = &["two-nodes"];
const ROOMY: &[&str] = &["two-nodes", "three-tiers", "no-hmat"];
const HMAT: &[&str] = &["two-nodes", "three-tiers"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(EVERYWHERE, tiers_are_the_expected_ones),
    on!(HMAT, tiers_have_the_firmware_latencies),
    on!(TWO, doctor_names_both_tiers_with_their_latencies),
    on!(TWO, a_recorded_program_prints_what_it_prints_alone),
    on!(ROOMY, a_planned_run_places_hot_and_cold_data_on_their_nodes),
    on!(
        &["full-fast-node"],
        a_planned_run_spills_what_the_fast_node_has_no_room_for
    ),
    on!(TWO, an_online_run_exchanges_hot_and_cold_data),
    on!(
        TWO,
        an_online_run_moves_by_staged_copy_while_the_program_forks
    ),
    on!(TWO, an_interrupted_run_gives_memory_back_where_it_was),
    on!(TWO, a_run_that_is_optimized_once_moves_its_hot_data),
    on!(TWO, a_run_is_optimized_once_by_staged_copy),
    on!(TWO, an_optimization_keeps_huge_pages),
    on!(TWO, an_optimization_by_staged_copy_keeps_huge_pages),
];

/// Pages of the arrays of `hot-and-cold`.
const COLD_PAGES: usize = (24 << 20) / 4096;
const HOT_PAGES: usize = (4 << 20) / 4096;
/// Fast memory that holds the hot array and not the cold one.
const FAST: &str = "8MiB";
/// Millions of accesses: enough for a thousand samples, and for a dozen epochs of 250 ms.
const MANY: &str = "20";
/// Measured by the guest's clock, which runs on while a busy host keeps its processors waiting.
const PATIENCE: Duration = Duration::from_secs(240);
/// Interval between two reads of a program's output.
const A_MOMENT: Duration = Duration::from_millis(500);
/// The file to which `hot-and-cold` writes its report of the arrays.
const WHERE: &str = "/tmp/where";
/// Pages of a chunk: the least part of the cold array that the limit lets onto the fast node.
const A_CHUNK: usize = 512;
/// Pages of tolerance: a partly covered first page is where its allocator's neighbour is, and a few others may
/// be in use at the moment.
const MOST_OF_HOT: usize = HOT_PAGES * 9 / 10;

fn isotherm(arguments: &[&str]) -> Output {
    let output = Command::new("isotherm")
        .args(arguments)
        .output()
        .expect("isotherm starts");
    assert!(
        output.status.success(),
        "isotherm {}: {}\n{}{}",
        arguments.join(" "),
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn tiers() -> Vec<Value> {
    let output = isotherm(&["tiers", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["emulated"], Value::Bool(false));
    json["tiers"].as_array().expect("a list of tiers").clone()
}

fn tiers_are_the_expected_ones() {
    let found: Vec<Value> = tiers().iter().map(|tier| tier["nodes"].clone()).collect();
    let expected: Vec<Value> = described()
        .expected
        .tiers
        .into_iter()
        .map(Value::from)
        .collect();
    assert_eq!(found, expected);
}

fn tiers_have_the_firmware_latencies() {
    let machine = described();
    for tier in tiers() {
        let node = tier["nodes"][0].as_u64().expect("a node");
        let reach = machine.fastest_reach(node as u32).expect("its speed");
        assert_eq!(tier["latency_ns"], Value::from(reach.latency.0), "{tier}");
    }
}

fn doctor_names_both_tiers_with_their_latencies() {
    let report = text(&isotherm(&["doctor"]).stdout);
    let line = report.lines().find(|line| line.starts_with("memory tiers"));
    let line = line.unwrap_or_else(|| panic!("no line of memory tiers:\n{report}"));
    let names = ["available", "fast", "100 ns", "slow", "300 ns"];
    assert!(names.iter().all(|name| line.contains(name)), "{line}");
}

/// The lines of `hot-and-cold` by their first word.
fn lines(output: &Output) -> BTreeMap<String, String> {
    by_first_word(&output.stdout)
}

fn by_first_word(printed: &[u8]) -> BTreeMap<String, String> {
    let printed = text(printed);
    let lines = printed.lines().filter_map(|line| line.split_once(' '));
    lines
        .map(|(name, rest)| (name.to_owned(), rest.to_owned()))
        .collect()
}

fn a_recorded_program_prints_what_it_prints_alone() {
    let words = ["hot-and-cold", MANY, "7"];
    let alone = Command::new(words[0])
        .args(&words[1..])
        .output()
        .expect("the program");
    let recorded = Command::new("isotherm")
        .args([
            "--quiet",
            "record",
            "--force",
            "--cache",
            "0B",
            "-o",
            "/tmp/a.iso",
            "--",
        ])
        .args(words)
        .output()
        .expect("isotherm starts");
    assert_eq!(
        recorded.status.code(),
        Some(7),
        "{}",
        text(&recorded.stderr)
    );
    assert_eq!(text(&recorded.stdout), text(&alone.stdout));
    let report = text(&isotherm(&["report", "--text", "/tmp/a.iso"]).stdout);
    assert!(report.contains("make_hot"), "{report}");
}

/// Records the program and plans with these flags.
fn plan(flags: &[&str]) {
    isotherm(&[
        "record",
        "--force",
        "--epoch",
        "250ms",
        "--cache",
        "0B",
        "-o",
        "/tmp/a.iso",
        "--",
        "hot-and-cold",
        MANY,
    ]);
    isotherm(&[&["plan", "/tmp/a.iso", "-o", "/tmp/a.plan"], flags].concat());
}

/// Runs the program by the plan.
fn guided() -> Output {
    join_free_memory();
    isotherm(&["run", "--plan", "/tmp/a.plan", "--", "hot-and-cold", "1"])
}

fn a_planned_run_places_hot_and_cold_data_on_their_nodes() {
    // The limit counts whole chunks: there is room for the hot array and for the static one that fills it, which is planned for
    // the fast node where a sample met it, and not for the cold one.
    plan(&["--fast", "20MiB"]);
    let lines = lines(&guided());
    assert_eq!(lines["hot"], format!("N0={HOT_PAGES}"), "{lines:?}");
    assert_eq!(lines["cold"], format!("N1={COLD_PAGES}"), "{lines:?}");
    assert_eq!(lines["contents"], "whole", "{lines:?}");
}

/// All data is planned for the fast node, which is too small for it: the arrays prefer that node and spill to
/// the other. The number of pages that the kernel still finds there is not fixed.
fn a_planned_run_spills_what_the_fast_node_has_no_room_for() {
    plan(&["--policy", "all-fast"]);
    let run = guided();
    let (lines, said) = (lines(&run), text(&run.stderr));
    let preferred = format!(
        "hot has policy {} of nodes 0x1\n",
        MempolicyMode::Preferred as u32
    );
    assert!(said.contains(&preferred), "{said}");
    assert!(lines["cold"].contains("N1="), "{lines:?}");
    assert!(!lines["cold"].contains("nowhere"), "{lines:?}");
    assert!(!lines["hot"].contains("nowhere"), "{lines:?}");
    assert_eq!(lines["contents"], "whole", "{lines:?}");
}

/// An online run of the program, which works until the test ends it: the number of accesses before something is
/// moved depends on the host. Its cold array begins on the fast node, as far as the limit has room, and the hot one
/// on the slow node.
struct OnlineRun(Child);

impl OnlineRun {
    /// With these flags and these habits of the program.
    fn start(flags: &[&str], habits: &str) -> Self {
        let _ = std::fs::remove_file(WHERE);
        let child = Command::new("isotherm")
            .args(["run", "--fast", FAST, "--epoch", "1s", "--cache", "0B"])
            .args(flags)
            .args(["--", "hot-and-cold", "0", "0", "1", habits])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        Self(child.expect("isotherm starts"))
    }

    /// Waits until at least so many pages of each array are on this node, by the program's own report.
    /// Continues after a timeout, because the output at the end has more detail.
    fn wait_for(&self, cold: (usize, u32), hot: (usize, u32)) {
        let there = |lines: &BTreeMap<String, String>| {
            [("cold", cold), ("hot", hot)]
                .iter()
                .all(|(array, (pages, node))| {
                    lines
                        .get(*array)
                        .is_some_and(|line| on_node(line, *node) >= *pages)
                })
        };
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let written = std::fs::read(WHERE).unwrap_or_default();
            if there(&by_first_word(&written)) {
                return;
            }
            std::thread::sleep(A_MOMENT);
        }
    }

    /// Waits until the cold array is on the slow node and the hot one on the fast node.
    fn wait_for_the_exchange(&self) {
        self.wait_for((COLD_PAGES, 1), (HOT_PAGES, 0));
    }

    /// Makes the program end.
    fn end(mut self) -> Output {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().expect("it ends");
        let report = text(&output.stderr);
        assert!(output.status.success(), "{:?}\n{report}", output.status);
        output
    }
}

/// Both arrays have to be moved while the program runs.
fn an_online_run_exchanges_hot_and_cold_data() {
    let run = OnlineRun::start(&[], "iw");
    run.wait_for_the_exchange();
    let run = run.end();
    let (lines, report) = (lines(&run), text(&run.stderr));
    assert!(lines["hot-at-first"].contains("N1="), "{lines:?}\n{report}");
    assert_eq!(
        lines["hot"],
        format!("N0={HOT_PAGES}"),
        "{lines:?}\n{report}"
    );
    assert_eq!(
        lines["cold"],
        format!("N1={COLD_PAGES}"),
        "{lines:?}\n{report}"
    );
    assert_eq!(lines["contents"], "whole", "{lines:?}");
}

/// The runtime's thread moves whole chunks of the cold array; the kernel moves the chunks for which the thread
/// had no time, and all of it where it is too old for staged copy.
fn an_online_run_moves_by_staged_copy_while_the_program_forks() {
    let flags = ["--mover", "staged", "--summary", "/tmp/summary.json"];
    let run = OnlineRun::start(&flags, "fiw");
    run.wait_for_the_exchange();
    let run = run.end();
    let summary = std::fs::read("/tmp/summary.json").expect("a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    let (lines, report) = (lines(&run), text(&run.stderr));
    let report = format!("{report}{}", summary["outcomes"]);
    assert_eq!(
        lines["cold"],
        format!("N1={COLD_PAGES}"),
        "{lines:?}\n{report}"
    );
    assert_eq!(
        lines["hot"],
        format!("N0={HOT_PAGES}"),
        "{lines:?}\n{report}"
    );
    assert_eq!(lines["contents"], "whole", "{lines:?}\n{report}");
    let copied = summary["runtime"]["counters"]["staged_copy_bytes"].as_u64();
    if version() < (6, 8) {
        assert!(
            report.contains("the kernel moves the pages instead"),
            "{report}"
        );
    } else {
        assert!(copied >= Some(2 << 20), "{copied:?}\n{report}");
    }
}

fn a_run_that_is_optimized_once_moves_its_hot_data() {
    optimized_once(&[], "iw");
}

fn a_run_is_optimized_once_by_staged_copy() {
    optimized_once(&["--mover", "staged"], "iw");
}

fn an_optimization_keeps_huge_pages() {
    keeps_huge_pages(&[]);
}

fn an_optimization_by_staged_copy_keeps_huge_pages() {
    keeps_huge_pages(&["--mover", "staged"]);
}

/// Arrays in huge pages are in huge pages on the other node, too.
fn keeps_huge_pages(mover: &[&str]) {
    let lines = optimized_once(mover, "iwh");
    let bytes = |name: &str| {
        let kilobytes = lines[name].split(' ').next().map(str::parse::<usize>);
        kilobytes.and_then(Result::ok).unwrap_or_default() << 10
    };
    let (before, after) = (bytes("huge-at-first"), bytes("huge"));
    assert!(
        before >= (COLD_PAGES + HOT_PAGES) * 4096,
        "without huge pages nothing is tested: {lines:?}"
    );
    assert!(after >= before, "huge pages were split: {lines:?}");
}

/// The heat of a program with these habits repeats from its beginning. Its hot array takes the place of a part of the cold one, and the
/// figures say so. Returns what the program printed.
fn optimized_once(mover: &[&str], habits: &str) -> BTreeMap<String, String> {
    let flags = [
        "--optimize-after",
        "first-iteration",
        "--summary",
        "/tmp/summary.json",
    ];
    let run = OnlineRun::start(&[&flags, mover].concat(), habits);
    run.wait_for((COLD_PAGES * 2 / 3, 1), (MOST_OF_HOT, 0));
    let run = run.end();
    let (lines, report) = (lines(&run), text(&run.stderr));
    let summary = std::fs::read("/tmp/summary.json").expect("a summary");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    let report = format!("{report}{}", summary["optimizations"]);
    assert!(lines["hot-at-first"].contains("N1="), "{lines:?}\n{report}");
    assert!(
        on_node(&lines["hot"], 0) >= MOST_OF_HOT,
        "{lines:?}\n{report}"
    );
    assert_eq!(lines["contents"], "whole", "{lines:?}\n{report}");
    let done = &summary["optimizations"][0];
    let bytes = |name: &str| done[name].as_u64().unwrap_or_default();
    assert!(
        bytes("promoted_bytes") >= MOST_OF_HOT as u64 * 4096,
        "{report}"
    );
    assert!(bytes("demoted_bytes") > 0, "{report}");
    assert!(bytes("fast_bytes") <= 9 << 20, "{report}");
    lines
}

/// Pages on a node, of a line such as `N0=1 N1=1023`.
fn on_node(line: &str, node: u32) -> usize {
    let name = format!("N{node}=");
    let mut words = line.split_whitespace();
    let count = words.find_map(|word| word.strip_prefix(&name)?.parse().ok());
    count.unwrap_or_default()
}

/// The program ignores the signal that is passed on to it, and continues.
fn an_interrupted_run_gives_memory_back_where_it_was() {
    let run = OnlineRun::start(&["--undo"], "diw");
    run.wait_for_the_exchange();
    let signal = rustix::process::Signal::TERM;
    let pid = rustix::process::Pid::from_raw(run.0.id() as i32).expect("a number above 0");
    rustix::process::kill_process(pid, signal).expect("it is ours");
    run.wait_for((A_CHUNK, 0), (MOST_OF_HOT, 1));
    let output = run.end();
    let (lines, report) = (lines(&output), text(&output.stderr));
    assert!(report.contains("moved back to where it was"), "{report}");
    let (cold, hot) = (on_node(&lines["cold"], 0), on_node(&lines["hot"], 1));
    // The limit let a part of it in.
    let at_first = on_node(&lines["cold-at-first"], 0);
    assert!(at_first >= A_CHUNK, "{lines:?}\n{report}");
    assert!(cold >= at_first * 9 / 10, "{lines:?}\n{report}");
    assert!(hot >= MOST_OF_HOT, "{lines:?}\n{report}");
    assert_eq!(lines["contents"], "whole", "{lines:?}");
}
