//! `--fast` is a limit on real nodes: no more than that is on the fast node, over all processes of a run; static data too.

use std::collections::BTreeMap;
use std::process::Command;

use crate::{GuestTest, on};

const TWO: &[&str] = &["two-nodes"];

pub(crate) const TESTS: &[GuestTest] = &[
    on!(TWO, a_guided_run_places_no_more_than_the_limit),
    on!(TWO, processes_of_a_run_share_the_limit),
    on!(TWO, compare_limits_first_touch_and_not_the_bounds),
    on!(TWO, parts_of_an_array_are_on_the_nodes_that_the_plan_says),
    on!(TWO, a_part_of_an_array_has_no_more_than_the_limit),
    on!(TWO, static_arrays_are_on_the_nodes_that_the_plan_says),
    on!(TWO, all_static_data_goes_to_one_tier_up_to_the_limit),
];

/// Pages of a MiB.
const MIB: usize = (1 << 20) / 4096;
/// Pages of the arrays of `hot-and-cold` on the heap. It has 8 MiB of static arrays as well, which are placed first.
const COLD: usize = 24 * MIB;
const HOT: usize = 4 * MIB;

/// Runs a command, which must succeed: what it prints.
fn prints(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{said}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn isotherm(arguments: &[&str]) -> String {
    prints(Command::new("isotherm").arg("--quiet").args(arguments))
}

/// Records the program, and plans all its data into this much fast memory.
fn plan(fast: &str) {
    let record = [
        "record",
        "--force",
        "--cache",
        "0B",
        "-o",
        "/tmp/l.iso",
        "--",
    ];
    isotherm(&[&record[..], &["hot-and-cold", "20"]].concat());
    let plan = [
        "plan",
        "/tmp/l.iso",
        "-o",
        "/tmp/l.plan",
        "--policy",
        "all-fast",
    ];
    isotherm(&[&plan[..], &["--fast", fast]].concat());
}

/// Pages of an array by node, of each line about it.
pub(crate) fn pages(printed: &str, array: &str) -> Vec<BTreeMap<u32, usize>> {
    let of_line = |line: &str| {
        let words = line.split_whitespace().skip(1);
        let entries = words.map(|word| {
            let (node, pages) = word
                .strip_prefix('N')
                .and_then(|word| word.split_once('='))?;
            Some((node.parse().ok()?, pages.parse().ok()?))
        });
        let pages: Option<BTreeMap<u32, usize>> = entries.collect();
        pages.unwrap_or_else(|| panic!("{line}"))
    };
    let lines = printed.lines();
    lines
        .filter(|line| line.split(' ').next() == Some(array))
        .map(of_line)
        .collect()
}

pub(crate) fn on_fast(pages: &BTreeMap<u32, usize>) -> usize {
    pages.get(&0).copied().unwrap_or(0)
}

/// The cold array is made first, and takes what there is.
fn a_guided_run_places_no_more_than_the_limit() {
    plan("24MiB");
    let run = ["run", "--plan", "/tmp/l.plan", "--summary", "/tmp/l.json"];
    let printed = isotherm(&[&run[..], &["--", "hot-and-cold", "1"]].concat());
    let (cold, hot) = (&pages(&printed, "cold")[0], &pages(&printed, "hot")[0]);
    let fast = on_fast(cold) + on_fast(hot);
    // The heap's own chunks take a little of it.
    assert!((10 * MIB..=16 * MIB).contains(&fast), "{printed}");
    assert_eq!(cold.values().sum::<usize>(), COLD, "{printed}");
    assert_eq!(hot.values().sum::<usize>(), HOT, "{printed}");
    assert!(printed.contains("contents whole"), "{printed}");
    let summary = std::fs::read("/tmp/l.json").expect("a summary");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    let counters = &summary["runtime"]["counters"];
    let spilled = counters["spilled_first_touches"]
        .as_u64()
        .expect("a number");
    assert!(spilled >= (COLD + HOT - 16 * MIB) as u64, "{counters}");
}

/// A child makes an array of its own while its parent still has one.
fn processes_of_a_run_share_the_limit() {
    plan("48MiB");
    let run = [
        "run",
        "--plan",
        "/tmp/l.plan",
        "--",
        "hot-and-cold",
        "1",
        "0",
        "1",
        "t",
    ];
    let printed = isotherm(&run);
    let fast = |array| on_fast(&pages(&printed, array)[0]);
    assert_eq!(fast("cold"), COLD, "{printed}");
    assert!(fast("cold-of-child") <= 40 * MIB - COLD, "{printed}");
    assert!(fast("cold-of-child") > 0, "{printed}");
}

/// All fast has no limit but the node's.
fn compare_limits_first_touch_and_not_the_bounds() {
    plan("24MiB");
    let _ = std::fs::remove_file("/tmp/all");
    let program = ["hot-and-cold", "1", "0", "1", "a"];
    let compare = ["compare", "--rounds", "1", "/tmp/l.plan", "--"];
    isotherm(&[&compare[..], &program].concat());
    let printed = std::fs::read_to_string("/tmp/all").expect("its output");
    let fast: Vec<usize> = pages(&printed, "cold").iter().map(on_fast).collect();
    let [guided, slow, first_touch, all] = fast[..] else {
        panic!("{printed}");
    };
    assert!(guided <= 16 * MIB, "{printed}");
    assert_eq!(slow, 0, "{printed}");
    assert!((8 * MIB..=16 * MIB).contains(&first_touch), "{printed}");
    assert_eq!(all, COLD, "{printed}");
}

/// Pages of a part of the cold array that is to be fast.
const PART: usize = 8 * MIB;

/// As [`plan`], but of the cold array only the part from 4 to 12 MiB is to be fast.
fn plan_part(fast: &str) {
    plan(fast);
    let before = std::fs::read_to_string("/tmp/l.plan").expect("a plan");
    let mut part = None;
    let mut lines: Vec<String> = Vec::new();
    for line in before.lines() {
        let site = line
            .strip_prefix("site ")
            .filter(|_| line.contains("make_cold"));
        match site.and_then(|rest| rest.split_once(" fast ")) {
            Some((id, rest)) => {
                lines.push(format!("site {id} slow {rest}"));
                part = Some(format!(
                    "part {id} fast from 4MiB to 12MiB value 0 weight 8MiB"
                ));
            }
            None => lines.push(line.to_owned()),
        }
    }
    lines.push(part.unwrap_or_else(|| panic!("no cold array in\n{before}")));
    lines.push(String::new());
    std::fs::write("/tmp/l.plan", lines.join("\n")).expect("a plan");
}

/// Runs the program by the plan: what it prints.
fn run_planned() -> String {
    let printed = isotherm(&["run", "--plan", "/tmp/l.plan", "--", "hot-and-cold", "1"]);
    assert!(printed.contains("contents whole"), "{printed}");
    printed
}

fn parts_of_an_array_are_on_the_nodes_that_the_plan_says() {
    plan_part("64MiB");
    let printed = run_planned();
    let expected = BTreeMap::from([(0, PART), (1, COLD - PART)]);
    assert_eq!(pages(&printed, "cold"), [expected], "{printed}");
    assert_eq!(pages(&printed, "hot"), [BTreeMap::from([(0, HOT)])]);
}

/// The program's static arrays take 8 MiB of it, and the heap a chunk.
fn a_part_of_an_array_has_no_more_than_the_limit() {
    plan_part("14MiB");
    let printed = run_planned();
    let cold = on_fast(&pages(&printed, "cold")[0]);
    assert!((1..=6 * MIB).contains(&cold), "{printed}");
}

/// Pages of the arrays of `static-arrays`.
const STATIC_HOT: usize = 4 * MIB;
const STATIC_COLD: usize = 16 * MIB;

/// Records the program with static arrays, and plans it with fast memory for the hot one.
fn plan_static() {
    let record = [
        "record",
        "--force",
        "--cache",
        "0B",
        "-o",
        "/tmp/s.iso",
        "--",
    ];
    isotherm(&[&record[..], &["static-arrays", "20"]].concat());
    isotherm(&["plan", "/tmp/s.iso", "-o", "/tmp/s.plan", "--fast", "8MiB"]);
    let plan = std::fs::read_to_string("/tmp/s.plan").expect("a plan");
    assert!(plan.contains("# data hot (static-arrays)"), "{plan}");
}

fn run_static(flags: &[&str]) -> String {
    let run = ["run", "--plan", "/tmp/s.plan"];
    isotherm(&[&run[..], flags, &["--", "static-arrays", "1"]].concat())
}

fn static_arrays_are_on_the_nodes_that_the_plan_says() {
    plan_static();
    let printed = run_static(&[]);
    let expected = |node, pages| vec![BTreeMap::from([(node, pages)])];
    assert_eq!(pages(&printed, "hot"), expected(0, STATIC_HOT), "{printed}");
    assert_eq!(
        pages(&printed, "cold"),
        expected(1, STATIC_COLD),
        "{printed}"
    );
}

fn all_static_data_goes_to_one_tier_up_to_the_limit() {
    plan_static();
    let slow = run_static(&["--static", "slow"]);
    for array in ["hot", "cold"] {
        assert_eq!(on_fast(&pages(&slow, array)[0]), 0, "{slow}");
    }
    let fast = run_static(&["--static", "fast"]);
    let sum: usize = ["hot", "cold"]
        .map(|array| on_fast(&pages(&fast, array)[0]))
        .iter()
        .sum();
    // Libraries have a little static data as well.
    assert!((3 * MIB..=8 * MIB).contains(&sum), "{fast}");
}
