"""Section `pass`: the cost of a guided allocation where the compiler pass named its site."""
import os
import statistics

from measure import Contender, Program, interleave
from table import Table
from tools import HERE, Tools, must, wrapper

NANOSECONDS = "nanoseconds_per_allocation"
SIZES = [16, 256, 4096, 65536]
# Both tiers are the same memory: the slow one is never slowed.
PLAN = """isotherm-plan 1
policy all-fast
value accesses
weight peak-rss
depth 4
command "pairs"
tier fast emulated-fast capacity 8GiB placement preferred
tier slow emulated-slow capacity 8GiB placement preferred period 0ns access 0ns hot 0ns migrate 0ns
default slow
{sites}standing planned 0 first-touch 0 bound 0 total 0
"""


def build(tools: Tools, folder: str) -> tuple[str, str, list[str]]:
    """The program as any clang builds it, as isotherm-cc builds it, and plans of its sites: all in the fast tier, all in
    the slow one, every other one in each."""
    source = os.path.join(HERE, "pairs.c")
    built = [os.path.join(folder, name) for name in ("pairs-plain", "pairs-named")]
    for compiler, output in zip(("clang-19", wrapper("isotherm-cc")), built):
        must([compiler, "-O2", "-pthread", "-o", output, source], f"building {output}")
    sites = tools.json(["sites", built[1]], "listing the sites")["sites"]
    plans = []
    for tiers in (["fast"], ["slow"], ["fast", "slow"]):
        plans.append(os.path.join(folder, "-".join(tiers) + ".plan"))
        lines = [f"site {site['site']} {tiers[i % len(tiers)]} value 0 weight 4KiB\n" for i, site in enumerate(sites)]
        with open(plans[-1], "w", encoding="utf-8") as file:
            file.write(PLAN.format(sites="".join(lines)))
    return built[0], built[1], plans


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    plain, named, (fast, slow, both) = build(tools, folder)
    # The first word after `env` or `--` is the program; all are the same source.
    ways = [
        Contender("jemalloc", ["env", f"LD_PRELOAD={tools.peer()}", plain]),
        Contender("guided, sites named", [*tools.guided(fast), named]),
        Contender("the same, in the slow tier", [*tools.guided(slow), named]),
        Contender("the same, in both tiers", [*tools.guided(both), named]),
        Contender("guided, callers looked up", [*tools.guided(fast), plain]),
    ]
    table = Table("Pass: nanoseconds of processor time for one malloc and free (median; ratio to plain jemalloc)",
                  ["pattern", "bytes", "threads", "jemalloc", "spread", "named", "spread", "ratio named",
                   "ratio slow tier", "ratio both tiers", "ratio looked up"])
    ratios = []
    for pattern in ("pair", "churn"):
        for size in SIZES:
            for threads in (1, 2):
                # Large blocks cost a thousand times as much; the runs take about as long.
                count = (40_000_000 if size < 16384 else 4_000_000) // (20 if options.quick else 2)
                name = f"{pattern} of {size} bytes, {threads} threads"
                program = Program(name, [], environment={})
                words = [pattern, str(size), str(threads), str(count)]
                each = [Contender(way.name, [*way.prefix, *words]) for way in ways]
                samples = interleave(program, each, options.rounds, options.limit, say)
                ns = [samples.median(way.name, NANOSECONDS) for way in ways]
                spread = [f"{samples.spread(way.name, NANOSECONDS):.1%}" for way in ways]
                ratio = [samples.ratio(way.name, ways[0].name, NANOSECONDS) for way in ways]
                ratios.append(ratio[1])
                table.row(pattern, size, threads, f"{ns[0]:.1f}", spread[0], f"{ns[1]:.1f}", spread[1], *ratio[1:])
    worst, median = max(ratios), statistics.median(ratios)
    table.note("named: the plan has two tiers and sends the sites to the fast one. In the slow one a free takes a detour. In both, what a "
               "free meets is left to chance, which the processor cannot foresee, and there are two caches. looked up: the "
               "program without the pass.")
    table.goal(f"Promised of named: each at most 1.02, the median at most 1.00. Worst {worst:.3f}, median {median:.3f}", worst <= 1.02 and median <= 1.0)
    return [table]
