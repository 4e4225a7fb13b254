//! Tests what a profile has of programs that end before, or change between, two looks of the observer. `libisotherm.so` must lie beside the
//! program.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use support::{succeeds, use_small_pages};

const MIB: u64 = 1 << 20;

/// Arrays of known sizes, one function each, in a fifth of a second: kept to the end, made near the end,
/// freed at once, unmapped, touched in part only, and three at a time of one site.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#define MAKER(name) \
    __attribute__((noinline)) static char *name(size_t n, size_t touched) { \
        char *p = malloc(n); if (p) memset(p, 1, touched); __asm__ volatile("" : "+r"(p)); return p; }
MAKER(kept) MAKER(late) MAKER(freed) MAKER(partly) MAKER(together)
__attribute__((noinline)) static void *mapped(size_t n) {
    void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, n);
    __asm__ volatile("" : "+r"(p));
    return p;
}
enum { MIB = 1 << 20 };
int main(void) {
    char *first = kept(48 * MIB, 48 * MIB);
    char *some = partly(40 * MIB, 10 * MIB);
    while ((double)clock() / CLOCKS_PER_SEC < 0.2) first[(size_t)clock() % MIB]++;
    char *p[3];
    for (int i = 0; i < 3; i++) p[i] = together(4 * MIB, 4 * MIB);
    for (int i = 0; i < 3; i++) free(p[i]);
    free(freed(4 * MIB, 4 * MIB));
    munmap(mapped(6 * MIB), 6 * MIB);
    munmap(mapped(6 * MIB), 6 * MIB);
    char *last = late(16 * MIB, 16 * MIB);
    return first[0] + some[0] + last[0] == 0;
}
"#;

/// More mappings than a program measures at its end, and a touched one behind them.
const MANY_MAPPINGS: &str = r#"
#include <string.h>
#include <sys/mman.h>
#define MAPPER(name) \
    __attribute__((noinline)) static char *name(size_t n, size_t touched) { \
        char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); \
        memset(p, 1, touched); __asm__ volatile("" : "+r"(p)); return p; }
MAPPER(many) MAPPER(last)
enum { MIB = 1 << 20 };
int main(void) {
    for (int i = 0; i < 1100; i++) many(2 * MIB, 1);
    return last(16 * MIB, 16 * MIB)[0] == 0;
}
"#;

fn compile(directory: &Path, text: &str) -> String {
    let (source, program) = (directory.join("short.c"), directory.join("short"));
    std::fs::write(&source, text).expect("a folder of our own");
    let built = Command::new("gcc")
        .args(["-g", "-O1", "-fno-builtin", "-o"])
        .args([&program, &source])
        .status();
    assert!(built.expect("gcc starts").success());
    program.to_string_lossy().into_owned()
}

/// Highest peak of resident bytes of a site that a function makes: it has one for each of its callers.
fn peak(report: &Value, function: &str) -> u64 {
    let sites = report["sites"].as_array().expect("sites");
    let is_of = |site: &&Value| {
        let callers = site["callers"].as_array().expect("callers");
        callers
            .first()
            .is_some_and(|caller| caller["function"] == function)
    };
    let of = sites.iter().filter(is_of);
    let peaks = of.map(|site| site["peak_rss_bytes"].as_u64());
    peaks
        .map(|bytes| bytes.expect("bytes"))
        .max()
        .expect("a site")
}

/// The report of a program's run.
fn recorded(text: &str) -> Value {
    use_small_pages();
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let program = compile(directory, text);
    succeeds(directory, &["record", "-o", "short.iso", "--", &program]);
    let report = succeeds(directory, &["report", "--json", "short.iso"]);
    serde_json::from_slice(&report.stdout).expect("JSON")
}

#[test]
fn each_site_of_a_short_run_has_the_peak_of_what_it_touched() {
    let report = recorded(PROGRAM);
    let expected = [
        ("kept", 48),
        ("late", 16),
        ("partly", 10),
        ("freed", 4),
        ("together", 12),
        ("mapped", 6),
    ];
    for (function, size) in expected {
        let peak = peak(&report, function);
        // jemalloc may add a page for where a block begins in its first.
        let size = size * MIB;
        let likely = size..=size + 64 * 1024;
        assert!(likely.contains(&peak), "{function}: {peak} of {size}");
    }
}

#[test]
fn what_a_program_has_not_measured_at_its_end_counts_as_resident() {
    let report = recorded(MANY_MAPPINGS);
    assert!(peak(&report, "last") >= 16 * MIB, "{report}");
}
