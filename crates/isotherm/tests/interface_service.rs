//! Tests that a run without a plan serves the requests of its program: profile, stop, optimize. The program here writes them into its
//! session file itself, as the runtime does for the functions of `include/isotherm.h`.
//!
//! `libisotherm.so` must lie beside the program (`cargo build --workspace` puts it there), and a C compiler on the `PATH`.

mod support;

use std::mem::offset_of;
use std::process::Command;

use isotherm_abi::interface::{
    InterfaceAction, InterfacePolicy, InterfaceRequest, InterfaceStatus,
};
use isotherm_abi::session::SessionHeader;
use serde_json::Value;
use tempfile::TempDir;

use support::{stderr, succeeds};

const MIB: u64 = 1 << 20;

/// An array of 32 MiB whose last 4 MiB are hot. It optimizes without a profile, with a bad kind, and with one by each policy, and prints
/// the status and the numbers of each answer.
const SOURCE: &str = r#"#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { MIB = 1 << 20, COUNT = 32 * MIB / 8, HOT = 4 * MIB / 8 };
static int file;
static double clock_of(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static void open_session(void) {
    char line[4096], name[64];
    snprintf(name, sizeof name, "/%d.0\n", getpid());
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) {
        char *path = strchr(line, '/');
        if (path && strlen(path) > strlen(name) && !strcmp(path + strlen(path) - strlen(name), name)) {
            path[strlen(path) - 1] = 0;
            file = open(path, O_RDWR);
        }
    }
    fclose(maps);
    if (file <= 0) { puts("no session"); exit(3); }
}
static uint32_t word(long at) { uint32_t w = 0; pread(file, &w, 4, AT + at); return w; }
static uint64_t number(long at) { uint64_t w = 0; pread(file, &w, 8, AT + at); return w; }
static void put(long at, uint64_t value, int bytes) { pwrite(file, &value, bytes, AT + at); }
static void request(uint32_t kind, uint32_t policy, uint64_t fast, uint64_t share) {
    uint32_t next = word(ASKED) + 1;
    put(KIND, kind, 4);
    put(POLICY, policy, 4);
    put(FAST, fast, 8);
    put(SHARE, share, 8);
    put(ASKED, next, 4);
    for (double end = clock_of(CLOCK_MONOTONIC) + 300; word(ANSWERED) != next;) {
        // At samples of its threads the emulated machine moves pages, and a thread that sleeps has none.
        if (clock_of(CLOCK_MONOTONIC) > end) { puts("no answer"); exit(4); }
    }
    printf("{\"kind\":%u,\"status\":%u,\"profiling\":%u,\"promoted\":%lu,\"placed\":%lu,\"selected\":%lu,\"samples\":%lu}\n", kind, word(STATUS),
           word(PROFILING), number(PROMOTED), number(PLACED), number(SELECTED), number(SAMPLES));
    fflush(stdout);
}
static unsigned random_state = 1;
static void work(unsigned long *hot, double seconds) {
    for (double end = clock_of(CLOCK_PROCESS_CPUTIME_ID) + seconds; clock_of(CLOCK_PROCESS_CPUTIME_ID) < end;)
        for (int i = 0; i < 200000; i++) {
            random_state = random_state * 1664525u + 1013904223u;
            hot[(random_state >> 8) % HOT]++;
        }
}
int main(void) {
    open_session();
    unsigned long *array = malloc(COUNT * sizeof *array);
    for (int i = 0; i < COUNT; i++) array[i] = 1;
    unsigned long *hot = array + COUNT - HOT;
    for (int i = 0; i < 60000 && !word(OBSERVER); i++) usleep(1000);
    printf("{\"observer\":%u,\"parent\":%d}\n", word(OBSERVER), getppid());
    request(OPTIMIZE, 0, 0, 0);
    request(77, 0, 0, 0);
    request(OPTIMIZE, 77, 0, 0);
    put(FREQUENCY, 1000, 4);
    request(START, 0, 0, 0);
    work(hot, 1);
    request(STOP, 0, 0, 0);
    work(array, 1);
    request(OPTIMIZE, 0, 8 * MIB, 0);
    request(OPTIMIZE, THERMOS, 0, 200000);
    return 0;
}
"#;

fn program() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), SOURCE).expect("writes");
    let request = |name: &str, at: usize| format!("-D{name}={at}");
    let defines = [
        request("AT", offset_of!(SessionHeader, interface)),
        request("ASKED", offset_of!(InterfaceRequest, asked)),
        request("KIND", offset_of!(InterfaceRequest, kind)),
        request("POLICY", offset_of!(InterfaceRequest, policy)),
        request("FAST", offset_of!(InterfaceRequest, fast_bytes)),
        request("FREQUENCY", offset_of!(InterfaceRequest, frequency)),
        request("SHARE", offset_of!(InterfaceRequest, share_ppm)),
        request("ANSWERED", offset_of!(InterfaceRequest, answered)),
        request("STATUS", offset_of!(InterfaceRequest, status)),
        request("PROMOTED", offset_of!(InterfaceRequest, promoted_bytes)),
        request("PLACED", offset_of!(InterfaceRequest, placed_bytes)),
        request("SELECTED", offset_of!(InterfaceRequest, selected_bytes)),
        request("SAMPLES", offset_of!(InterfaceRequest, samples)),
        request("OBSERVER", offset_of!(InterfaceRequest, observer_pid)),
        request("PROFILING", offset_of!(InterfaceRequest, profiling)),
        request("START", InterfaceAction::ProfileStart as usize),
        request("STOP", InterfaceAction::ProfileStop as usize),
        request("OPTIMIZE", InterfaceAction::Optimize as usize),
        request("THERMOS", InterfacePolicy::Thermos as usize),
    ];
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", "-w", "-o", "app", "app.c"])
        .args(defines)
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

fn number(of: &Value, name: &str) -> u64 {
    of[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} in {of}"))
}

/// Runs the program with these flags: its lines, the summary, and the messages. `None` where the machine cannot emulate.
fn served(directory: &TempDir, flags: &[&str]) -> Option<(Vec<Value>, Value, String)> {
    let run = [
        "run",
        "--tiers",
        "emulated:cxl",
        "--fast",
        "12MiB",
        "--source",
        "timer",
        "--cache",
        "0B",
        "--epoch",
        "200ms",
        "--summary",
        "run.json",
    ];
    let output = succeeds(directory, &[&run, flags, &["--", "./app"]].concat());
    let summary = std::fs::read(directory.path().join("run.json")).expect("was written");
    let summary: Value = serde_json::from_slice(&summary).expect("is JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return None;
    }
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = printed.lines().map(serde_json::from_str);
    let lines: Result<Vec<Value>, _> = lines.collect();
    let lines = lines.unwrap_or_else(|error| panic!("{error}: {printed}"));
    Some((lines, summary, stderr(&output)))
}

fn serves(flags: &[&str]) {
    let Some((lines, summary, said)) = served(&program(), flags) else {
        return;
    };
    let [observer, none, kind, policy, start, stop, atmem, thermos] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(observer["observer"], observer["parent"]);
    let status = |line: &Value| number(line, "status");
    assert_eq!(status(none), InterfaceStatus::NoSamples as u64);
    assert_eq!(status(kind), InterfaceStatus::Invalid as u64);
    assert_eq!(status(policy), InterfaceStatus::Invalid as u64);
    assert_eq!((status(start), number(start, "profiling")), (0, 1));
    assert_eq!((status(stop), number(stop, "profiling")), (0, 0));
    if number(atmem, "samples") < 100 {
        return isotherm_skip::skip!("few samples here: {atmem}");
    }
    // Only what was accessed between start and stop counts.
    assert_eq!(number(atmem, "samples"), number(thermos, "samples"));
    assert_eq!((status(atmem), status(thermos)), (0, 0));
    assert!(
        (3 * MIB..=8 * MIB).contains(&number(atmem, "selected")),
        "{atmem}"
    );
    // A fifth of 32 MiB.
    assert!(
        (3 * MIB..=7 * MIB).contains(&number(thermos, "selected")),
        "{thermos}"
    );
    let there = |line: &Value| number(line, "promoted") + number(line, "placed");
    assert!(
        there(atmem) >= 3 * MIB && there(thermos) >= 3 * MIB,
        "{lines:?}"
    );
    assert!(
        number(thermos, "placed") >= 2 * MIB,
        "the first had moved it: {lines:?}, {summary}"
    );
    let done = summary["optimizations"].as_array().expect("a list");
    assert_eq!(done.len(), 3, "{summary}");
    assert!(said.contains("at the program's request"), "{said}");
}

#[test]
fn a_run_without_a_plan_serves_its_program() {
    serves(&[]);
}

#[test]
fn a_run_that_would_optimize_later_does_so_on_request_only() {
    serves(&["--optimize-after", "3s"]);
}

/// The program makes its requests by the functions of the header: the only thread of the program begins a profile at once, and waits for
/// the moves.
const BY_FUNCTIONS: &str = r#"#include <isotherm.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
enum { MIB = 1 << 20, COUNT = 32 * MIB / 8, HOT = 4 * MIB / 8 };
int main(void) {
    int start;
    /* On a loaded machine the observer may not have found the program while the first call waits for it. */
    for (int i = 0; (start = isotherm_profile_start()) == ISOTHERM_NO_OBSERVER && i < 60000; i++) usleep(1000);
    unsigned long *array = isotherm_alloc("array", COUNT * sizeof *array), *hot = array + COUNT - HOT;
    for (int i = 0; i < COUNT; i++) array[i] = 1;
    unsigned random = 1;
    isotherm_profile_start_at(1000);
    for (clock_t end = clock() + CLOCKS_PER_SEC; clock() < end;)
        for (int i = 0; i < 200000; i++) {
            random = random * 1664525u + 1013904223u;
            hot[(random >> 8) % HOT]++;
        }
    int stop = isotherm_profile_stop();
    struct isotherm_result result = {.size = sizeof result};
    int status = isotherm_optimize(NULL, &result);
    printf("{\"start\":%d,\"stop\":%d,\"status\":%d,\"there\":%lu,\"selected\":%lu,\"samples\":%lu}\n", start, stop, status,
           result.promoted_bytes + result.placed_bytes, result.selected_bytes, result.samples);
    static const uint64_t limits[] = {UINT64_MAX, MIB, ISOTHERM_NO_FAST_BYTES};
    for (int i = 0; i < 3; i++) {
        struct isotherm_options options = {.size = sizeof options, .fast_bytes = limits[i]};
        struct isotherm_statistics now = {.size = sizeof now};
        status = isotherm_optimize(&options, &result);
        isotherm_read_statistics(&now);
        printf("{\"status\":%d,\"capacity\":%lu,\"selected\":%lu,\"demoted\":%lu,\"crowded\":%lu,\"not_hot\":%lu,\"fast\":%lu}\n", status,
               result.capacity_bytes, result.selected_bytes, result.demoted_bytes, result.stayed_bytes[ISOTHERM_STAYED_CAPACITY],
               result.stayed_bytes[ISOTHERM_STAYED_NOT_HOT], now.fast_bytes);
    }
    isotherm_free(array);
    return 0;
}
"#;

/// A directory with the program of this source, which uses the header.
fn program_with_header(source: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("app.c"), source).expect("writes");
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let built = Command::new("cc")
        .current_dir(directory.path())
        .args(["-O1", include, "-o", "app", "app.c"])
        .status();
    assert!(built.expect("a C compiler").success());
    directory
}

/// A static array that is hot, and touched first when an allocation has taken the fast memory.
const STATIC_ARRAY: &str = r#"#include <isotherm.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
enum { MIB = 1 << 20, COUNT = 4 * MIB / 8 };
static unsigned long table[COUNT];
static unsigned random_state = 1;
static void work(double seconds) {
    for (clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC); clock() < end;)
        for (int i = 0; i < 200000; i++) {
            random_state = random_state * 1664525u + 1013904223u;
            table[(random_state >> 8) % COUNT]++;
        }
}
static void optimize(uint64_t fast_bytes) {
    struct isotherm_options options = {.size = sizeof options, .fast_bytes = fast_bytes};
    struct isotherm_result result = {.size = sizeof result};
    int status = isotherm_optimize(&options, &result);
    printf("{\"status\":%d,\"promoted\":%lu,\"placed\":%lu,\"selected\":%lu,\"demoted\":%lu,\"samples\":%lu}\n", status,
           result.promoted_bytes, result.placed_bytes, result.selected_bytes, result.demoted_bytes, result.samples);
}
/* The sums over all objects, and what became of the array. */
static void show_objects(void) {
    struct isotherm_object object = {.size = sizeof object}, table = {.bytes = 0};
    unsigned long promoted = 0, placed = 0, selected = 0, demoted = 0, samples = 0;
    for (uint64_t number = 0; isotherm_read_object(number, &object) == ISOTHERM_OK; number++) {
        promoted += object.promoted_bytes;
        placed += object.placed_bytes;
        selected += object.selected_bytes;
        demoted += object.demoted_bytes;
        samples += object.samples;
        if (!strcmp(object.name, "table"))
            table = object;
    }
    printf("{\"promoted\":%lu,\"placed\":%lu,\"selected\":%lu,\"demoted\":%lu,\"samples\":%lu}\n", promoted, placed, selected, demoted,
           samples);
    printf("{\"bytes\":%lu,\"promoted\":%lu,\"selected\":%lu,\"fast\":%lu,\"samples\":%lu}\n", table.bytes, table.promoted_bytes,
           table.selected_bytes, table.fast_bytes, table.samples);
}
int main(void) {
    /* From the first request on the run places data on request only. On a loaded machine the observer comes after the first call. */
    for (int i = 0; isotherm_profile_start() == ISOTHERM_NO_OBSERVER && i < 60000; i++) usleep(1000);
    isotherm_profile_stop();
    char *cold = isotherm_alloc("cold", 32 * MIB);
    memset(cold, 1, 32 * MIB);
    /* Long enough for the emulated machine to find the pages of the allocation. */
    for (clock_t end = clock() + CLOCKS_PER_SEC / 2; clock() < end;)
        cold[random_state++ % (32 * MIB)]++;
    printf("{\"register\":%d}\n", isotherm_register("table", table, sizeof table));
    work(0.2);
    isotherm_profile_start_at(1000);
    work(1);
    isotherm_profile_stop();
    optimize(0);
    show_objects();
    optimize(ISOTHERM_NO_FAST_BYTES);
    isotherm_unregister(table);
    return 0;
}
"#;

#[test]
fn a_registered_static_array_moves_to_fast_memory_and_back() {
    let directory = program_with_header(STATIC_ARRAY);
    let Some((lines, summary, _)) = served(&directory, &[]) else {
        return;
    };
    let [registered, hot, sums, table, none] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert_eq!(number(registered, "register"), InterfaceStatus::Ok as u64);
    if number(hot, "samples") < 100 {
        return isotherm_skip::skip!("few samples here: {hot}");
    }
    assert_eq!((number(hot, "status"), number(none, "status")), (0, 0));
    // Nothing else is hot, and the allocation had taken the fast memory.
    assert!(number(hot, "selected") >= 3 * MIB, "{lines:?}, {summary}");
    assert!(number(hot, "promoted") >= 3 * MIB, "{lines:?}, {summary}");
    let fast = number(&summary["optimizations"][1], "fast_bytes");
    assert!(fast <= MIB / 4, "{lines:?}, {summary}");
    assert!(number(none, "demoted") >= 3 * MIB, "{lines:?}, {summary}");
    objects_add_up(hot, sums, table);
}

/// Each byte of the result is one of an object, and the array has most of them.
fn objects_add_up(result: &Value, sums: &Value, table: &Value) {
    for name in ["promoted", "placed", "selected", "demoted"] {
        assert_eq!(number(result, name), number(sums, name), "{result}, {sums}");
    }
    assert_eq!(number(table, "bytes"), 4 * MIB);
    for name in ["promoted", "selected", "fast"] {
        assert!(number(table, name) >= 3 * MIB, "{table}");
    }
    let samples = number(result, "samples");
    assert!(number(sums, "samples") <= samples, "{sums}, {result}");
    // The loop reads variables of its own, too: 431 of 906 samples fell on the array in one run.
    assert!(number(table, "samples") * 4 >= samples, "{table}, {result}");
}

#[test]
fn a_program_of_one_thread_gets_its_moves_while_it_waits() {
    let directory = program_with_header(BY_FUNCTIONS);
    let Some((lines, summary, _)) = served(&directory, &[]) else {
        return;
    };
    let line = &lines[0];
    let statuses = ["start", "stop"].map(|name| number(line, name));
    assert_eq!(statuses, [0, 0], "{line}");
    if number(line, "samples") < 100 {
        return isotherm_skip::skip!("few samples here: {line}");
    }
    assert_eq!(number(line, "status"), InterfaceStatus::Ok as u64);
    let (there, selected) = (number(line, "there"), number(line, "selected"));
    assert!(selected >= 3 * MIB && there >= selected / 10 * 9, "{line}");
    limits_are_kept(&lines[1..], &summary);
}

/// A limit above the run's is bounded by it, one below what is hot says what has no room, and with none all that is fast leaves.
fn limits_are_kept(lines: &[Value], summary: &Value) {
    let [above, below, none] = lines else {
        panic!("{lines:?}");
    };
    for line in lines {
        assert_eq!(
            number(line, "status"),
            InterfaceStatus::Ok as u64,
            "{lines:?}, {summary}"
        );
    }
    // The program's static data has some pages of it.
    let capacity = 12 * MIB - MIB / 4..=12 * MIB;
    assert!(capacity.contains(&number(above, "capacity")), "{lines:?}");
    // By few samples more of the array is hot than there is room for.
    let hot = number(above, "selected") + number(above, "crowded");
    assert_eq!(number(below, "capacity"), MIB, "{lines:?}");
    assert!(number(below, "selected") <= MIB, "{lines:?}");
    let crowded = number(below, "crowded");
    assert!(crowded >= hot - 2 * MIB, "{lines:?}");
    assert_eq!((number(none, "capacity"), number(none, "selected")), (1, 0));
    assert!(number(none, "crowded") >= hot - MIB, "{lines:?}");
    let slow = number(none, "crowded") + number(none, "not_hot");
    assert!(slow >= 31 * MIB, "{lines:?}");
    assert!(number(none, "demoted") > 0, "{lines:?}");
    // What the program touched meanwhile may be fast again.
    assert!(number(none, "fast") <= MIB / 4, "{lines:?}");
    let last = &summary["optimizations"][3]["stayed_bytes"];
    assert_eq!(number(last, "not_hot"), number(none, "not_hot"));
}
