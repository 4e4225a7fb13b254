"""Tests of the profile build: programs with known accesses count themselves."""
import json
import math
import os
import random

from harness import PROGRAMS, Bench, Failed, expect, expect_in

WORDS = 1 << 17
LINES = WORDS // 8
# Accesses in the mode `plain` of programs/counted.c, by the function that allocates.
PLAIN = {
    "make_filled": WORDS + 1,
    "make_read": 3 * WORDS,
    "make_changed": 3 * WORDS,
    "make_atomic": 2 * WORDS,
    "make_copied": WORDS + 2 * LINES + WORDS,
    "make_copy": WORDS + LINES + WORDS,
}
FILLED = dict.fromkeys(PLAIN, WORDS) | {"make_filled": WORDS + 1}


def build(bench: Bench, *options: str) -> dict[str, str]:
    """Builds the program with these options, its library and its plugin; returns the sites by function."""
    library = os.path.join(PROGRAMS, "counted_library.c")
    for name in ("counted.so", "plugin.so"):
        bench.compile("--profile", "-shared", "-fPIC", library, "-o", name)
    bench.compile("--profile", *options, os.path.join(PROGRAMS, "counted.c"), "./counted.so", "-pthread", "-o", "counted")
    return bench.sites("counted")


def record(bench: Bench, *words: str, options: tuple[str, ...] = ("--period", "1")) -> tuple[dict[str, int], dict, str]:
    """Accesses by site, the report's source, and the program's output."""
    done = bench.run(bench.isotherm, "record", "--force", "-o", "counted.iso", "--epoch", "100ms", *options, "--", "./counted",
                     *words)
    report = json.loads(bench.run(bench.isotherm, "report", "--json", "counted.iso").stdout)
    source = next((source for source in report["sources"] if source["name"] == "instrumented"), {})
    return {row["site"]: row["accesses"] for row in report["sites"]}, source, done.stdout


def counted(bench: Bench, sites: dict[str, str], *words: str) -> tuple[dict[str, int], str]:
    """Accesses by function, where every access was counted."""
    accesses, source, printed = record(bench, *words)
    expect("samples that found no room", source["lost_samples"], 0)
    expect("warning of the source", source["warning"], "")
    return {name: accesses.get(sites[name], 0) for name in PLAIN}, printed


def every_access_is_counted_where_it_falls(bench: Bench) -> None:
    for options in ([], ["-O0"], ["-flto", "-fuse-ld=lld"], ["-fno-pie", "-no-pie"]):
        sites = build(bench, *options)
        found, printed = counted(bench, sites)
        expect(f"accesses, {options}", found, PLAIN)
        expect("the program", printed, "done 7\n")
    text = bench.run(bench.isotherm, "report", "--text", "counted.iso").stdout
    expect_in("the report", "instrumented", text)
    expect_in("the report", "make_changed\n", text)


def accesses_of_threads_children_handlers_and_libraries_are_counted(bench: Bench) -> None:
    sites = build(bench)
    found, _ = counted(bench, sites, "threads")
    expect("accesses of four threads", found, FILLED | {"make_read": 5 * WORDS})
    found, _ = counted(bench, sites, "fork")
    expect("accesses of a program and two children", found, FILLED | {"make_read": 4 * WORDS})
    found, _ = counted(bench, sites, "library", "./plugin.so")
    expect("accesses of two libraries", found, FILLED | {"make_read": 5 * WORDS})
    found, printed = counted(bench, sites, "signals")
    handled = int(printed.split()[1])
    if handled == 0:
        raise Failed("no signal was handled, so nothing was tested")
    expect("accesses of a handler and what it interrupts", found,
           FILLED | {"make_read": 61 * WORDS, "make_atomic": WORDS + 100 * handled})


def samples_stand_for_as_many_accesses(bench: Bench) -> str:
    """Gaps are even from 1 to 2N-1, of variance N*N/3, so t accesses are estimated with a deviation of sqrt(t*N/3). The
    random numbers are the same in every run."""
    sites = build(bench)
    worst = 0.0
    for period in (64, 1024):
        accesses, source, _ = record(bench, options=("--period", str(period), "--source", "instrumented"))
        expect("samples that found no room", source["lost_samples"], 0)
        for name, wanted in PLAIN.items():
            deviation = math.sqrt(wanted * period / 3)
            off = abs(accesses.get(sites[name], 0) - wanted) / deviation
            worst = max(worst, off)
            if off > 5:
                raise Failed(f"{name}: {accesses.get(sites[name])} accesses at one in {period} instead of {wanted}, "
                             f"{off:.1f} standard deviations")
    return f"{worst:.1f} standard deviations at most"


def a_cache_filter_leaves_what_would_miss_a_cache(bench: Bench) -> None:
    """`make_small` is read 100 times and has 256 lines: a filter of 32 KiB holds them, one of 8 KiB does not."""
    bench.compile("--profile", os.path.join(PROGRAMS, "filtered.c"), "-pthread", "-o", "counted")
    sites = bench.sites("counted")
    every = {"make_line": 1_000_000, "make_stream": WORDS, "make_small": 204_800, "make_shared": 4_000_000}
    missed = {"make_line": 1, "make_stream": LINES, "make_small": 256, "make_shared": 4}
    for options, wanted in (([], every), (["--cache-filter", "32KiB"], missed),
                            (["--cache-filter", "8KiB"], missed | {"make_small": 25_600})):
        accesses, source, _ = record(bench, options=("--period", "1", *options))
        expect(f"what the report says of the filter, {options}", "cache filter" in source["cost_note"], bool(options))
        expect(f"accesses, {options}", {name: accesses.get(site, 0) for name, site in sites.items()}, wanted)
    accesses, _, _ = record(bench, options=("--period", "64", "--cache-filter", "8KiB"))
    for name in ("make_stream", "make_small"):
        wanted = (missed | {"make_small": 25_600})[name]
        off = abs(accesses.get(sites[name], 0) - wanted) / math.sqrt(wanted * 64 / 3)
        if off > 5:
            raise Failed(f"{name}: {accesses.get(sites[name])} misses at one in 64 instead of {wanted}")


def the_cache_filter_counts_what_a_plain_model_of_it_counts(bench: Bench) -> str:
    """Of random accesses by one thread: single ones, several in one stretch of code, and ranges."""
    bench.compile("--profile", os.path.join(PROGRAMS, "filter_model.c"), "-o", "counted")
    sites = bench.sites("counted")
    seed = random.randrange(1 << 32)
    for lines in (1, 128, 512, 1 << 14):
        accesses, source, printed = record(bench, str(lines), str(seed),
                                           options=("--period", "1", "--cache-filter", f"{lines * 64}B"))
        expect("samples that found no room", source["lost_samples"], 0)
        wanted = {name: int(count) for name, count in (line.split() for line in printed.splitlines())}
        found = {name: accesses.get(sites[name], 0) for name in wanted}
        expect(f"misses of {lines} lines, seed {seed}", found, wanted)
    return f"seed {seed}"


def a_cache_filter_that_cannot_be_is_refused(bench: Bench) -> None:
    build(bench)
    for words, said in ((["--cache-filter", "3KiB"], "a power of two from 64B to 1MiB"),
                        (["--cache-filter", "2MiB"], "a power of two from 64B to 1MiB"),
                        (["--cache-filter", "32KiB", "--source", "timer"], "works with the source instrumented only")):
        done = bench.run(bench.isotherm, "record", "-o", "none.iso", *words, "--", "./counted", status=1)
        expect_in(f"{words}", said, done.stderr)


def the_source_is_the_programs_own_unless_another_is_named(bench: Bench) -> None:
    build(bench, "-s", "-Wl,--gc-sections")
    _, source, _ = record(bench, options=())
    expect("the source of a stripped profile build", source.get("usable_samples", 0) > 0, True)
    _, source, _ = record(bench, options=("--source", "timer"))
    expect("the source where the timer was asked for", source, {})
    # Built without: nothing is counted, and a message reports it.
    bench.compile(os.path.join(PROGRAMS, "hot_cold.c"), "-o", "plain")
    done = bench.run(bench.isotherm, "record", "-o", "plain.iso", "--source", "instrumented", "--", "./plain")
    expect_in("what is said of a program that does not count", "isotherm-cc --profile", done.stderr)


def without_isotherm_a_profile_build_is_a_program_like_any(bench: Bench) -> None:
    build(bench)
    for mode in ([], ["threads"], ["fork"], ["library", "./plugin.so"]):
        expect(f"plain, {mode}", bench.run("./counted", *mode).stdout, "done 7\n")
    bench.compile("--profile", "-static", os.path.join(PROGRAMS, "hot_cold.c"), "-o", "static")
    expect("linked statically", bench.run("./static").stdout, "done 1\n")
    bench.compile("-c", os.path.join(PROGRAMS, "hot_cold.c"), "-o", "built.o", ISOTHERM_PROFILE_BUILD="yes")
    expect_in("built by the variable", "isotherm_sample_2", bench.run("llvm-nm-19", "built.o").stdout)
    done = bench.compile("-c", os.path.join(PROGRAMS, "hot_cold.c"), "-o", "built.o", status=2, ISOTHERM_PROFILE_BUILD="maybe")
    expect_in("a word that is neither", "ISOTHERM_PROFILE_BUILD is yes or no", done.stderr)


TESTS = [
    without_isotherm_a_profile_build_is_a_program_like_any,
    every_access_is_counted_where_it_falls,
    accesses_of_threads_children_handlers_and_libraries_are_counted,
    samples_stand_for_as_many_accesses,
    a_cache_filter_leaves_what_would_miss_a_cache,
    the_cache_filter_counts_what_a_plain_model_of_it_counts,
    a_cache_filter_that_cannot_be_is_refused,
    the_source_is_the_programs_own_unless_another_is_named,
]
