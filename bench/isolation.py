"""Section `isolation`: MemBrain's figure 7: how close sampled accesses and bandwidths by isolation are, site by site and as guidance.

    record --isolate --> share of each site: of the samples, of the bandwidth --> their order
                    \\-> thermos by either --> first touch, by samples, by isolation, all fast, in turn
"""
import dataclasses
import os
import statistics

from comerge_programs import program
from emulated import kernel, workload
from measure import Contender, Problem, Program, Samples, geometric_mean, interleave, run_once
from parts import tables_of_each
from programs import C, CPP, named
from table import Table
from tools import Tools

# Programs with several sites that are used in different ways: of data that is all alike, such as the forty fields of ocean, the order is chance.
KERNELS, WORKLOADS, POLYBENCH = ["spmv", "join"], ["graph"], ["fdtd-2d", "3mm"]
TIERS, FAST = "emulated", "25%"
# The goals: the order of the sites above this share, by Spearman's coefficient, and the time of one guided run over the other's.
LEAST_SHARE, SAME_ORDER, WITHIN = 0.02, 0.9, 0.05
# Both are of all programs; the order of fewer sites than these says nothing.
PROGRAMS, LEAST_SITES = 5, 3
# By what thermos plans, as `isotherm plan --value` names it, and the placements between which it stands.
SAMPLED, ISOLATED = VALUES = ["accesses", "bandwidth"]
FIRST_TOUCH, ALL_FAST = "first-touch", "all-fast"
BOUNDS = {FIRST_TOUCH: FAST, ALL_FAST: "100%"}


@dataclasses.dataclass(frozen=True)
class Site:
    """A site: its shares of the samples on all sites, and of the bandwidth of all."""

    name: str
    sampled: float
    isolated: float


@dataclasses.dataclass(frozen=True)
class Result:
    """A program: its sites above the least share, and its guided runs."""

    name: str
    sites: list[Site]
    samples: Samples

    def order(self) -> float | None:
        """None where too few sites have an order."""
        if len(self.sites) < LEAST_SITES:
            return None
        return spearman([site.sampled for site in self.sites], [site.isolated for site in self.sites])

    def over_all_fast(self, way: str) -> float:
        return self.samples.ratio(way, ALL_FAST, "wall")

    def ratio(self) -> float:
        """Guided by isolation over guided by samples."""
        return self.samples.ratio(ISOLATED, SAMPLED, "wall")

    def spread(self) -> float:
        return max(self.samples.spread(way, "wall") for way in VALUES)


def ranks(values: list[float]) -> list[float]:
    """From 1; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) + 1) / 2 for value in values]


def spearman(one: list[float], other: list[float]) -> float:
    """The correlation of the ranks."""
    one, other = ranks(one), ranks(other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        return 1.0 if one == other else 0.0
    return statistics.correlation(one, other)


def shares(tools: Tools, profile: str, value: str, folder: str) -> dict[str, float]:
    """The share of each site in the value of all, as a plan of all sites lists them."""
    plan = os.path.join(folder, "all.plan")
    tools.plan(profile, ALL_FAST, "100%", plan, TIERS, value)
    with open(plan, encoding="utf-8") as file:
        words = [line.split() for line in file if line.startswith("site ")]
    values = {line[1]: int(line[line.index("value") + 1]) for line in words}
    whole = sum(values.values())
    if not whole:
        raise Problem(f"{profile}: no site has any {value}")
    return {site: each / whole for site, each in values.items()}


def sites(tools: Tools, profile: str, folder: str) -> list[Site]:
    """The sites above the least share by either, the one with most samples first."""
    names = {site["site"]: site["location"] for site in tools.report(profile)["sites"]}
    sampled, isolated = (shares(tools, profile, value, folder) for value in VALUES)
    found = [Site(names.get(site, site), sampled[site], isolated.get(site, 0.0)) for site in sampled]
    above = [site for site in found if max(site.sampled, site.isolated) >= LEAST_SHARE]
    return sorted(above, key=lambda site: -site.sampled)


def evaluate(tools: Tools, made: Program, folder: str, options, say) -> Result:
    profile = os.path.join(folder, f"{made.name}.iso")
    say(f"{made.name}: record and isolate")
    run_once(made, Contender("record", tools.isolated(profile)), options.limit * 20)
    plans = {name: os.path.join(folder, f"{made.name}-{name}.plan") for name in [*BOUNDS, *VALUES]}
    for name, fast in BOUNDS.items():
        tools.plan(profile, name, fast, plans[name], TIERS)
    for name in VALUES:
        tools.plan(profile, "thermos", FAST, plans[name], TIERS, name)
    contenders = [Contender(name, tools.guided(plan)) for name, plan in plans.items()]
    samples = interleave(made, contenders, options.rounds, options.limit, say)
    return Result(made.name, sites(tools, profile, folder), samples)


def makers(tools: Tools, options, folder: str) -> dict:
    """How each program is built, by name."""
    quick = options.quick
    made = {name: lambda name=name: kernel(name, C[name].timed_words(quick), folder) for name in KERNELS}
    made |= {name: lambda name=name: workload(tools, name, CPP[name].timed_words(quick)) for name in WORKLOADS}
    made |= {name: lambda name=name: program(tools, name) for name in POLYBENCH}
    return named(made, options.program)


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    return tables_of_each(makers(tools, options, folder).values(), lambda make: evaluate(tools, make(), folder, options, say),
                          lambda results: [site_table(results), guided_table(results)])


def verdict(measured: int, reached: int) -> str:
    """Of a goal of all programs; one that failed says more than one that is missing."""
    if reached < measured:
        return "not reached"
    return "reached" if reached >= PROGRAMS else "not measured for all"


def site_table(results: list[Result]) -> Table:
    table = Table(f"Sites with at least {LEAST_SHARE:.0%} of the samples or of the bandwidth by isolation",
                  ["program", "site", "of the samples", "of the bandwidth", "rank", "rank by isolation"])
    for result in results:
        by_samples = ranks([-site.sampled for site in result.sites])
        by_isolation = ranks([-site.isolated for site in result.sites])
        for site, sampled, isolated in zip(result.sites, by_samples, by_isolation):
            table.row(result.name, site.name, f"{site.sampled:.1%}", f"{site.isolated:.1%}", f"{sampled:g}", f"{isolated:g}")
    orders = {result.name: result.order() for result in results}
    measured = {name: order for name, order in orders.items() if order is not None}
    reached = [name for name, order in measured.items() if order >= SAME_ORDER]
    listed = ", ".join(f"{name} {'not measured' if order is None else f'{order:.2f}'}" for name, order in orders.items())
    table.note(f"Goal: the same order, Spearman's coefficient at least {SAME_ORDER}, for each of {PROGRAMS} programs with at least {LEAST_SITES} such sites. "
               f"Measured: {listed}: {len(reached)} of {len(orders)}, {verdict(len(measured), len(reached))}.")
    table.note("Samples are of the time waiting for memory; bandwidth is that of runs with the site alone in a tier, whose bytes the emulated machine's "
               "account or the memory controllers count. A stream moves many more bytes in the time that it waits than dependent accesses do.")
    return table


def guided_table(results: list[Result]) -> Table:
    table = Table(f"Thermos by samples and by isolation, fast memory {FAST} of the footprint: time over all fast (figure 7)",
                  ["program", "first touch", "by samples", "by isolation", "isolation / samples", "spread"])
    ways = [FIRST_TOUCH, SAMPLED, ISOLATED]
    for result in results:
        table.row(result.name, *(result.over_all_fast(way) for way in ways), result.ratio(), f"{result.spread():.1%}")
    means = [geometric_mean([result.over_all_fast(way) for result in results]) for way in ways]
    mean = geometric_mean([result.ratio() for result in results])
    table.row(f"geometric mean of {len(results)}", *means, mean, "")
    far = [result.name for result in results if abs(result.ratio() - 1) > WITHIN]
    listed = f" ({', '.join(far)})" if far else ""
    table.note(f"Goal: either guidance within {WITHIN:.0%} of the other, for each of {PROGRAMS} programs. Farther apart: {len(far)} of {len(results)}{listed}: "
               f"{verdict(len(results), len(results) - len(far))}.")
    table.note("Seconds of whole runs, interleaved. Spread: half the range of the guided runs over their median, the larger of both.")
    return table
