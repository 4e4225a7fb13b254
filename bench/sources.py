"""Section `sources`: TMP's figure 6, the hit rate by the source of the page ranks: each source alone and both."""
import math
import os

from measure import Problem
from table import Table
from tools import ROOT, Tools

GENERATORS = ["uniform", "zipf", "sliding-window", "phases", "scan-and-hot-set", "stencil-sweep", "graph-walk"]
# Recorded by perf; more by --trace.
RECORDED = ["page-faults.perf.data"]
# The first two alone; the others are both together, as TMP adds them and as the daemon does.
SOURCES = ["accessed-bits", "trace-samples", "both", "balanced"]
# Fast memory is the footprint divided by each of these.
PARTS = [8, 16, 32, 64, 128]
POLICIES = ["oracle", "history"]
# Two rates differ by chance where pages are equally hot: a hundredth of all accesses is no difference.
CHANCE = 0.01


def rates(tools: Tools, trace: list[str], source: str) -> dict[tuple[str, int], float]:
    """Hit rate by policy and the part of the footprint that is fast, ranked by this source."""
    # Whole pages: a capacity is only the nearest part of the footprint, and 0 for a small trace.
    return {(policy["policy"], 2 ** round(-math.log2(capacity["share_of_footprint"]))): policy["hit_rate"]
            for capacity in tools.simulate(trace, POLICIES, "--source", source, "--sweep") if capacity["fast_bytes"] > 0
            for policy in capacity["policies"] if not policy["is_bound"]}


def run(tools: Tools, options, _folder: str, say) -> list[Table]:
    accesses = 1 << 20 if options.quick else 1 << 22
    traces = {name: ["--generate", name, "--accesses", str(accesses)] for name in GENERATORS}
    for path in [os.path.join(ROOT, "tests", "traces", name) for name in RECORDED] + (options.trace or []):
        if not os.path.exists(path):
            raise Problem(f"--trace {path}: there is no such file")
        traces[os.path.basename(path)] = [path]
    by_trace = {}
    for name, trace in traces.items():
        say(f"{name} by {', '.join(SOURCES)}")
        by_trace[name] = {source: rates(tools, trace, source) for source in SOURCES}
    return [table(policy, by_trace) for policy in POLICIES]


def table(policy: str, by_trace: dict) -> Table:
    """One row a trace and capacity, and how often both together are at least as good as each alone."""
    made = Table(f"{policy}: hit rate by what ranks the pages", ["trace", "fast", *SOURCES])
    cases, kept, worst = 0, {"both": 0, "balanced": 0}, {"both": 0.0, "balanced": 0.0}
    for name, by_source in by_trace.items():
        for part in (part for part in PARTS if (policy, part) in by_source[SOURCES[0]]):
            row = {source: by_source[source][policy, part] for source in SOURCES}
            made.row(name, f"1/{part}", *row.values())
            best = max(row["accessed-bits"], row["trace-samples"])
            cases += 1
            for together in kept:
                kept[together] += row[together] >= best - CHANCE
                worst[together] = max(worst[together], best - row[together])
    for together, count in kept.items():
        made.goal(f"Promised: {together} at least as good as each source alone, to {CHANCE:.0%} of all accesses. Measured: in "
                  f"{count} of {cases} cases, at worst {worst[together]:.1%} below", count == cases)
    return made
