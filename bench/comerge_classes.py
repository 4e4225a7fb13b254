"""CoMerge's Table 2: how much each of its 33 programs suffers from slow memory (MEMSYS 2017, section 3.1), predicted and measured.

    record --> the class, from the time that the program waited
           \\-> all data slow, all data fast, in turn: the class, from their times
           \\-> all data in slow memory of limited bandwidth, as the paper's throttle made it: the class, from its time and that of all data fast

By factors, a stream takes 5.32 times as long whatever it asks for. The throttle slows only a program that asks for more than the throttled bandwidth: 2.2 of
11.7 GB/s. The limit is that share of the bandwidth that STREAM has here.
"""
import dataclasses
import glob
import os
from collections.abc import Iterator

from comerge_machine import FAST, LABELS, asked
from comerge_programs import QUICK, TIERS, program, record, short
from measure import Contender, interleave, run_once
from parts import tables_of_each
from programs import named
from table import Table
from tools import Tools

# The paper's Table 2.
CLASSES = {
    "none": ["doitgen", "fdtd-apml", "seidel-2d"],
    "low": ["bicg", "syr2k", "gramschmidt", "adi", "gesummv", "atax"],
    "medium": ["durbin", "syrk", "trmm", "symm", "dynprog", "correlation", "covariance", "mvt", "reg_detect", "gemver", "cholesky", "trisolv"],
    "high": ["gemm", "2mm", "floyd-warshall", "jacobi-2d", "lu", "ludcmp", "jacobi-1d", "fdtd-2d", "3mm", "lookup", "zones", "stream"],
}
# With --quick: one of each class.
QUICK_NAMES = ["doitgen", "bicg", "trisolv", "stream"]
# Goals: programs of the paper's class, and the error of the predicted slow-down.
SAME_CLASS, WITHIN = 24, 0.1
# The classes' limits, all slow over all fast.
LIMITS = [("none", 1.2), ("low", 2.0), ("medium", 3.0)]
ORDER = list(CLASSES)


@dataclasses.dataclass(frozen=True)
class Waits:
    """What the profile of a program tells of its time, with all data fast."""

    # The share of the samples in which it waited for memory beyond the caches, and in which the caches served its data.
    beyond: float
    served: float


@dataclasses.dataclass(frozen=True)
class Result:
    """A program: its class in the paper, and all slow over all fast."""

    name: str
    paper: str
    predicted: float
    measured: float
    # By a limit of slow memory's bandwidth.
    throttled: float
    spread: float
    # Bytes of its data.
    data: int
    waits: Waits

    def error(self) -> float:
        """The part of the gap by which the prediction is off, over the measured time."""
        return self.predicted / self.measured - 1

    def is_same(self) -> bool:
        return class_of(self.measured) == self.paper

    def why(self, factor: float) -> str:
        """What makes the class differ from the paper's, by this run's own figures; `factor`: the time of streams in slow memory."""
        if self.is_same():
            return ""
        if ORDER.index(class_of(self.measured)) > ORDER.index(self.paper):
            most = (dict(LIMITS)[self.paper] - 1) / (factor - 1)
            return f"waits beyond the caches in {self.waits.beyond:.0%} of its time; {self.paper} ends at {most:.0%}"
        if self.data <= largest_cache():
            return "its data fit the cache"
        if self.waits.served > self.waits.beyond:
            return f"caches serve it in {self.waits.served:.0%} of its time"
        least = (LIMITS[ORDER.index(self.paper) - 1][1] - 1) / (factor - 1)
        return f"waits beyond the caches in {self.waits.beyond:.0%} of its time; {self.paper} begins at {least:.0%}"

    def row(self, factor: float) -> list[object]:
        return [self.name, self.paper, class_of(self.measured), class_of(self.predicted), class_of(self.throttled), f"{self.measured:.2f}",
                f"{self.predicted:.2f}", f"{self.throttled:.2f}", f"{self.error():+.1%}",
                f"{self.spread:.1%}", f"{self.data / 2**20:.0f} MiB", f"{self.waits.beyond:.0%}", f"{self.waits.served:.0%}",
                self.why(factor)]


COLUMNS = ["program", "class in the paper", "measured", "predicted", "by a limit", "slow-down", "predicted slow-down", "slow-down by a limit",
           "error", "spread", "data", "waits", "served", "why"]


def largest_cache() -> int:
    """Bytes of the largest cache of a processor; 0 where the kernel does not tell."""
    sizes = [0]
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="utf-8") as file:
            sizes.append(int(file.read().strip().removesuffix("K")) << 10)
    return max(sizes)


def class_of(slowdown: float) -> str:
    return next((name for name, limit in LIMITS if slowdown < limit), "high")


def waits(tools: Tools, profile: str) -> Waits:
    report = tools.report(profile)
    totals = report["totals"]
    samples = max(1, sum(source["taken_samples"] for source in report["sources"]))
    beyond = totals["accesses"] + totals["unattributed_accesses"]
    served = totals["served_by_caches"] + totals["unattributed_served_by_caches"]
    return Waits(beyond / samples, served / samples)


def throttled_machine(tools: Tools, options, say) -> str:
    """The machine of the paper's throttle: its latency, and the share of this machine's bandwidth that it left. That is the bandwidth of STREAM's fastest run of
    three, whose four kernels read and write ten arrays of doubles in each iteration."""
    say("bandwidth")
    iterations = 6
    stream = program(tools, "stream", ["--iterations", str(iterations)])
    rates = []
    for _ in range(3):
        run = run_once(stream, Contender("alone", []), options.limit)
        count = int(run.out.split()[2])
        rates.append(10 * 8 * count * iterations / run.measures["kernel_seconds"])
    latency, bandwidth = LABELS[TIERS.removeprefix("emulated:")]
    limit = max(rates) * bandwidth / FAST[1]
    return f"emulated:B:1,L:{latency / FAST[0]:.2f},limit:{limit / 2**20:.0f}MiB/s"


def evaluate(tools: Tools, name: str, paper: str, machine: str, folder: str, options, say) -> Result:
    """One profile; the predicted slow-down, and the measured ones; `machine` has a limit of the bandwidth."""
    made = short(tools, name, options) if options.quick and name in QUICK else program(tools, name)
    profile = record(tools, made, folder, options, say)
    inside = os.path.dirname(profile)
    predicted = tools.json(["colocate", profile, "--tiers", TIERS, "-o", inside], f"predicting {name}")["programs"][0]
    plans = {way: os.path.join(inside, f"{way}.plan") for way in ("all-slow", "all-fast")}
    for way, plan in plans.items():
        tools.plan(profile, way, "100%", plan, TIERS)
    plans["throttled"] = os.path.join(inside, "throttled.plan")
    tools.plan(profile, "all-slow", "100%", plans["throttled"], machine)
    contenders = [Contender(way, tools.guided(plan)) for way, plan in plans.items()]
    samples = interleave(made, contenders, options.rounds, options.limit, say)
    return Result(name, paper, predicted["all_slow"], samples.ratio("all-slow", "all-fast", "processor"),
                  samples.ratio("throttled", "all-fast", "processor"),
                  max(samples.spread(way, "processor") for way in plans), predicted["footprint_bytes"], waits(tools, profile))


def names(options) -> list[str]:
    """Those of --program, some with --quick, else all."""
    every = [name for of_class in CLASSES.values() for name in of_class]
    return list(named(dict.fromkeys(every), options.program or (QUICK_NAMES if options.quick else None)))


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    papers = {name: paper for paper, of_class in CLASSES.items() for name in of_class}
    machine = throttled_machine(tools, options, say)
    factor = asked(tools, TIERS.removeprefix("emulated:"))[1]
    yield from tables_of_each(say.steps(names(options)), lambda name: evaluate(tools, name, papers[name], machine, folder, options, say),
                              lambda results: [summary(results, factor, machine)])


def summary(results: list[Result], factor: float, machine: str) -> Table:
    table = Table(f"CoMerge's programs on {TIERS}: all slow over all fast (table 2)", COLUMNS)
    for result in results:
        table.row(*result.row(factor))
    same = sum(result.is_same() for result in results)
    near = sum(abs(result.error()) <= WITHIN for result in results)
    table.goal(f"Goal: the paper's class for at least {SAME_CLASS} of its 33 programs. Measured: {same} of {len(results)}", same >= SAME_CLASS)
    by_limit = sum(class_of(result.throttled) == result.paper for result in results)
    table.note(f"By a limit, on {machine}, which slows a program only where it asks for more, as the paper's throttle did: "
               f"{by_limit} of {len(results)}. Predictions are of factors.")
    table.note(f"Predictions within {WITHIN:.0%}: {near} of {len(results)}.")
    table.note("Times of the processor, which a thread keeps while it waits for memory: other programs on the machine take little part in them.")
    table.note("waits: the share of its samples, recorded with all data fast, in which a program waited for memory beyond the caches; served: in which the caches "
               "served its data. A class ends at the share with which streams in slow memory, "
               f"{factor:.2f} times as slow, slow the program to its limit.")
    table.note(f"The largest cache of a processor here has {largest_cache() / 2**20:.0f} MiB, the paper's had 12; SPECIFICATION.md (A13) explains each class that differs.")
    table.note("The paper's machine was slower, with smaller caches; sizes are those of workloads/polybench/README.md, which says what fits in a cache. "
               "lookup, zones and stream stand for XSBench, CLOMP and STREAM.")
    return table
