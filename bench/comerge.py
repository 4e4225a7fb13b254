"""Section `comerge`: how much each program of CoMerge's Table 2 suffers from slow memory (MEMSYS 2017, sections 3.1 and 3.2), predicted and measured.

    record --> the class, from the time that the program waited
           \-> all data slow, all data fast, in turn: the class, from their times
"""
import dataclasses
import glob
import json
import os

import comerge_benefit
import comerge_figures
import comerge_machine
import comerge_online
import comerge_sharing
from comerge_programs import TIERS, program
from measure import Contender, Problem, interleave, run_once
from table import Table
from tools import Tools, must

# The paper's Table 2.
CLASSES = {
    "none": ["doitgen", "fdtd-apml", "seidel-2d"],
    "low": ["bicg", "syr2k", "gramschmidt", "adi", "gesummv", "atax"],
    "medium": ["durbin", "syrk", "trmm", "symm", "dynprog", "correlation", "covariance", "mvt", "reg_detect", "gemver", "cholesky", "trisolv"],
    "high": ["gemm", "2mm", "floyd-warshall", "jacobi-2d", "lu", "ludcmp", "jacobi-1d", "fdtd-2d", "3mm", "lookup", "zones", "stream"],
}
# Goals: programs of the paper's class, and the error of the predicted slow-down.
SAME_CLASS, WITHIN = 24, 0.1
# The classes' limits, all slow over all fast.
LIMITS = [("none", 1.2), ("low", 2.0), ("medium", 3.0)]


@dataclasses.dataclass(frozen=True)
class Result:
    """A program: its class in the paper, and all slow over all fast."""

    name: str
    paper: str
    predicted: float
    measured: float
    spread: float
    # Bytes of its data.
    data: int

    def error(self) -> float:
        """The part of the gap by which the prediction is off, over the measured time."""
        return self.predicted / self.measured - 1

    def is_same(self) -> bool:
        return class_of(self.measured) == self.paper

    def row(self) -> list[object]:
        return [self.name, self.paper, class_of(self.measured), class_of(self.predicted), f"{self.measured:.2f}", f"{self.predicted:.2f}",
                f"{self.error():+.1%}", f"{self.spread:.1%}", f"{self.data / 2**20:.0f} MiB"]


def largest_cache() -> int:
    """Bytes of the largest cache of a processor; 0 where the kernel does not tell."""
    sizes = [0]
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="utf-8") as file:
            sizes.append(int(file.read().strip().removesuffix("K")) << 10)
    return max(sizes)


def class_of(slowdown: float) -> str:
    return next((name for name, limit in LIMITS if slowdown < limit), "high")


def evaluate(tools: Tools, name: str, paper: str, folder: str, options, say) -> Result:
    """One profile; the predicted slow-down, and the measured one."""
    made = program(tools, name)
    profile = os.path.join(folder, f"{name}.iso")
    say(f"{name}: record")
    run_once(made, Contender("record", tools.record(profile)), options.limit)
    command = [tools.isotherm, "--quiet", "colocate", profile, "--tiers", TIERS, "--json", "-o", folder]
    predicted = json.loads(must(command, f"predicting {name}"))["programs"][0]
    plans = {way: os.path.join(folder, f"{name}-{way}.plan") for way in ("all-slow", "all-fast")}
    for way, plan in plans.items():
        tools.plan(profile, way, "100%", plan, TIERS)
    contenders = [Contender(way, tools.guided(plan)) for way, plan in plans.items()]
    samples = interleave(made, contenders, options.rounds, options.limit, say)
    return Result(name, paper, predicted["all_slow"], samples.ratio("all-slow", "all-fast", "wall"),
                  max(samples.spread(way, "wall") for way in plans), predicted["footprint_bytes"])


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    wanted = [(name, paper) for paper, names in CLASSES.items() for name in names]
    if options.program:
        wanted = [(name, paper) for name, paper in wanted if name in options.program]
    results, problems = [], []
    for name, paper in wanted[::8] if options.quick else wanted:
        try:
            results.append(evaluate(tools, name, paper, folder, options, say))
        except Problem as problem:
            problems.append(str(problem))
    tables = [summary(results)] if results else []
    others = [] if options.program else [
        lambda: [comerge_machine.table(tools, options, say)],
        lambda: comerge_figures.tables(tools, [name for name, _ in wanted], folder, options, say),
        lambda: [comerge_benefit.table(tools, options, say)],
        lambda: comerge_sharing.tables(tools, options, folder, say),
        lambda: comerge_online.tables(tools, options, folder, say),
    ]
    for make in others:
        try:
            tables += make()
        except Problem as problem:
            problems.append(str(problem))
            tables += problem.tables
    if problems:
        raise Problem("; ".join(problems), tables)
    return tables


def summary(results: list[Result]) -> Table:
    table = Table(f"CoMerge's programs on {TIERS}: all slow over all fast",
                  ["program", "class in the paper", "measured", "predicted", "slow-down", "predicted slow-down", "error", "spread", "data"])
    for result in results:
        table.row(*result.row())
    same = sum(result.is_same() for result in results)
    near = sum(abs(result.error()) <= WITHIN for result in results)
    table.note(f"Goal: the paper's class for at least {SAME_CLASS} of its 33 programs. Measured: {same} of {len(results)}: "
               f"{'reached' if same >= SAME_CLASS else 'not reached'}.")
    table.note(f"Predictions within {WITHIN:.0%}: {near} of {len(results)}.")
    table.note(f"The largest cache of a processor here has {largest_cache() / 2**20:.0f} MiB, the paper's had 12; SPECIFICATION.md (A13) explains each class that differs.")
    table.note("The paper's machine was slower, with smaller caches; sizes are those of workloads/polybench/README.md, which says what fits in a cache. "
               "lookup, zones and stream stand for XSBench, CLOMP and STREAM.")
    return table
