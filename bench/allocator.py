"""Section `allocator`: the cost of allocations through libisotherm.so."""
import os

from measure import Contender, Program, geometric_mean, interleave, run_once
from table import Table
from tools import LIBC, Tools, unslowed

PEER = "jemalloc"


def programs(tools: Tools, quick: bool) -> list[Program]:
    scale = 10 if quick else 1
    return [
        tools.workload("larson", "--rounds", str(100 // scale)),
        tools.workload("xmalloc", "--batches", str(4000 // scale)),
        tools.script("redis", REQUESTS=str(600000 // scale)),
    ]


def contenders(tools: Tools, program: Program, folder: str, seconds: float) -> list[Contender]:
    """Records and plans the program first: the guided run uses its own plan, which puts the hotter half of its
    memory into one tier and the rest into another. Both are this machine's own memory, so that nothing is slowed and
    only the cost of looking placements up remains."""
    profile = os.path.join(folder, f"{program.name}.iso")
    plan = os.path.join(folder, f"{program.name}.plan")
    run_once(program, Contender("record", tools.record(profile)), seconds)
    tools.plan(profile, "thermos", "50%", plan, tiers="emulated:tmp")
    plan = unslowed(plan)
    return [
        # Named, because redis is linked with its own jemalloc.
        Contender("glibc", ["env", f"LD_PRELOAD={LIBC}"]),
        Contender(PEER, ["env", f"LD_PRELOAD={tools.peer()}"]),
        Contender("pass-through", ["env", f"LD_PRELOAD={tools.library}"]),
        Contender("guided", tools.guided(plan)),
        Contender("profile", tools.record(os.path.join(folder, "again.iso"))),
    ]


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    table = Table("Allocator: time of allocation-heavy programs (seconds, median; ratio to plain jemalloc)",
                  ["program", "way", "seconds", "spread", "ratio to jemalloc", "ratio to glibc"])
    ratios: dict[str, list[float]] = {}
    missed = []
    for program in programs(tools, options.quick):
        ways = contenders(tools, program, folder, options.limit)
        samples = interleave(program, ways, options.rounds, options.limit, say)
        for way in ways:
            ratio = samples.ratio(way.name, PEER, "kernel_seconds")
            to_glibc = samples.ratio(way.name, "glibc", "kernel_seconds")
            ratios.setdefault(way.name, []).append(ratio)
            table.row(program.name, way.name, samples.median(way.name, "kernel_seconds"),
                      f"{samples.spread(way.name, 'kernel_seconds'):.1%}", ratio, to_glibc)
            if way.name in ("pass-through", "guided") and (ratio > 1.02 or to_glibc > 1):
                missed.append(f"{program.name} {way.name}")
    for name, values in ratios.items():
        table.row("geometric mean", name, "", "", geometric_mean(values), "")
    table.note("Promised: pass-through and guided within 1.02 of jemalloc, and no slower than glibc.")
    table.note(f"Not reached: {', '.join(missed)}." if missed else "Reached by all.")
    return [table]
