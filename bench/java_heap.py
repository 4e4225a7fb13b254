"""Section `java`, part `colours`: what the virtual machine with a coloured heap costs where all memory is fast.

    java of the machine | the patched one, no colours | the patched one, two colours by a guide file: in turn
"""
import os
import statistics
from collections.abc import Iterator

from java_machines import Machines
from java_programs import noted, tables_of_programs
from java_sites import LEAST_ROUNDS, missed_by, profile_of
from machine import first_line
from measure import Contender, Program, Samples, geometric_mean, interleave
from table import Table
from tools import Tools

INSTALLED, NO_COLOURS, TWO_COLOURS = "installed", "no colours", "two colours"
WAYS = [INSTALLED, NO_COLOURS, TWO_COLOURS]
POLICY = "cold-set=5%"
# What is compared, with its name in the table.
MEASURES = {"kernel_seconds": "time", "processor": "CPU"}
# The goals of two colours over the installed virtual machine: time, and time of collections.
TIME, PAUSES = 1.02, 1.05
# Seconds. The virtual machine counts milliseconds.
LEAST_PAUSES = 0.05


def contenders(tools: Tools, options, folder: str, program: Program) -> list[Contender]:
    machines = Machines(options)
    profile = profile_of(tools, options, folder, program)
    stem = os.path.join(folder, f"{program.name}.colours")
    tools.plan(profile, POLICY, "50%", f"{stem}.plan", tiers="emulated:cxl", guide=f"{stem}.guide")
    colours = ["-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={stem}.guide"]
    return [Contender(INSTALLED, [machines.installed]), Contender(NO_COLOURS, [machines.coloured]),
            Contender(TWO_COLOURS, [machines.coloured, *colours])]


class Cost:
    """The runs of one program."""

    def __init__(self, samples: Samples):
        self.samples = samples
        self.rounds = len(samples.runs[INSTALLED])
        self.pauses = {way: samples.values(way, "gc_seconds") for way in WAYS}

    def ratio(self, way: str, measure: str) -> float:
        return self.samples.ratio(way, INSTALLED, measure)

    def spread(self, measure: str) -> float:
        return max(self.samples.spread(way, measure) for way in WAYS)

    def is_slower(self, way: str, most: float, measure: str) -> bool:
        """Whether the ratio is above the goal by more than noise."""
        return self.ratio(way, measure) > most + self.spread(measure)

    def pause_ratio(self, way: str) -> float | None:
        """Median of the ratios within the rounds; None where the program hardly collects."""
        if min(self.pauses[INSTALLED]) < LEAST_PAUSES:
            return None
        return statistics.median(one / base for one, base in zip(self.pauses[way], self.pauses[INSTALLED]))

    def row(self) -> list[object]:
        shown = ["" if self.pause_ratio(way) is None else f"{self.pause_ratio(way):.2f}" for way in WAYS[1:]]
        figures = []
        for measure in MEASURES:
            figures += [self.samples.median(INSTALLED, measure), *(self.ratio(way, measure) for way in WAYS[1:]), f"{self.spread(measure):.1%}"]
        return [self.samples.program, *figures, f"{statistics.median(self.pauses[INSTALLED]):.3f}", *shown]


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    # Before minutes of recording, so that a missing one is named at once.
    machines = Machines(options)
    machines.check_coloured()
    versions = f"Installed: {version(machines.installed)}. Coloured: {version(machines.coloured)}."

    def measure(program: Program) -> Cost:
        return Cost(interleave(program, contenders(tools, options, folder, program), options.rounds, options.limit, say))

    yield from tables_of_programs(tools, options, folder, say, measure, lambda costs: [noted(summary(costs), [versions])])


def version(java: str) -> str:
    return f"{first_line([java, '-version'])}, {java}"


def summary(costs: list[Cost]) -> Table:
    columns = [f"{word} {way}" for word in MEASURES.values() for way in [INSTALLED, *WAYS[1:], "spread"]]
    table = Table("The coloured heap, all memory fast: seconds of the installed virtual machine, and the others over it",
                  ["program", *columns, *(f"GC {way}" for way in WAYS)])
    for cost in costs:
        table.row(*cost.row())
    table.row("geometric mean", *mean_cells(costs))
    for measure, word in MEASURES.items():
        add_goal(table, costs, NO_COLOURS, 1.0, measure, f"Goal, {word}: without colours no program is slower beyond the spread")
        add_goal(table, costs, TWO_COLOURS, TIME, measure, f"Goal, {word}: with two colours no program takes more than {TIME} times as much, beyond the spread")
    mean = mean_pauses(costs, TWO_COLOURS)
    if mean is not None and costs[0].rounds >= LEAST_ROUNDS:
        table.goal(f"Goal: collections with two colours take at most {PAUSES} times as long: {mean:.2f} on the geometric mean", mean <= PAUSES)
    table.note("A ratio below 1 is no error: where hot objects lie between cold ones, two colours bring them together, and more of them fit in the caches.")
    table.note(f"Two colours: cold sites by {POLICY}. Time is that of the measured phase, CPU the processor time of the whole run, collector and compilers included: on a machine "
               f"that others use it is the better figure. GC: pauses of the whole run; no ratio where they are less than {LEAST_PAUSES:g} s. Spread: the largest of the three.")
    return table


def mean_cells(costs: list[Cost]) -> list[str]:
    cells = []
    for measure in MEASURES:
        cells += ["", *(f"{geometric_mean([cost.ratio(way, measure) for cost in costs]):.3f}" for way in WAYS[1:]), ""]
    means = [mean_pauses(costs, way) for way in WAYS[1:]]
    return [*cells, "", *("" if mean is None else f"{mean:.2f}" for mean in means)]


def mean_pauses(costs: list[Cost], way: str) -> float | None:
    """Of the programs that collect enough to tell."""
    ratios = [cost.pause_ratio(way) for cost in costs if cost.pause_ratio(way) is not None]
    return geometric_mean(ratios) if ratios else None


def add_goal(table: Table, costs: list[Cost], way: str, most: float, measure: str, text: str) -> None:
    slower = [f"{cost.samples.program} {cost.ratio(way, measure):.3f}" for cost in costs if cost.is_slower(way, most, measure)]
    table.note(f"{text}: {missed_by(slower, costs[0].rounds)}.")
