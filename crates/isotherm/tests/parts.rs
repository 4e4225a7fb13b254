//! Tests arrays that are hot in one place: they are recorded, planned in parts, explained, and placed in parts on the emulated pair;
//! `tests/vm` does the same on nodes.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::process::Command;

use tempfile::TempDir;

use support::{guided, stderr, succeeds, use_small_pages};

const MIB: u64 = 1 << 20;

/// An array of 48 MiB, of which the 8 MiB from 16 MiB on are read at random; a mapping with the same shape under MAPPED; and an array
/// of which all is read under EVEN. Under LARGE it has 512 MiB, of which 192 KiB are read, 52 KiB behind MiB 217; it is read four times as
/// often there, so that each of its 48 pages has samples on a fast processor too.
const SOURCE: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef LARGE
enum { SIZE = 512, READS = 600000000 };
#else
enum { SIZE = 48, READS = 150000000 };
#endif
enum { MIB = 1 << 20, COUNT = SIZE * (MIB / 8), WORD = 8 };
#ifdef LARGE
enum { FROM = 217 * (MIB / WORD) + 13 * 4096 / WORD, HOT = 48 * 4096 / WORD };
#elif defined(EVEN)
enum { FROM = 0, HOT = COUNT };
#else
enum { FROM = 16 * MIB / WORD, HOT = 8 * MIB / WORD };
#endif
static double *make(void) {
#ifdef MAPPED
    return mmap(0, (size_t)COUNT * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#else
    return malloc((size_t)COUNT * sizeof(double));
#endif
}
int main(void) {
    double *array = make(), sum = 0;
    for (int i = 0; i < COUNT; i++) array[i] = i;
    unsigned random = 1;
    for (int i = 0; i < READS; i++) {
        random = random * 1664525u + 1013904223u;
        sum += array[FROM + (random >> 8) % HOT];
    }
    printf("%f\n", sum);
    return 0;
}
"#;

/// Sixty MiB of small objects, and then twenty of others that are written nineteen times as often. Each access waits for the one before it, so
/// that caches that hold the others alone make at most six times as many samples of the first.
const CELLS: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { CELLS = 60 << 10, HOT = 20 << 10, BYTES = 1000 };
static char *cells[CELLS], *hot[HOT];
int main(void) {
    for (int i = 0; i < CELLS; i++) memset(cells[i] = malloc(BYTES), 1, BYTES);
    for (int i = 0; i < HOT; i++) memset(hot[i] = malloc(BYTES), 1, BYTES);
    unsigned random = 1;
    for (int i = 0; i < 30000000; i++) {
        char *object = i % 20 ? hot[(random >> 8) % HOT] : cells[(random >> 10) % CELLS];
        random = random * 1664525u + 1013904223u + (unsigned char)object[(random >> 4) % BYTES]++;
    }
    printf("%d %d\n", cells[0][0], hot[0][0]);
    return 0;
}
"#;

/// A directory with the program, and its plan with 10 MiB of fast memory.
fn planned(flags: &[&str]) -> TempDir {
    planned_program(SOURCE, flags)
}

/// A directory with another program, and its plan with 10 MiB of fast memory.
fn planned_program(source: &str, flags: &[&str]) -> TempDir {
    use_small_pages();
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), source).expect("writes");
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", "-g", "-Wl,--build-id", "-o", "app", "app.c"])
        .args(flags)
        .status();
    assert!(built.expect("a C compiler").success());
    succeeds(
        &directory,
        &["record", "--cache", "0B", "-o", "app.iso", "--", "./app"],
    );
    plan(&directory, &[]);
    directory
}

fn plan(directory: &TempDir, flags: &[&str]) {
    plan_in(directory, "10MiB", flags);
}

/// Makes the plan with this much fast memory.
fn plan_in(directory: &TempDir, fast: &str, flags: &[&str]) {
    let plan = [
        "plan",
        "app.iso",
        "--tiers",
        "emulated:cxl",
        "--fast",
        fast,
        "-o",
        "app.plan",
    ];
    succeeds(directory, &[&plan, flags].concat());
}

/// First and last MiB of each part in the plan's text, and its tier.
fn parts(directory: &TempDir) -> Vec<(u64, u64, String)> {
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    let plan = isotherm_plan_text::read(&text).expect("a plan");
    let parts = plan.assignments.iter().flat_map(|site| &site.parts);
    let tier = |part: &isotherm_model::plan::PlacedPart| {
        plan.tiers.get(part.tier).expect("a tier").name.clone()
    };
    parts
        .map(|part| (part.start.0 / MIB, part.end.0.div_ceil(MIB), tier(part)))
        .collect()
}

/// The explanation of the site that is planned in parts, which counts the plan's parts: room that the hot place leaves may hold another.
fn explained(directory: &TempDir) -> String {
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    let parts = text.lines().filter_map(|line| line.strip_prefix("part "));
    let parts: Vec<&str> = parts.collect();
    let site = parts[0].split(' ').next().expect("an id");
    let output = succeeds(directory, &["explain", "app.plan", site]);
    let said = String::from_utf8(output.stdout).expect("text");
    let split = match parts.len() {
        1 => "split: a part of".to_owned(),
        several => format!("split: {several} parts of"),
    };
    assert!(said.contains(&split), "{said}");
    said
}

/// One part is the hot place. What was sampled while the array was written may fill the room that it leaves.
fn is_fast_part(directory: &TempDir) {
    let parts = parts(directory);
    assert!(parts.iter().all(|(.., tier)| tier == "fast"), "{parts:?}");
    let is_hot = |(start, end, _): &&_| (14..=16).contains(start) && (24..=26).contains(end);
    assert_eq!(parts.iter().filter(is_hot).count(), 1, "{parts:?}");
    let bytes = parts.iter().map(|(start, end, _)| end - start);
    assert!(
        bytes.sum::<u64>() <= 10 + 2 * parts.len() as u64,
        "{parts:?}"
    );
}

/// MiB in the fast and in the slow tier at the end, and samples of accesses to the slow one; `None` where threads cannot be
/// sampled.
fn placed(directory: &TempDir) -> Option<[u64; 3]> {
    let (_, summary) = guided(directory, &[]);
    let off = summary["runtime"]["runtime_off"]
        .as_array()
        .expect("a list");
    let counters = &summary["runtime"]["counters"];
    let number = |name: &str| counters[name].as_u64().expect("a counter");
    off.is_empty().then(|| {
        [
            number("fast_bytes") / MIB,
            number("slow_bytes") / MIB,
            number("slow_accesses"),
        ]
    })
}

#[test]
fn the_hot_place_of_an_array_is_fast_in_the_plan_and_in_the_run() {
    for flags in [&[][..], &["-DMAPPED"]] {
        let directory = planned(flags);
        is_fast_part(&directory);
        let Some([fast, slow, few]) = placed(&directory) else {
            return isotherm_skip::skip!("threads cannot be sampled here");
        };
        let (in_fast, in_slow) = ((7..=10).contains(&fast), (37..=41).contains(&slow));
        assert!(
            in_fast && in_slow,
            "{flags:?}: {fast} MiB fast, {slow} slow"
        );
        // The same array with its hot place in slow memory.
        let path = directory.path().join("app.plan");
        let text = std::fs::read_to_string(&path).expect("was written");
        let other: Vec<String> = text
            .lines()
            .map(|line| match line.starts_with("part ") {
                true => line.replacen(" fast ", " slow ", 1),
                false => line.to_owned(),
            })
            .collect();
        std::fs::write(&path, other.join("\n") + "\n").expect("writes");
        let [_, _, all] = placed(&directory).expect("as before");
        assert!(
            all > 4 * few + 20,
            "{flags:?}: {all} slow accesses, {few} by the plan"
        );
    }
}

#[test]
fn small_objects_that_are_allocated_first_take_the_fast_memory_that_is_left() {
    let directory = planned_program(CELLS, &[]);
    plan_in(&directory, "40MiB", &[]);
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    let plan = isotherm_plan_text::read(&text).expect("a plan");
    let leading: Vec<_> = plan
        .assignments
        .iter()
        .filter_map(|site| site.leading)
        .collect();
    let [first] = leading.as_slice() else {
        panic!("{text}");
    };
    assert!((14..=20).contains(&(first.bytes.0 / MIB)), "{text}");
    let Some([fast, slow, _]) = placed(&directory) else {
        return isotherm_skip::skip!("threads cannot be sampled here");
    };
    assert!((33..=40).contains(&fast), "{fast} MiB fast, {slow} slow");
    assert!((37..=52).contains(&slow), "{fast} MiB fast, {slow} slow");
    plan_in(&directory, "40MiB", &["--split", "never"]);
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    assert!(!text.contains("\nleading "), "{text}");
}

#[test]
fn a_hot_place_of_192_kib_in_512_mib_is_found_to_a_few_pages() {
    let directory = planned(&["-DLARGE"]);
    plan_in(&directory, "192KiB", &[]);
    let text = std::fs::read_to_string(directory.path().join("app.plan")).expect("was written");
    let plan = isotherm_plan_text::read(&text).expect("a plan");
    let start = 217 * MIB + 13 * 4096;
    let hot = start..start + 48 * 4096;
    let parts = plan.assignments.iter().flat_map(|site| &site.parts);
    let common: u64 = parts
        .map(|part| {
            part.end
                .0
                .min(hot.end)
                .saturating_sub(part.start.0.max(hot.start))
        })
        .sum();
    assert!(
        common >= 40 * 4096,
        "{common} bytes of the hot place:\n{text}"
    );
    explained(&directory);
}

#[test]
fn explain_shows_the_part_and_split_never_plans_none() {
    let directory = planned(&[]);
    let said = explained(&directory);
    assert!(said.contains("  part     fast (emulated) of 1"), "{said}");
    plan(&directory, &["--split", "never"]);
    assert_eq!(parts(&directory), []);
}

#[test]
fn an_even_array_is_cut_where_fast_memory_ends() {
    let directory = planned(&["-DEVEN"]);
    // Thermos takes the site as a whole, and lets it spill.
    plan(&directory, &["--policy", "knapsack"]);
    let parts = parts(&directory);
    // Which parts of it is as good as any: few samples of an even array are not quite even.
    let all: u64 = parts.iter().map(|(start, end, _)| end - start).sum();
    assert!((9..=12).contains(&all) && parts.len() <= 2, "{parts:?}");
}

#[test]
fn the_page_trap_gets_whole_sites_and_refuses_parts() {
    let directory = planned(&[]);
    let trap = [
        "plan",
        "app.iso",
        "--tiers",
        "emulated:tmp",
        "--fast",
        "10MiB",
        "-o",
        "tmp.plan",
    ];
    succeeds(&directory, &trap);
    let path = directory.path().join("tmp.plan");
    let text = std::fs::read_to_string(&path).expect("was written");
    assert!(!text.contains("\npart "), "{text}");
    let id = text
        .lines()
        .filter_map(|line| line.strip_prefix("site "))
        .find(|site| !site.starts_with("shared"))
        .expect("a site");
    let id = id.split(' ').next().expect("an id");
    std::fs::write(
        &path,
        format!("{text}part {id} fast from 0B to 4KiB value 0 weight 4KiB\n"),
    )
    .expect("writes");
    let output = support::isotherm(&directory, &["run", "--plan", "tmp.plan", "--", "./app"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("page trap places whole sites"),
        "{}",
        stderr(&output)
    );
}
