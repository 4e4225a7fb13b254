"""A plan of a program with named sites, after the program was rebuilt."""
import json
import os

from harness import Bench, expect, expect_in

SOURCE = """#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(double *array, size_t count) {
    for (size_t at = 0; at < count; at++)
        array[at] = 1;
}

int main(void) {
    size_t count = 1 << 18;
    double *hot = malloc(count * sizeof(double));
    double *cold = malloc(4 * count * sizeof(double));
    fill(hot, count);
    fill(cold, 4 * count);
    double sum = 0;
    for (int round = 0; round < 200; round++)
        for (size_t at = 0; at < count; at++)
            sum += hot[at * 7919 % count];
    printf("before %d\\n", sum + cold[5] > 1);
    free(hot);
    free(cold);
    return 0;
}
"""


def built(bench: Bench, source: str) -> None:
    with open(os.path.join(bench.folder, "app.c"), "w", encoding="utf-8") as file:
        file.write(source)
    bench.compile("-g", "app.c", "-o", "app", root=bench.folder)


def guided(bench: Bench) -> tuple[dict, str]:
    done = bench.run(bench.isotherm, "run", "--plan", "app.plan", "--summary", "run.json", "--", "./app")
    with open(os.path.join(bench.folder, "run.json"), encoding="utf-8") as file:
        return json.load(file), done.stderr


def a_plan_finds_named_sites_in_a_changed_program(bench: Bench) -> None:
    built(bench, SOURCE)
    bench.run(bench.isotherm, "-q", "record", "--epoch", "50ms", "-o", "app.iso", "--", "./app")
    bench.run(bench.isotherm, "-q", "plan", "app.iso", "--tiers", "emulated", "--fast", "3MiB", "-o", "app.plan")
    changes = {
        "a text": ((SOURCE.replace("before", "a longer text than before"), {"name"})),
        "lines above the function": (SOURCE.replace("static", "int unused;\n\nstatic"), {"name"}),
        "a line above the calls": (SOURCE.replace("size_t count = 1 << 18;", "size_t count = 1 << 18;\n    puts(\"new\");"), {"order"}),
    }
    for change, (source, ways) in changes.items():
        built(bench, source)
        summary, said = guided(bench)
        fit = summary["fit"]
        expect(f"sites found after {change}", fit["found_sites"], fit["planned_sites"])
        found = {site["found_by"] for site in fit["sites"] if site["found_by"] != "line"}
        expect(f"how they were found after {change}", found, ways)
        expect(f"sites not made after {change}", summary["sites_only_in_plan"], 0)
        expect_in(f"what is said after {change}", "rebuilt since the plan was made", said)


TESTS = [a_plan_finds_named_sites_in_a_changed_program]
