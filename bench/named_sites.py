"""Section `pass`: what a guided allocation costs where the compiler pass named its site."""
import json
import os
import statistics

from measure import Contender, Problem, Program, interleave
from table import Table
from tools import HERE, ROOT, Tools, must

NANOSECONDS = "nanoseconds_per_allocation"
SIZES = [16, 256, 4096, 65536]
PLAN = """isotherm-plan 1
policy all-fast
value accesses
weight peak-rss
depth 4
command "pairs"
tier fast nodes 0 capacity 1GiB placement preferred
default fast
{sites}standing planned 0 first-touch 0 bound 0 total 0
"""


def build(tools: Tools, folder: str) -> tuple[str, str, str]:
    """The program as any clang builds it, as isotherm-cc builds it, and a plan that names its sites."""
    wrapper = os.path.join(ROOT, "build", "llvm", "isotherm-cc")
    if not os.path.isfile(wrapper):
        raise Problem(f"there is no {wrapper}; `make build` makes it where clang-19 is")
    source = os.path.join(HERE, "pairs.c")
    built = [os.path.join(folder, name) for name in ("pairs-plain", "pairs-named")]
    for compiler, output in zip(("clang-19", wrapper), built):
        must([compiler, "-O2", "-pthread", "-o", output, source], f"building {output}")
    sites = json.loads(must([tools.isotherm, "sites", "--json", built[1]], "listing the sites"))["sites"]
    plan = os.path.join(folder, "pairs.plan")
    with open(plan, "w", encoding="utf-8") as file:
        file.write(PLAN.format(sites="".join(f"site {site['site']} fast value 0 weight 4KiB\n" for site in sites)))
    return built[0], built[1], plan


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    plain, named, plan = build(tools, folder)
    # The first word after `env` or `--` is the program; both are the same source.
    ways = [
        Contender("jemalloc", ["env", f"LD_PRELOAD={tools.peer()}", plain]),
        Contender("guided, sites named", [*tools.guided(plan), named]),
        Contender("guided, callers looked up", [*tools.guided(plan), plain]),
    ]
    table = Table("Pass: nanoseconds of processor time for one malloc and free (median; ratio to plain jemalloc)",
                  ["pattern", "bytes", "threads", "jemalloc", "spread", "named", "spread", "looked up",
                   "ratio named", "ratio looked up"])
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
                table.row(pattern, size, threads, f"{ns[0]:.1f}", spread[0], f"{ns[1]:.1f}", spread[1],
                          f"{ns[2]:.1f}", ratio[1], ratio[2])
    worst, median = max(ratios), statistics.median(ratios)
    reached = "reached" if worst <= 1.02 and median <= 1.0 else "not reached"
    table.note(f"Promised: each at most 1.02, the median at most 1.00. Worst {worst:.3f}, median {median:.3f}: {reached}.")
    return [table]
