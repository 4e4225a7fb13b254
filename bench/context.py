"""Section `context`: the cost of distinguishing calling contexts, and of a profile run."""
import dataclasses
import os

from measure import Contender, Program, geometric_mean, interleave
from table import Table
from tools import LIBC, Tools

NANOSECONDS = "nanoseconds_per_allocation"


def detection(tools: Tools, options, folder: str, say) -> Table:
    program = tools.workload("context")
    few = ["--allocations", "200000" if options.quick else "1000000"]
    many = ["--allocations", "2000000" if options.quick else "20000000"]
    jemalloc = ["env", f"LD_PRELOAD={tools.peer()}"]
    ways = [
        Contender("jemalloc", jemalloc, many),
        Contender("jemalloc + backtrace()", jemalloc, ["--unwind", "backtrace", "--callers", "4", *few]),
        Contender("pass-through", ["env", f"LD_PRELOAD={tools.library}"], many),
        Contender("profile, 4 callers", tools.record(os.path.join(folder, "context.iso")), many),
    ]
    samples = interleave(program, ways, options.rounds, options.limit, say)
    table = Table("Context: nanoseconds of one malloc and free among 256 calling contexts (median)",
                  ["way", "ns", "spread", "added ns"])
    added = {}
    for way, base in ((ways[0], ways[0]), (ways[1], ways[0]), (ways[2], ways[2]), (ways[3], ways[2])):
        median = samples.median(way.name, NANOSECONDS)
        added[way.name] = median - samples.median(base.name, NANOSECONDS)
        table.row(way.name, f"{median:.1f}", f"{samples.spread(way.name, NANOSECONDS):.1%}",
                  f"{added[way.name]:.1f}")
    share = added[ways[3].name] / added[ways[1].name]
    table.note("The profile adds detection, counting and the site's arena; backtrace() adds the unwinding alone.")
    table.goal(f"Promised: at most a tenth of backtrace(). Measured: {share:.3f}", share <= 0.1)
    return table


def programs(tools: Tools, quick: bool) -> list[Program]:
    """Programs under a million allocations a second."""
    chosen = [
        tools.workload("graph"),
        tools.workload("triad"),
        tools.workload("gups"),
        tools.workload("stencil"),
        tools.script("sqlite"),
        tools.script("graphicsmagick"),
        tools.script("numpy"),
        tools.script("pandas"),
        dataclasses.replace(tools.script("pandas", ROWS="0"), name="import pandas"),
    ]
    return chosen[:5] if quick else chosen


def profile_runs(tools: Tools, options, folder: str, say) -> Table:
    table = Table("Profile run over plain run: the whole run, start to end (seconds, median; ratio)",
                  ["program", "plain", "spread", "profile", "ratio"])
    ratios = []
    for program in programs(tools, options.quick):
        ways = [
            Contender("plain", ["env", f"LD_PRELOAD={LIBC}"]),
            Contender("profile", tools.record(os.path.join(folder, f"{program.name.replace(' ', '-')}-cost.iso"))),
        ]
        samples = interleave(program, ways, options.rounds, options.limit, say)
        ratios.append(samples.ratio("profile", "plain", "wall"))
        table.row(program.name, samples.median("plain", "wall"), f"{samples.spread('plain', 'wall'):.1%}",
                  samples.median("profile", "wall"), ratios[-1])
    table.row("geometric mean", "", "", "", geometric_mean(ratios))
    table.goal(f"Promised: at most 1.10 on programs under a million allocations a second. Worst here: {max(ratios):.3f}", max(ratios) <= 1.10)
    return table


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    return [detection(tools, options, folder, say), profile_runs(tools, options, folder, say)]
