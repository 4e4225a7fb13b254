"""Section `tmp`: TMP's last experiment (section VI-C) on unmodified programs, scaled to the machine.

The paper: 4 GB of fast memory beside 60 GB of slow, so a sixteenth of all; a page of slow memory takes 10 us when it
is touched first in a period, 13 us more if it is hot; moving a page takes 50 us. The baseline keeps what comes
first fast and moves nothing; TMP, with the policy History, ran 1.04 times as fast on average, 1.13 at best.
"""
import json
import os

from measure import Contender, Program, geometric_mean, interleave, run_once
from table import Table
from tools import Tools, must, without_limit, without_sites

TIERS = "emulated:tmp"
# 4 of 64.
PART = 16
FIRST_COME, ONLINE, ALL_FAST = "first come", "online", "all fast"


def programs(tools: Tools, quick: bool) -> list[Program]:
    # A page that is touched once a period costs the same however long a program runs, so the runs are long enough for
    # an online run to get samples: some 5 s with everything fast, one with --quick.
    work = 1 if quick else 5
    return [
        tools.workload("graph", "--rmat", "17", "--iterations", str(500 * work)),
        tools.workload("triad", "--size", "64MiB", "--iterations", str(6000 * work)),
        tools.workload("gups", "--size", "64MiB", "--updates", str(120_000_000 * work)),
        tools.workload("stencil", "--size", "64MiB", "--iterations", str(3000 * work)),
    ]


def footprint(tools: Tools, profile: str) -> int:
    """Most bytes that the program's sites had resident at one time."""
    report = json.loads(must([tools.isotherm, "--quiet", "report", "--json", profile], "reading the profile"))
    return report["totals"]["footprint_bytes"]


def contenders(tools: Tools, program: Program, folder: str, seconds: float) -> tuple[list[Contender], int]:
    profile, plan = (os.path.join(folder, f"{program.name}.{ending}") for ending in ("iso", "plan"))
    run_once(program, Contender("record", tools.record(profile)), seconds)
    fast = footprint(tools, profile) // PART
    must([tools.isotherm, "plan", profile, "--tiers", TIERS, "--fast", f"{fast}B", "-o", plan], "planning")
    first_come = without_sites(plan, "fast")
    online = [tools.isotherm, "--quiet", "run", "--tiers", TIERS, "--fast", f"{fast}B", "--"]
    return [Contender(FIRST_COME, tools.guided(first_come)), Contender(ONLINE, online),
            Contender(ALL_FAST, tools.guided(without_limit(first_come)))], fast


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    table = Table("TMP's experiment: a sixteenth of the footprint is fast; seconds of the kernels (median)",
                  ["program", "fast MiB", FIRST_COME, ONLINE, ALL_FAST, "spread", "speed-up"])
    speedups = []
    for program in programs(tools, options.quick):
        ways, fast = contenders(tools, program, folder, options.limit)
        samples = interleave(program, ways, options.rounds, options.limit, say)
        medians = [samples.median(way.name, "kernel_seconds") for way in ways]
        speedups.append(samples.ratio(FIRST_COME, ONLINE, "kernel_seconds"))
        spread = max(samples.spread(way.name, "kernel_seconds") for way in ways)
        table.row(program.name, f"{fast / 2**20:.1f}", *medians, f"{spread:.1%}", speedups[-1])
    table.row("geometric mean", "", "", "", "", "", geometric_mean(speedups))
    table.note("First come: memory is fast until the tier is full, in the order in which the program asks for it, and stays where "
               "it is. Online: `isotherm run` profiles and moves while the program runs, its own cost included. The paper's "
               "mean is 1.04 and its best 1.13, on other programs and 64 GB.")
    table.note("The slow tier is emulated: same memory, pages protected every 100 ms (the paper does not print its period), the "
               "first access in a period pays a delay.")
    return [table]
