//! Tests runs of real programs on machines that are emulated by time: delays, counts of bytes, huge pages, threads.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{isotherm, stderr, succeeds};

/// Sums 128 MiB as often as its argument says.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { WORDS = 16 << 20 };
int main(int count, char **words) {
    long *all = malloc(WORDS * sizeof *all), sum = 0;
    int rounds = count > 1 ? atoi(words[1]) : 0;
    for (long i = 0; i < WORDS; i++) all[i] = i;
    for (int round = 0; round < rounds; round++) {
        for (long i = 0; i < WORDS; i++) sum += all[i];
        __asm__ volatile("" : "+r"(sum) : : "memory");
    }
    printf("%ld\n", sum);
    return 0;
}
"#;

/// Sixty threads, each made by the one before it, or with an argument by the idle main thread, which waits for its end: random
/// updates of 128 MiB, some 20 ms each.
const SHORT_THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { ALL = 128 << 20 };
static unsigned char *all;
static unsigned x = 1;
static double worked(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
static void *link(void *left) {
    while (worked() < 0.02)
        for (int i = 0; i < 5000; i++) { x = x * 1664525u + 1013904223u; all[x % ALL]++; }
    pthread_t next;
    if (left && !pthread_create(&next, 0, link, (char *)left - 1)) pthread_join(next, 0);
    return 0;
}
int main(int count, char **words) {
    all = calloc(ALL, 1);
    for (long i = 0; i < ALL; i += 64) all[i] = 1;
    if (count < 2) link((void *)60);
    for (int i = 0; count > 1 && i < 60; i++) {
        pthread_t thread;
        if (!pthread_create(&thread, 0, link, 0)) pthread_join(thread, 0);
    }
    puts("done");
    return 0;
}
"#;

/// Two static arrays of 16 MiB, written and then read at random.
const STATIC_ARRAYS: &str = r#"
#include <stdio.h>
enum { WORDS = 2 << 20 };
static volatile long first[WORDS], second[WORDS];
int main(void) {
    unsigned x = 1;
    for (long i = 0; i < WORDS; i++) first[i] = second[i] = i;
    for (int i = 0; i < 30000000; i++) {
        x = x * 1664525u + 1013904223u;
        (void)first[x % WORDS];
        (void)second[x % WORDS];
    }
    puts("done");
    return 0;
}
"#;

/// Works at random on 64 MiB for which it requests huge pages, and prints whether most of its memory consists of them after that.
const HUGE_PAGES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
enum { ALL = 64 << 20, HUGE = 2 << 20 };
int main(void) {
    unsigned char *all = aligned_alloc(HUGE, ALL);
    madvise(all, ALL, MADV_HUGEPAGE);
    for (long i = 0; i < ALL; i += 64) all[i] = 1;
    unsigned x = 1;
    for (int i = 0; i < 60000000; i++) { x = x * 1664525u + 1013904223u; all[x % ALL]++; }
    long kib, huge_kib = 0;
    char line[256];
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "AnonHugePages: %ld", &kib) == 1) huge_kib += kib;
    puts(huge_kib >= ALL / 1024 * 3 / 4 ? "huge" : "small");
    return 0;
}
"#;

/// Runs its arguments without perf events, as in a container that forbids them.
const WITHOUT_PERF: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    if (count > 1 && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        execvp(words[1], words + 1);
    return 99;
}
"#;

fn build(directory: &Path, program: &str) {
    std::fs::write(directory.join("app.c"), program).expect("written");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O1", "-pthread", "-o", "app", "app.c"]);
    let built = compiler.current_dir(directory).status();
    assert!(built.expect("a C compiler").success());
}

/// Nanoseconds that the program waited for slow memory. None where the machine cannot emulate.
fn waited(directory: &Path, flags: &str, tiers: &str, program: &str, printed: &str) -> Option<u64> {
    counters(directory, flags, tiers, program, printed)?["delay_ns"].as_u64()
}

/// The runtime's counters of a run by first touch in 2 MiB of fast memory. None where the machine cannot emulate.
fn counters(
    directory: &Path,
    flags: &str,
    tiers: &str,
    program: &str,
    printed: &str,
) -> Option<Value> {
    let words = format!(
        "run --policy first-come --fast 2MiB --source timer {flags} --summary run.json --tiers"
    );
    counters_of(directory, &words, tiers, program, printed)
}

/// The runtime's counters of a run by this command line.
fn counters_of(
    directory: &Path,
    words: &str,
    tiers: &str,
    program: &str,
    printed: &str,
) -> Option<Value> {
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend([tiers, "--"]);
    words.extend(program.split(' '));
    let output = succeeds(directory, &words);
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
    let text = std::fs::read_to_string(directory.join("run.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    if summary["placed"] == false {
        isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
        return None;
    }
    Some(summary["runtime"]["counters"].clone())
}

/// What [`PROGRAM`] prints after thirty rounds.
const SUM_OF_THIRTY_ROUNDS: &str = "4222124399001600\n";

/// What it prints after a hundred rounds. In ten it takes some 0.1 s, of which a busy host can take a third away: 0.67 of the bytes have been
/// counted there.
const SUM_OF_A_HUNDRED_ROUNDS: &str = "14073747996672000\n";

/// The bytes of those rounds.
const READ_IN_A_HUNDRED_ROUNDS: u64 = 100 * (128 << 20);

/// Three counts in order. A host that takes the processor away lowers one of them now and then.
fn sorted<T: Ord>(count: impl Fn() -> Option<T>) -> Option<[T; 3]> {
    let mut counts = [count()?, count()?, count()?];
    counts.sort();
    Some(counts)
}

#[test]
fn the_account_of_slow_memory_holds_the_bytes_that_a_stream_read() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), PROGRAM);
    let count = || {
        let counters = counters(
            directory.path(),
            "--cache 0B",
            "emulated:L:1,B:1",
            "./app 100",
            SUM_OF_A_HUNDRED_ROUNDS,
        );
        counters?["slow_traffic_bytes"].as_u64()
    };
    let Some([_, bytes, _]) = sorted(count) else {
        return;
    };
    // That they are written first is mostly the kernel's time, which zeroes the pages.
    let read = READ_IN_A_HUNDRED_ROUNDS;
    assert!(
        bytes > read * 3 / 4 && bytes < read * 5 / 4,
        "{bytes} of {read}"
    );
}

#[test]
fn a_program_waits_for_the_bandwidth_beyond_its_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), PROGRAM);
    let tiers = |limit: &str| {
        let tiers = format!("emulated:L:1,B:1{limit}");
        waited(
            directory.path(),
            "--cache 0B",
            &tiers,
            "./app 30",
            SUM_OF_THIRTY_ROUNDS,
        )
    };
    let (Some(free), Some(wide), Some(narrow)) =
        (tiers(""), tiers(",limit:1PiB/s"), tiers(",limit:200MiB/s"))
    else {
        return;
    };
    assert_eq!(free, 0);
    // Samples wait for their own microseconds at any limit, and longer where another program has the processor meanwhile.
    assert!(wide < 1_000_000_000, "{wide} ns");
    // 3.75 GiB take 19 s at that limit; the program works for a part of a second.
    assert!(narrow > 5_000_000_000, "{narrow} ns");
}

/// The counters of a run of [`PROGRAM`] with all its data in fast memory.
fn in_fast_memory(directory: &Path, tiers: &str, program: &str, printed: &str) -> Option<Value> {
    let words =
        "run --policy first-come --fast 1GiB --source timer --cache 0B --summary run.json --tiers";
    counters_of(directory, words, tiers, program, printed)
}

#[test]
fn the_account_of_fast_memory_holds_the_bytes_that_a_stream_read_there() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), PROGRAM);
    let count = || {
        let counters = in_fast_memory(
            directory.path(),
            "emulated:L:1,B:1",
            "./app 100",
            SUM_OF_A_HUNDRED_ROUNDS,
        )?;
        let bytes = |name: &str| counters[name].as_u64().expect("a number");
        Some((bytes("fast_traffic_bytes"), bytes("slow_traffic_bytes")))
    };
    let Some([_, (fast, slow), _]) = sorted(count) else {
        return;
    };
    let read = READ_IN_A_HUNDRED_ROUNDS;
    assert!(
        fast > read * 3 / 4 && fast < read * 5 / 4 && slow < read / 20,
        "{fast} and {slow} of {read}"
    );
}

#[test]
fn a_program_waits_for_the_bandwidth_of_fast_memory_beyond_its_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), PROGRAM);
    let waited = |limits: &str| {
        let tiers = format!("emulated:L:1,B:1,{limits}");
        in_fast_memory(directory.path(), &tiers, "./app 30", SUM_OF_THIRTY_ROUNDS)?["delay_ns"]
            .as_u64()
    };
    let slow_only = waited("limit:200MiB/s");
    let (Some(slow_only), Some(fast)) = (slow_only, waited("fast-limit:200MiB/s")) else {
        return;
    };
    assert!(slow_only < 1_000_000_000, "{slow_only} ns");
    assert!(fast > 5_000_000_000, "{fast} ns");
}

/// Each ends before its own samples tell what the caches serve.
#[test]
fn threads_that_live_for_some_samples_are_delayed() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), SHORT_THREADS);
    for program in ["./app", "./app by-main"] {
        let tiers = "emulated:B:3,L:3";
        let delay = waited(directory.path(), "--cache 4MiB", tiers, program, "done\n");
        let Some(delay) = delay else { return };
        // They work for 1.2 s, most of it on slow memory; the first ones are not delayed.
        assert!(delay > 300_000_000, "{program}: {delay} ns");
    }
}

#[test]
fn a_machine_needs_a_limit_and_keeps_it_in_the_plan() {
    let directory = tempfile::tempdir().expect("a directory");
    let told = |tiers: &str| {
        let output = succeeds(directory.path(), &["tiers", "--tiers", tiers]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(
        told("emulated:lab,limit:5GiB/s")
            .contains("emulated: all runs on the machine \"lab\" share 5 GiB/s of slow memory")
    );
    assert!(told("emulated:limit:5GiB/s").contains("the processes of a run share 5 GiB/s"));
    let both = told("emulated:limit:5GiB/s,fast-limit:10GiB/s");
    assert!(
        both.contains("share 10 GiB/s of fast memory and 5 GiB/s of slow memory"),
        "{both}"
    );
    let refused = isotherm(directory.path(), &["tiers", "--tiers", "emulated:lab"]);
    let error = stderr(&refused);
    assert!(!refused.status.success());
    assert!(error.contains("emulated:lab,limit:5GiB/s"), "{error}");
}

#[test]
fn static_data_takes_its_room_in_the_fast_tier_without_a_plan() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), STATIC_ARRAYS);
    let tiers = "emulated:B:3,L:3";
    let counters = counters(directory.path(), "--cache 0B", tiers, "./app", "done\n");
    let Some(counters) = counters else { return };
    let mib = |name: &str| counters[name].as_u64().expect("a counter") >> 20;
    // 32 MiB of arrays, and some hundred KiB of the libraries.
    assert!((1..=2).contains(&mib("fast_bytes")), "{counters:#}");
    assert!((30..=32).contains(&mib("slow_bytes")), "{counters:#}");
    let delay_ns = counters["delay_ns"].as_u64().expect("a counter");
    assert!(delay_ns > 10_000_000, "{counters:#}");
}

/// Arrays of 1 MiB together fit in a quarter of the larger cache: what it serves is not slowed.
#[test]
fn a_run_by_a_plan_has_the_caches_that_it_is_given() {
    let directory = tempfile::tempdir().expect("a directory");
    let small = STATIC_ARRAYS.replace("2 << 20", "1 << 16");
    build(directory.path(), &small.replace("30000000", "300000000"));
    let make = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        succeeds(directory.path(), &words)
    };
    make("record --source timer --cache 0B -o app.iso -- ./app");
    make("plan app.iso --tiers emulated:B:3,L:3 --fast 1MiB -o app.plan");
    let waited = |cache: &str| {
        let flags = "--static slow --summary run.json";
        let words = format!("run --plan app.plan {flags} --cache {cache} -- ./app");
        let output = make(&words);
        let text = std::fs::read_to_string(directory.path().join("run.json")).expect("a summary");
        let summary: Value = serde_json::from_str(&text).expect("JSON");
        if summary["placed"] == false {
            isotherm_skip::skip!("nothing can be emulated here: {}", stderr(&output));
            return None;
        }
        summary["runtime"]["counters"]["delay_ns"].as_u64()
    };
    let (Some(none), Some(large)) = (waited("0B"), waited("8MiB")) else {
        return;
    };
    assert!(none > 2 * large, "{none} ns without a cache, {large} with");

    make("plan app.iso --tiers emulated:tmp --fast 1MiB -o tmp.plan");
    for words in ["run --plan tmp.plan", "compare tmp.plan"] {
        let words = format!("{words} --cache 1MiB -- ./app");
        let words: Vec<&str> = words.split(' ').collect();
        let refused = isotherm(directory.path(), &words);
        assert!(!refused.status.success());
        assert!(
            stderr(&refused).contains("these tiers are of another kind"),
            "{}",
            stderr(&refused)
        );
    }
}

#[test]
fn huge_pages_stay_huge() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), HUGE_PAGES);
    let plain = Command::new(directory.path().join("app")).output();
    if plain.expect("runs").stdout != b"huge\n" {
        return isotherm_skip::skip!("this kernel gives a program no huge pages");
    }
    // All but 2 MiB of it is slow, and was delayed.
    let tiers = "emulated:B:3,L:3";
    let waited = waited(directory.path(), "--cache 0B", tiers, "./app", "huge\n");
    let Some(waited) = waited else { return };
    assert!(waited > 10_000_000, "{waited} ns");
}

#[test]
fn where_perf_events_are_forbidden_the_page_trap_stands_in_except_for_a_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), WITHOUT_PERF);
    let run = |tiers: &str| {
        let run = Command::new(directory.path().join("app"))
            .current_dir(&directory)
            .arg(env!("CARGO_BIN_EXE_isotherm"))
            .args([
                "run", "--tiers", tiers, "--fast", "2MiB", "--", "echo", "ran",
            ])
            .output()
            .expect("runs");
        (
            run.status.code(),
            String::from_utf8_lossy(&run.stdout).into_owned(),
            stderr(&run),
        )
    };
    for tiers in ["emulated:nvm", "emulated:B:2,L:3"] {
        let (status, printed, said) = run(tiers);
        assert_eq!((status, &printed[..]), (Some(0), "ran\n"), "{said}");
        let sentence = format!("the page trap takes the place of {tiers}, ");
        assert!(
            said.contains(&sentence) && said.contains("perf_event_paranoid"),
            "{said}"
        );
        assert!(!said.contains("timer of its own"), "{said}");
    }
    for tiers in ["emulated:lab,limit:5GiB/s", "emulated:nvm,limit:5GiB/s"] {
        let (status, printed, said) = run(tiers);
        assert_eq!((status, &printed[..]), (Some(1), ""), "{said}");
        let sentence = format!("--tiers {tiers}: a limit of the bandwidth needs samples");
        assert!(
            said.contains(&sentence) && said.contains("perf_event_paranoid"),
            "{said}"
        );
        assert!(!said.contains("warning"), "{said}");
    }
}
