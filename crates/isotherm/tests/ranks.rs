//! Tests a parallel program of two ranks under Open MPI: each rank is recorded by itself, the profiles are merged, and their plan guides
//! both. `libisotherm.so` must lie beside the program.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Each rank has as much cold memory as the other, and hot memory of its own size: rank 1 twice that of
/// rank 0. Every rank prints a line that never changes.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
enum { COLD = 16 << 20, HOT = 4 << 20 };
__attribute__((noinline)) char *make_cold(void) { char *p = malloc(COLD); memset(p, 1, COLD); return p; }
__attribute__((noinline)) char *make_hot(size_t n) { char *p = malloc(n); memset(p, 2, n); return p; }
int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    size_t size = (size_t)HOT * (rank + 1);
    char *cold = make_cold(), *hot = make_hot(size);
    unsigned x = 1;
    clock_t begin = clock();
    while ((double)(clock() - begin) / CLOCKS_PER_SEC < 1.0)
        for (int i = 0; i < 100000; i++) { x = x * 1664525u + 1013904223u; hot[x % size]++; }
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d, sum %d, cold %d\n", rank, ranks, sum, cold[7]);
    MPI_Finalize();
    return 0;
}
"#;

const ISOTHERM: &str = env!("CARGO_BIN_EXE_isotherm");

fn run(directory: &Path, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    let command = command.args(arguments).current_dir(directory);
    // Tests may run as root in a container, which Open MPI must be told is meant.
    let command = command.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("ISOTHERM", ISOTHERM),
    ]);
    let output = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    output
}

/// The lines of both ranks, in the order of their numbers.
fn lines(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn report(directory: &Path, profile: &str) -> Value {
    let output = run(directory, ISOTHERM, &["report", "--json", profile]);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A figure of the site that a function makes.
fn site(report: &Value, function: &str, figure: &str) -> u64 {
    let sites = report["sites"].as_array().expect("a list").iter();
    let of = sites.filter(|site| {
        site["location"]
            .as_str()
            .is_some_and(|text| text.contains(function))
    });
    of.map(|site| site[figure].as_u64().unwrap_or(0)).sum()
}

#[test]
fn two_ranks_are_recorded_merged_planned_and_guided() {
    let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !there("mpicc") || !there("mpirun") {
        return isotherm_skip::skip!("no Open MPI (Debian: openmpi-bin and libopenmpi-dev)");
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::write(at.join("ranks.c"), PROGRAM).unwrap();
    run(at, "mpicc", &["-O1", "-g", "-o", "ranks", "ranks.c"]);
    let record =
        "exec $ISOTHERM -q record --epoch 200ms -o rank.$OMPI_COMM_WORLD_RANK.iso -- ./ranks";
    let recorded = run(at, "mpirun", &["-n", "2", "sh", "-c", record]);
    let wanted = ["rank 0 of 2, sum 1, cold 1", "rank 1 of 2, sum 1, cold 1"];
    assert_eq!(lines(&recorded), wanted);

    run(
        at,
        ISOTHERM,
        &["merge", "-o", "all.iso", "rank.0.iso", "rank.1.iso"],
    );
    let ranks = [report(at, "rank.0.iso"), report(at, "rank.1.iso")];
    let all = report(at, "all.iso");
    for function in ["make_cold", "make_hot"] {
        let sum = |figure| {
            ranks
                .iter()
                .map(|rank| site(rank, function, figure))
                .sum::<u64>()
        };
        assert_eq!(
            site(&all, function, "accesses"),
            sum("accesses"),
            "{function}"
        );
        // The most that both held in one epoch: no more than the sum of what each held at most.
        let peak = site(&all, function, "peak_rss_bytes");
        assert!(
            peak > 0 && peak <= sum("peak_rss_bytes"),
            "{function}: {peak}"
        );
    }
    assert!(
        site(&all, "make_hot", "peak_rss_bytes") >= 12 << 20,
        "4 MiB and 8 MiB"
    );

    run(
        at,
        ISOTHERM,
        &[
            "plan", "all.iso", "--tiers", "emulated", "--fast", "14MiB", "-o", "all.plan",
        ],
    );
    let guide = "exec $ISOTHERM -q run --plan all.plan -- ./ranks";
    let guided = run(at, "mpirun", &["-n", "2", "sh", "-c", guide]);
    assert_eq!(lines(&guided), wanted);
}

#[test]
fn profiles_that_do_not_go_together_are_refused_and_none_is_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (name, chunk) in [("a.iso", "64KiB"), ("b.iso", "4KiB")] {
        let flags = [
            "-q", "record", "--chunk", chunk, "-o", name, "--", "sleep", "0.1",
        ];
        run(at, ISOTHERM, &flags);
    }
    let merge = |output: &str| {
        let mut command = Command::new(ISOTHERM);
        let command = command.args(["merge", "--force", "-o", output, "a.iso", "b.iso"]);
        let output = command.current_dir(at).output().expect("it starts");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = merge("all.iso");
    assert!(said.contains("--chunk") && said.contains("b.iso"), "{said}");
    assert!(!at.join("all.iso").exists());
    assert!(merge("a.iso").contains("both read and written"));
    report(at, "a.iso");
}
