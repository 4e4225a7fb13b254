"""Section `atmem`: ATMem's evaluation (CGO 2020, section 7) on an emulated machine: five graph programs, each graph, four placements.

    record --> plan by atmem, as much fast memory as it asks for --> compare: all slow, first touch, guided, all fast
           \-> plan by thermos with the same bytes ---------------> compare
    sensitivity to epsilon, and the cost of the profile (atmem_sensitivity.py)
"""
import dataclasses
import json
import os

import atmem_sensitivity
from emulated import ALL_SLOW, GUIDED, PLACEMENTS, Comparison, compare_plan, workload
from measure import Contender, Problem, Program, geometric_mean, run_once
from table import Table
from tools import ROOT, Tools, must

# ATMem's first machine: memory with three times the latency of DRAM and 0.38 of its bandwidth.
TIERS = "emulated:B:2.63,L:3"
KERNELS = ["bfs", "sssp", "pagerank", "bc", "cc"]
ATMEM, OURS = "atmem", "thermos"
# The goals: guided over all fast with this share of the data at most, and all slow over guided on the geometric mean.
SLOWER_AT_MOST, DATA_AT_MOST, FASTER_THAN_SLOW = 1.25, 0.18, 1.7
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "graphs")
# Graphs by name: the options of the graph program. The web graphs are copied, so that they exceed the caches.
GRAPHS = {"rmat": ["--rmat", "20"]}
FILES = {"cnr-2000": ("cnr-2000.el.xz", 4), "NotreDame": ("web-NotreDame.txt.gz", 8)}
# Repetitions of each kernel, so that a run takes some seconds.
WORK = {"bfs": ["--roots", "{}"], "sssp": ["--roots", "{}"], "pagerank": ["--iterations", "{}"], "bc": ["--roots", "{}"],
        "cc": ["--repeat", "{}"]}
AMOUNT = {"bfs": 48, "sssp": 8, "pagerank": 40, "bc": 8, "cc": 24}


@dataclasses.dataclass(frozen=True)
class Result:
    """A program with one graph, placed by one policy."""

    graph: str
    kernel: str
    policy: str
    comparison: Comparison
    ratio: float

    def name(self) -> str:
        return f"{self.graph} {self.kernel}"

    def over_fast(self) -> float:
        return self.comparison.ratio(GUIDED)

    def row(self) -> list[object]:
        times = [self.comparison.median(way) for way in PLACEMENTS]
        return [self.name(), self.policy, f"{self.ratio:.1%}", *times, f"{self.over_fast():.3f}",
                f"{self.comparison.median(ALL_SLOW) / self.comparison.median(GUIDED):.3f}"]


def graphs(quick: bool) -> dict[str, list[str]]:
    """The graphs that are there, with the options that make them."""
    found = {"rmat": ["--rmat", "18"]} if quick else dict(GRAPHS)
    for name, (file, copies) in FILES.items():
        path = os.path.join(SHARED, file)
        if os.path.isfile(path):
            found[name] = ["--input", path, "--copies", str(max(copies // 4, 1) if quick else copies)]
    return found


def program(tools: Tools, graph: str, options: list[str], kernel: str, quick: bool) -> Program:
    amount = max(AMOUNT[kernel] // (4 if quick else 1), 1)
    words = [*options, "--threads", "1", "--kernel", kernel, *(word.format(amount) for word in WORK[kernel])]
    return dataclasses.replace(workload(tools, "graph", words), name=f"{graph}-{kernel}")


def fast_bytes(tools: Tools, profile: str, plan: str) -> tuple[int, float]:
    """Bytes that a plan puts into fast memory, and their share of the footprint."""
    printed = must([tools.isotherm, "--quiet", "report", "--json", "--plan", plan, profile], "reading a plan")
    report = json.loads(printed)
    planned = report["plan"]["tiers"][0]["planned_bytes"]
    return planned, planned / max(report["totals"]["footprint_bytes"], 1)


def evaluate(tools: Tools, made: Program, names: tuple[str, str], folder: str, options, say) -> list[Result]:
    """One profile; ATMem's plan with as much fast memory as it asks for, ours with the same bytes; both compared."""
    stem = os.path.join(folder, made.name)
    profile = f"{stem}.iso"
    say(f"{made.name}: record")
    run_once(made, Contender("record", tools.record(profile)), options.limit)
    results, fast = [], "100%"
    for policy in (ATMEM, OURS):
        plan = f"{stem}-{policy}.plan"
        tools.plan(profile, policy, fast, plan, TIERS)
        bytes_there, ratio = fast_bytes(tools, profile, plan)
        if policy == ATMEM:
            # Planned again, so that its guided run has no more room than it asked for.
            fast = f"{max(bytes_there, 1 << 20)}B"
            tools.plan(profile, policy, fast, plan, TIERS)
        say(f"{made.name}: compare {policy}, {options.rounds} rounds")
        results.append(Result(*names, policy, compare_plan(tools, made, plan, options), ratio))
    return results


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    results, problems, all_graphs = [], [], graphs(options.quick)
    for graph, words in all_graphs.items():
        for kernel in KERNELS:
            made = program(tools, graph, words, kernel, options.quick)
            try:
                results += evaluate(tools, made, (graph, kernel), folder, options, say)
            except Problem as problem:
                problems.append(str(problem))
    tables = [summary(results)] if results else []

    def programs(kernel: str) -> dict[str, Program]:
        return {graph: program(tools, graph, words, kernel, options.quick) for graph, words in all_graphs.items()}

    searches = programs(atmem_sensitivity.KERNEL)
    tables.append(atmem_sensitivity.sensitivity(tools, searches, TIERS, folder, fast_bytes, options, say))
    recorded = {f"{graph} {kernel}": made for kernel in KERNELS for graph, made in programs(kernel).items()}
    tables.append(atmem_sensitivity.profile_cost(tools, recorded, folder, options, say))
    if problems:
        raise Problem("; ".join(problems), tables)
    return tables


def summary(results: list[Result]) -> Table:
    table = Table(f"ATMem's programs on {TIERS}: seconds of whole runs (median)",
                  ["program", "policy", "data", *(way.replace("_", " ") for way in PLACEMENTS), "over all fast", "faster than slow"])
    for result in results:
        table.row(*result.row())
    by_policy = {policy: [result for result in results if result.policy == policy] for policy in (ATMEM, OURS)}
    for policy, rows in by_policy.items():
        gains = [row.comparison.median(ALL_SLOW) / row.comparison.median(GUIDED) for row in rows]
        table.row("geometric mean", policy, "", *[""] * len(PLACEMENTS), f"{geometric_mean([row.over_fast() for row in rows]):.3f}",
                  f"{geometric_mean(gains):.3f}")
    add_goals(table, by_policy)
    table.note("Data: bytes in fast memory over the footprint, by the plan. ATMem is given all memory and takes what its selection "
               "asks for; ours is given as much. Reading the graph is part of every run. The slow tier is emulated.")
    missing = [name for name, (file, _) in FILES.items() if not os.path.isfile(os.path.join(SHARED, file))]
    if missing:
        table.note(f"Left out, because {SHARED} has them not: {', '.join(missing)}.")
    return table


def add_goals(table: Table, by_policy: dict[str, list[Result]]) -> None:
    def goal(text: str, missed: list[str]) -> None:
        table.note(f"{text}: {'not reached by ' + ', '.join(missed) if missed else 'reached'}.")

    theirs, ours = by_policy[ATMEM], by_policy[OURS]
    slow = [row.name() for row in theirs if row.over_fast() > SLOWER_AT_MOST]
    goal(f"Goal: ATMem at most {SLOWER_AT_MOST} of all fast", slow)
    goal(f"Goal: with at most {DATA_AT_MOST:.0%} of the data", [row.name() for row in theirs if row.ratio > DATA_AT_MOST])
    gain = geometric_mean([row.comparison.median(ALL_SLOW) / row.comparison.median(GUIDED) for row in theirs])
    goal(f"Goal: at least {FASTER_THAN_SLOW} times as fast as all slow on the geometric mean; {gain:.2f}",
         [] if gain >= FASTER_THAN_SLOW else [ATMEM])
    worse = [mine.name() for mine, other in zip(ours, theirs)
             if mine.comparison.least(GUIDED) > other.comparison.most(GUIDED)]
    goal("Goal: ours no slower than ATMem on any, beyond the ranges of both", worse)
    means = [geometric_mean([row.over_fast() for row in rows]) for rows in (ours, theirs)]
    goal(f"Goal: ours better on the geometric mean; {means[0]:.3f} against {means[1]:.3f} of all fast", [] if means[0] < means[1] else [OURS])
