//! `include/isotherm.h` on real nodes: the objects of a program are on the nodes that its optimizations return, and data that stays has
//! its reason.

use crate::kernel::version;
use crate::limit::{isotherm, on_fast, pages};
use crate::{GuestTest, on};

pub(crate) const TESTS: &[GuestTest] = &[
    on!(
        &["two-nodes"],
        an_optimization_puts_named_objects_on_the_fast_node
    ),
    on!(
        &["two-nodes"],
        staged_copy_puts_named_objects_on_the_fast_node
    ),
];

/// Pages of a MiB.
const MIB: usize = (1 << 20) / 4096;
/// Pages of the program's data, and of the fast memory that it may use.
const HOT: usize = 4 * MIB;
const INDEX: usize = MIB;
const STACK: usize = 8;
const FAST: usize = 8 * MIB;

/// A number of the result of an optimization, in pages.
fn returned(printed: &str, step: &str, name: &str) -> usize {
    let mut lines = printed.lines();
    let line = lines.find_map(|line| line.strip_prefix(step)?.strip_prefix(' '));
    let line = line.unwrap_or_else(|| panic!("no {step} in\n{printed}"));
    assert!(line.ends_with(" done"), "{step} {line}");
    let mut words = line.split(' ').filter_map(|word| word.split_once('='));
    let number = words.find(|(word, _)| *word == name);
    let number = number.and_then(|(_, number)| number.parse().ok());
    number.unwrap_or_else(|| panic!("no {name} of {step} in\n{printed}"))
}

fn an_optimization_puts_named_objects_on_the_fast_node() {
    let printed = run(&[]);
    let pages = |step, name| returned(&printed, step, name);
    // The kernel moves no page that a child shares, and the program learns why it stays.
    assert_eq!(on_fast_node(&printed, "hot-shared"), 0, "{printed}");
    assert_eq!(pages("shared", "promoted"), 0, "{printed}");
    assert!(pages("shared", "shared") >= HOT * 3 / 4, "{printed}");
    assert!(pages("profiled", "promoted") >= HOT * 3 / 4, "{printed}");
    // A part of the cold object made the room.
    assert!(pages("profiled", "demoted") > 0, "{printed}");
}

fn staged_copy_puts_named_objects_on_the_fast_node() {
    let printed = run(&["--mover", "staged"]);
    // A copy of a page that a child shares is the program's own. Without staged copy the kernel moves the pages.
    if version() >= (6, 8) {
        let moved = on_fast_node(&printed, "hot-shared");
        assert!(moved >= HOT * 3 / 4, "{printed}");
        assert!(returned(&printed, "shared", "demoted") > 0, "{printed}");
    }
}

fn on_fast_node(printed: &str, array: &str) -> usize {
    on_fast(&pages(printed, array)[0])
}

/// Runs the program, whatever moves its pages: what it prints.
fn run(mover: &[&str]) -> String {
    let run = ["run", "--fast", "8MiB", "--cache", "0B"];
    let printed = isotherm(&[&run[..], mover, &["--", "named-objects"]].concat());
    let fast = |array: &str| on_fast_node(&printed, array);
    let pages = |step, name| returned(&printed, step, name);
    assert_eq!(fast("hot-at-first"), 0, "{printed}");

    assert!(fast("hot") >= HOT * 3 / 4, "{printed}");
    assert_eq!(pages("profiled", "shared"), 0, "{printed}");
    // Most of the cold object.
    assert!(pages("profiled", "not-hot") >= 12 * MIB, "{printed}");
    assert!(pages("profiled", "capacity") <= FAST, "{printed}");

    // A limit above the run's is bounded by it; hints need no samples, but pages.
    assert!(printed.contains("hinted 0 0 0 0\n"), "{printed}");
    assert!(printed.contains("static 0\n"), "{printed}");
    assert_eq!((fast("index"), fast("table")), (INDEX, INDEX), "{printed}");
    let capacity = pages("by-hints", "capacity");
    assert!((HOT..=FAST).contains(&capacity), "{printed}");
    assert_eq!(pages("by-hints", "not-touched"), INDEX, "{printed}");
    // The array on the stack begins and ends within a page.
    let unmovable = pages("by-hints", "not-movable");
    assert!((STACK..=STACK + 1).contains(&unmovable), "{printed}");

    assert_eq!(pages("none-fast", "capacity"), 0, "{printed}");
    assert_eq!(pages("none-fast", "promoted"), 0, "{printed}");
    for array in [
        "hot-at-last",
        "cold-at-last",
        "index-at-last",
        "table-at-last",
    ] {
        assert_eq!(fast(array), 0, "{printed}");
    }
    printed
}
