"""Section `atmem`: ATMem's evaluation (CGO 2020, section 7) on its two machines, emulated: five graph programs, each graph, five placements.

    first repetition, profiled --> chunks chosen and moved --> the other repetitions are timed        ATMem, and ours with the same bytes
    all repetitions by a plan: all slow, first touch in the same bytes, all fast                      beside them, in turn

Beside it, on each machine: the profile's cost, and when the moves are paid back (7.4); epsilon (figures 9 and 10). Once, for they do not depend
on the machine that is emulated: the ways to move (table 4), and what parts of a plan add to an allocation.
"""
import dataclasses
import os
from collections.abc import Iterator

import atmem_allocations
import atmem_moves
import atmem_sensitivity
from atmem_choice import (ALL_FAST, ALL_SLOW, ATMEM, BY_PLAN, FIRST_TOUCH, LATER, OURS, choice, optimized,
                          unprofiled)
from emulated import workload
from measure import Contender, Problem, Program, Samples, geometric_mean, interleave, run_once
from table import Table
from tools import ROOT, Tools, must

# ATMem's machines; `--tiers` chooses one of them, or another.
MACHINES = ["emulated:atmem-nvm", "emulated:atmem-mcdram"]
KERNELS = ["bfs", "sssp", "pagerank", "bc", "cc"]
# The goals: ATMem over all fast with this share of the data at most, and all slow over ATMem on the geometric mean.
SLOWER_AT_MOST, DATA_AT_MOST, FASTER_THAN_SLOW = 1.25, 0.18, 1.7
SHARED = os.path.join(os.path.dirname(ROOT), "shared", "graphs")
# Graphs by name: the options that make them. The web graphs are copied, so that they exceed the caches.
RMAT = {False: ["--rmat", "20"], True: ["--rmat", "17"]}
FILES = {"cnr-2000": ("cnr-2000.el.xz", 4), "NotreDame": ("web-NotreDame.txt.gz", 8)}
# Work of a repetition of each kernel, so that it takes about half a second: the option, and its value for R-MAT and for the web graphs.
WORK = {"bfs": ("--roots", 2, 16), "sssp": ("--roots", 1, 4), "pagerank": ("--iterations", 4, 12), "bc": ("--roots", 1, 4), "cc": ("--searches", 4, 4)}
REPEAT = 4


@dataclasses.dataclass(frozen=True)
class Result:
    """A program with one graph, in all placements, and the share of its data that ATMem chose."""

    name: str
    share: float
    samples: Samples

    def ratio(self, way: str, base: str) -> float:
        return self.samples.ratio(way, base, LATER)

    def is_slower(self, way: str, base: str) -> bool:
        """Whether each run took longer than each run of the other."""
        return min(self.samples.values(way, LATER)) > max(self.samples.values(base, LATER))

    def row(self) -> list[object]:
        ways = [ALL_SLOW, FIRST_TOUCH, ATMEM, OURS, ALL_FAST]
        spread = max(self.samples.spread(way, LATER) for way in ways)
        return [self.name, f"{self.share:.1%}", *(self.samples.median(way, LATER) for way in ways), f"{spread:.0%}", self.ratio(ATMEM, ALL_FAST),
                self.ratio(OURS, ALL_FAST), self.ratio(ALL_SLOW, ATMEM)]


def graphs(tools: Tools, folder: str, quick: bool) -> dict[str, str]:
    """The graphs that are there, as files of compressed sparse rows: what takes time then is the kernel, and not text."""
    made = {"rmat": RMAT[quick]}
    for name, (file, copies) in FILES.items():
        path = os.path.join(SHARED, file)
        if os.path.isfile(path):
            made[name] = ["--input", path, "--copies", str(max(copies // 4, 1) if quick else copies)]
    files = {name: os.path.join(folder, f"{name}.csr") for name in made}
    for name, options in made.items():
        must([*workload(tools, "graph", options).command, "--write", files[name]], f"writing the graph {name}")
    return files


def program(tools: Tools, graph: str, file: str, kernel: str) -> Program:
    option, for_rmat, for_web = WORK[kernel]
    words = ["--input", file, "--threads", "1", "--kernel", kernel, option, str(for_rmat if graph == "rmat" else for_web), "--repeat", str(REPEAT)]
    return dataclasses.replace(workload(tools, "graph", words), name=f"{graph}-{kernel}")


def evaluate(tools: Tools, made: Program, profile: str, tiers: str, options, say) -> Result:
    """ATMem's choice among all data; then the placements in turn, each with as many fast bytes as it chose."""
    # A profile tells nothing of the machine that is emulated: one is enough for all of them.
    if not os.path.exists(profile):
        say(f"{made.name}: record")
        run_once(made, Contender("record", tools.record(profile)), options.limit)
    say(f"{made.name}: ATMem's choice on {tiers}")
    fast = choice(tools, made, ATMEM, tiers, options.limit)
    contenders = []
    for policy in BY_PLAN:
        plan = f"{profile.removesuffix('.iso')}-{policy}.plan"
        tools.plan(profile, policy, "100%" if policy == ALL_FAST else f"{fast}B", plan, tiers)
        contenders.append(Contender(policy, tools.guided(plan)))
    contenders.append(unprofiled(tools, tiers, fast))
    contenders += [optimized(tools, policy, tiers, f"{fast}B") for policy in (ATMEM, OURS)]
    samples = interleave(made, contenders, options.rounds, options.limit, say)
    return Result(made.name, fast / tools.footprint(profile), samples)


def on_machine(tools: Tools, files: dict[str, str], tiers: str, folder: str, options, say) -> list[Table]:
    """The programs' times, the cost of the moves, and the sweep of epsilon, on one machine."""
    results, problems = [], []
    for graph, file in files.items():
        for kernel in KERNELS:
            made = program(tools, graph, file, kernel)
            try:
                results.append(evaluate(tools, made, os.path.join(folder, f"{made.name}.iso"), tiers, options, say))
            except Problem as problem:
                problems.append(f"{tiers}: {problem}")
    tables = [summary(results, tiers), atmem_moves.paid_back(results, tiers)] if results else []
    swept = {graph: program(tools, graph, file, atmem_sensitivity.KERNEL) for graph, file in files.items()}
    try:
        tables.append(atmem_sensitivity.sensitivity(tools, swept, tiers, folder, options, say))
    except Problem as problem:
        problems.append(f"{tiers}: {problem}")
    if problems:
        raise Problem("; ".join(problems), tables)
    return tables


def run(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    files = graphs(tools, folder, options.quick)
    machines = [options.tiers] if options.tiers else MACHINES
    parts = [lambda tiers=tiers: on_machine(tools, files, tiers, folder, options, say) for tiers in machines]
    parts.append(lambda: [atmem_moves.ways(tools, options, say)])
    parts.append(lambda: [atmem_allocations.allocations(tools, folder, options, say)])
    problems = []
    for part in parts:
        try:
            yield from part()
        except Problem as problem:
            yield from problem.tables
            problems.append(str(problem))
    if problems:
        raise Problem("; ".join(problems))


def summary(results: list[Result], tiers: str) -> Table:
    table = Table(f"ATMem's programs on {tiers}: seconds of a repetition behind the first (median)",
                  ["program", "data", "all slow", "first touch", "ATMem", "ours", "all fast", "spread", "ATMem / all fast",
                   "ours / all fast", "all slow / ATMem"])
    for result in results:
        table.row(*result.row())
    pairs = [(ATMEM, ALL_FAST), (OURS, ALL_FAST), (ALL_SLOW, ATMEM)]
    means = [geometric_mean([result.ratio(*pair) for result in results]) for pair in pairs]
    table.row("geometric mean", "", *[""] * 6, *means)
    add_goals(table, results, means)
    table.note("Data: what ATMem selects where all memory may be fast, over the footprint of a whole run with the raw arcs, which are cold "
               "once they are loaded. First touch, ATMem and ours have as many fast bytes. ATMem and ours begin as first touch, profile the "
               "first repetition, and move. The slow tier is emulated.")
    missing = [name for name, (file, _) in FILES.items() if not os.path.isfile(os.path.join(SHARED, file))]
    if missing:
        table.note(f"Left out, because {SHARED} has them not: {', '.join(missing)}.")
    return table


def add_goals(table: Table, results: list[Result], means: list[float]) -> None:
    over_fast, ours_over_fast, gain = means
    table.goal_of_each(f"Goal: ATMem at most {SLOWER_AT_MOST} of all fast", [it.name for it in results if it.ratio(ATMEM, ALL_FAST) > SLOWER_AT_MOST])
    table.goal_of_each(f"Goal: with at most {DATA_AT_MOST:.0%} of the data", [it.name for it in results if it.share > DATA_AT_MOST])
    table.goal(f"Goal: at least {FASTER_THAN_SLOW} times as fast as all slow on the geometric mean; {gain:.2f}", gain >= FASTER_THAN_SLOW)
    table.goal_of_each("Goal: ours no slower than ATMem on any, beyond the ranges of both", [it.name for it in results if it.is_slower(OURS, ATMEM)])
    table.goal(f"Goal: ours better on the geometric mean; {ours_over_fast:.3f} against {over_fast:.3f} of all fast", ours_over_fast < over_fast)
