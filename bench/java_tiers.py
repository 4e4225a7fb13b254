"""Section `java`, part `guided`: Java programs on the emulated machine, by a plan and as the virtual machine places objects itself.

    profile --plan, fast memory half of the footprint--> `isotherm run --plan --java`
    `isotherm run --java`, with --java-stacks or without: no plan; classes get their colours while the program runs
    first touch, all fast: the same virtual machine and the same emulated machine, no plan; all objects have one colour
"""
import dataclasses
import json
import os
from collections.abc import Iterator

from java_machines import Machines
from java_programs import tables_of_coloured
from java_sites import LEAST_ROUNDS, profile_of
from measure import Contender, Problem, Program, Samples, geometric_mean, interleave
from table import Table
from tools import Tools

TIERS, FAST = "emulated:cxl", "50%"
FIRST_TOUCH, COLD_SET, THERMOS, ALL_FAST = "first touch", "cold-set=5%", "thermos", "all fast"
GUIDED = [COLD_SET, THERMOS]
ONLINE = {"online": [], "call stacks": ["--java-stacks"]}
WAYS = [FIRST_TOUCH, *GUIDED, *ONLINE, ALL_FAST]
# The goals: the share of the gap that is closed on the geometric means, and what the cold tier receives at most of the accesses.
CLOSED, COLD_ACCESSES = 0.5, 0.10


def fast_bytes(plan: str) -> int:
    """The capacity of the fast tier of a plan."""
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "B": 1}
    with open(plan, encoding="utf-8") as file:
        [size] = [words[words.index("capacity") + 1] for words in map(str.split, file) if words[:2] == ["tier", "fast"]]
    unit = next(unit for unit in units if size.endswith(unit))
    return int(float(size.removesuffix(unit)) * units[unit])


def one_colour(tools: Tools, machines: Machines, stem: str, name: str, fast: int, hot_heap: int) -> Contender:
    """No plan: all objects are hot. Regions of the heap are fast in the order in which the collector takes them, up to this many bytes; 0 is no limit."""
    guide = f"{stem}.empty.guide"
    with open(guide, "w", encoding="utf-8") as file:
        file.write("# All objects are hot.\n")
    flags = ["-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={guide}", f"-XX:IsothermHotHeapSize={hot_heap}"]
    prefix = tools.by_policy("none", TIERS, fast, "--summary", summary_path(stem, name))
    return Contender(name, [*prefix, machines.coloured, *flags])


def by_plan(tools: Tools, machines: Machines, stem: str, policy: str) -> Contender:
    more = ["--java", "--java-home", machines.home, "--summary", summary_path(stem, policy)]
    return Contender(policy, [*tools.guided(plan_path(stem, policy), *more), machines.coloured])


def online(tools: Tools, machines: Machines, stem: str, name: str, fast: int) -> Contender:
    prefix = tools.coloured(machines.home, TIERS, fast, "--summary", summary_path(stem, name), *ONLINE[name])
    return Contender(name, [*prefix, machines.coloured])


def plan_path(stem: str, policy: str) -> str:
    return f"{stem}.{policy.rstrip('%')}.plan"


def summary_path(stem: str, way: str) -> str:
    return f"{stem}.{way.rstrip('%').replace(' ', '-')}.summary.json"


def fast_share(stem: str, way: str) -> float | None:
    """The share of fast memory in the traffic of the last run; None where no sample saw any."""
    with open(summary_path(stem, way), encoding="utf-8") as file:
        summary = json.load(file)
    counters = summary["runtime"]["counters"]
    fast, slow = counters["fast_traffic_bytes"], counters["slow_traffic_bytes"]
    if not summary["placed"]:
        raise Problem(f"{stem}, {way}: no machine is emulated by time here: its summary says that nothing was placed")
    return fast / (fast + slow) if fast + slow else None


@dataclasses.dataclass(frozen=True)
class Guided:
    """The runs of one program."""

    samples: Samples
    fast: int
    shares: dict[str, float | None]

    @property
    def rounds(self) -> int:
        return len(self.samples.runs[ALL_FAST])

    def seconds(self, way: str) -> float:
        return self.samples.median(way, "kernel_seconds")

    def spread(self) -> float:
        return max(self.samples.spread(way, "kernel_seconds") for way in WAYS)

    def over_all_fast(self, way: str) -> float:
        return self.samples.ratio(way, ALL_FAST, "kernel_seconds")

    def pauses(self, way: str) -> float:
        return self.samples.median(way, "gc_seconds")

    def row(self) -> list[object]:
        return [self.samples.program, f"{self.fast / 2**20:.0f}", *(self.seconds(way) for way in WAYS), f"{self.spread():.1%}",
                *("" if self.shares[way] is None else f"{self.shares[way]:.0%}" for way in WAYS[:-1]), *(f"{self.pauses(way):.3f}" for way in WAYS[:-1])]


def measure(tools: Tools, options, folder: str, program: Program, say) -> Guided:
    machines = Machines(options)
    stem = os.path.join(folder, program.name)
    profile = profile_of(tools, options, folder, program)
    for policy in GUIDED:
        tools.plan(profile, policy, FAST, plan_path(stem, policy), tiers=TIERS)
    fast = fast_bytes(plan_path(stem, COLD_SET))
    ways = [one_colour(tools, machines, stem, FIRST_TOUCH, fast, fast), *(by_plan(tools, machines, stem, policy) for policy in GUIDED),
            *(online(tools, machines, stem, name, fast) for name in ONLINE), one_colour(tools, machines, stem, ALL_FAST, 4 * fast, 0)]
    samples = interleave(program, ways, options.rounds, options.limit, say)
    return Guided(samples, fast, {way: fast_share(stem, way) for way in WAYS})


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    yield from tables_of_coloured(tools, options, folder, say, measure, summary)


def summary(results: list[Guided]) -> Table:
    table = Table(f"Guided Java programs on {TIERS}, fast memory {FAST} of the footprint: seconds of the measured phase (medians)",
                  ["program", "fast MiB", *WAYS, "spread", *(f"fast {way}" for way in WAYS[:-1]), *(f"GC s {way}" for way in WAYS[:-1])])
    for result in results:
        table.row(*result.row())
    means = {way: geometric_mean([result.over_all_fast(way) for result in results]) for way in WAYS}
    table.row("over all fast, geometric mean", "", *means.values(), *[""] * (2 * len(WAYS) - 1))
    for policy in [*GUIDED, *ONLINE]:
        table.note(gap_goal(policy, results))
    table.note(cold_goal(results))
    table.note("First touch and all fast: a heap with one colour, without a plan; its regions take fast memory in the order in which the collector takes them. The virtual "
               "machine's own memory has as much fast memory again, so first touch has more than the plans. Fast: share of fast memory in the traffic that the emulated "
               "machine counted in the last round, empty where it counted none. GC: pauses of the whole run.")
    table.note("Online and call stacks: without a plan, by the sampled accesses of classes once an epoch, and by sampled call stacks. The heap has three quarters of the fast memory.")
    table.note("A guided program can be faster than all fast, which has one colour: two bring hot objects together, so that more of them fit in the caches. The part `colours` has "
               "that effect alone.")
    table.note("The slow tier is emulated: same memory, a thread is delayed at its own timer samples. Ratios mean something, absolute times do not.")
    return table


def gap_goal(policy: str, results: list[Guided]) -> str:
    """The verdict of the programs that first touch slows beyond the spread: the others have no gap to close."""
    slowed = [result for result in results if result.over_all_fast(FIRST_TOUCH) > 1 + result.spread()]
    goal = f"Goal: at least {CLOSED:.0%} of the gap between first touch and all fast is closed, on the geometric means. By {policy}: "
    if results[0].rounds < LEAST_ROUNDS:
        return f"{goal}not judged, because {LEAST_ROUNDS} rounds are the least that have a spread."
    if not slowed:
        return f"{goal}no program has a gap beyond the spread."
    first, guided = (geometric_mean([result.over_all_fast(way) for result in slowed]) for way in (FIRST_TOUCH, policy))
    closed = (first - guided) / (first - 1)
    names = ", ".join(result.samples.program for result in slowed)
    return f"{goal}{closed:.0%}, of the programs whose gap is beyond the spread ({names}): {'reached' if closed >= CLOSED else 'not reached'}."


def cold_goal(results: list[Guided]) -> str:
    cold = {result.samples.program: 1 - result.shares[COLD_SET] for result in results if result.shares[COLD_SET] is not None}
    missed = [f"{name} {share:.0%}" for name, share in cold.items() if share > COLD_ACCESSES]
    verdict = f"missed by {', '.join(missed)}" if missed else "reached by all"
    return (f"Goal: by {COLD_SET} the cold tier receives at most {COLD_ACCESSES:.0%} of the accesses in the run, among them those that make the data: {verdict}.")
