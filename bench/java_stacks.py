"""Section `java`, part `stacks`: call stacks sampled by the virtual machine without stopping a thread, and what they make cold.

    the patched virtual machine, two colours and no guide: all objects hot | the same, which samples call stacks: in turn, all memory fast
"""
import os
import re
from collections.abc import Iterator

from java_machines import Machines
from java_programs import tables_of_coloured
from java_sites import LEAST_ROUNDS, missed_by
from measure import Contender, Problem, Program, Samples, geometric_mean, interleave
from table import Table
from tools import Tools

ALL_HOT, SAMPLED = "all hot", "sampled"
COOLING_MS = 100
# As `isotherm run --java --java-stacks` has it.
EVACUATE_ALL = ["-XX:+UnlockExperimentalVMOptions", "-XX:G1MixedGCLiveThresholdPercent=100", "-XX:G1HeapWastePercent=0"]
MEASURES = {"kernel_seconds": "time", "processor": "CPU"}
# The goals: samples a second, the share of time that they take, and the program's time over all hot.
RATE, SHARE, TIME = 100_000, 0.02, 1.02
STACKS = re.compile(r"stacks: (\d+) samples in ([\d.]+) s, which took ([\d.]+) s of a processor; (\d+) of (\d+) classes hot")
COLOUR = re.compile(r"color (\d+): (\d+)K in \d+ regions")


class Sampled:
    """The runs of one program, and what the virtual machine said at the end of the last one that sampled."""

    def __init__(self, samples: Samples, said: str):
        self.samples = samples
        found = STACKS.search(said)
        if not found:
            raise Problem(f"{samples.program}: the virtual machine said nothing of call stacks at its end: {said[-300:]}")
        count, seconds, processor, self.hot, self.classes = (float(word) for word in found.groups())
        self.rate = count / seconds
        self.share = processor / seconds
        kib = {int(colour): int(size) for colour, size in COLOUR.findall(said)}
        self.cold = kib[1] / max(sum(kib.values()), 1)

    @property
    def rounds(self) -> int:
        return len(self.samples.runs[SAMPLED])

    def ratio(self, measure: str) -> float:
        return self.samples.ratio(SAMPLED, ALL_HOT, measure)

    def spread(self, measure: str) -> float:
        return max(self.samples.spread(way, measure) for way in [ALL_HOT, SAMPLED])

    def row(self) -> list[object]:
        figures = []
        for measure in MEASURES:
            figures += [self.samples.median(ALL_HOT, measure), self.ratio(measure), f"{self.spread(measure):.1%}"]
        classes = f"{self.hot:.0f} of {self.classes:.0f}"
        return [self.samples.program, *figures, f"{self.rate:,.0f}", f"{self.share:.1%}", classes, f"{self.cold:.0%}"]


def measure(tools: Tools, options, folder: str, program: Program, say) -> Sampled:
    machines = Machines(options)
    log = os.path.join(folder, f"{program.name}.stacks.exit")
    colours = [machines.coloured, "-XX:+UseG1GC", "-XX:IsothermHeapColors=2", *EVACUATE_ALL]
    stacks = [f"-XX:IsothermStackCooling={COOLING_MS}", f"-Xlog:gc+heap+exit:file={log}"]
    contenders = [Contender(ALL_HOT, colours), Contender(SAMPLED, [*colours, *stacks])]
    samples = interleave(program, contenders, options.rounds, options.limit, say)
    with open(log, encoding="utf-8") as file:
        return Sampled(samples, file.read())


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    yield from tables_of_coloured(tools, options, folder, say, measure, summary)


def summary(results: list[Sampled]) -> Table:
    columns = [f"{word} {column}" for word in MEASURES.values() for column in [ALL_HOT, SAMPLED, "spread"]]
    table = Table(f"Call stacks sampled without stopping a thread, classes cold after {COOLING_MS} ms, all memory fast: seconds, and the sampled run over them",
                  ["program", *columns, "samples/s", "of a processor", "hot classes", "cold bytes"])
    for result in results:
        table.row(*result.row())
    means = {measure: f"{geometric_mean([result.ratio(measure) for result in results]):.3f}" for measure in MEASURES}
    table.row("geometric mean", "", means["kernel_seconds"], "", "", means["processor"], *[""] * 5)
    too_few = [f"{result.samples.program} {result.rate:,.0f}" for result in results if result.rate < RATE]
    too_costly = [f"{result.samples.program} {result.share:.1%}" for result in results if result.share > SHARE]
    slower = [f"{result.samples.program} {result.ratio('kernel_seconds'):.3f}" for result in results
            if result.ratio("kernel_seconds") > TIME + result.spread("kernel_seconds")]
    table.note(f"Goal: {RATE:,} samples a second: {missed_by(too_few, LEAST_ROUNDS)}.")
    table.note(f"Goal: at most {SHARE:.0%} of a processor: {missed_by(too_costly, LEAST_ROUNDS)}.")
    table.note(f"Goal, time: no program takes more than {TIME} times as much, beyond the spread: {missed_by(slower, results[0].rounds)}.")
    table.note("A sample is a look at the stack of a thread that runs Java code, or has called since the look before. Looks come in bursts of 64 us, with pauses that bound what they take of a processor. Of a "
               "processor: the sampling thread's own time. Hot classes and cold bytes (those of regions with the last colour) at the end of the last run.")
    return table
