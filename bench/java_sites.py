"""Section `java`, parts `sites` and `cold-set`: the paper's Table 3, and figures 8 and 12 in form.

    record --depth 1 --> profile --plan --policy cold-set=1% ... 20%--> colour of each Java site --> shares of bytes and accesses
                                 --simulate--> modelled energy on four DIMMs
"""
import os
import statistics
from collections.abc import Iterator

from java_machines import Machines
from java_programs import check_agent, tables_of_programs
from measure import Contender, Program, Samples, geometric_mean, interleave, run_once
from table import Table
from tools import Tools

SHARES = [1, 2, 5, 10, 20]
# The goals: at this share of the accesses, so many of the bytes are cold on the median program; and recording costs at most this.
AT_SHARE, COLD_BYTES, COST = 5, 0.40, 1.05
# A plan of profiles of this depth weighs what a heap can part: places in methods, with any caller.
DEPTH = ("--depth", "1")
# Of fewer accesses to Java sites no share of a program is known to a few per cent, so that it has no part in a median.
LEAST_ACCESSES = 50
LEAST_ROUNDS = 3
# As the paper's machine.
DEVICES, POWER = 4, "ddr4"


def profile_path(folder: str, program: Program) -> str:
    return os.path.join(folder, f"{program.name}.iso")


def recording(tools: Tools, java: str, folder: str, program: Program) -> Contender:
    return Contender("recorded", [*tools.record(profile_path(folder, program), *DEPTH), java])


def profile_of(tools: Tools, options, folder: str, program: Program) -> str:
    """The profile of the program: the last one that a part of the section recorded, or a new one."""
    check_agent(tools)
    path = profile_path(folder, program)
    if not os.path.isfile(path):
        run_once(program, recording(tools, Machines(options).to_record, folder, program), options.limit)
    return path


class Recording:
    """The runs of one program, plain and recorded, and what the last profile says of it."""

    def __init__(self, samples: Samples, report: dict):
        self.samples, self.java = samples, report["java"]
        self.cost = samples.ratio("recorded", "plain", "kernel_seconds")
        self.spread = max(samples.spread(way, "kernel_seconds") for way in samples.runs)

    def row(self) -> list[object]:
        java = self.java
        return [self.samples.program, self.samples.median("plain", "kernel_seconds"), f"{self.samples.median('plain', 'work_per_second'):,.0f}",
                f"{java['allocated_bytes'] / 2**20:,.0f}", java["allocation_sites"], f"{java['sites_per_method']:.2f}", java["hot_methods"],
                java["types"], f"{java['samples_per_second']:,.0f}", self.cost, f"{self.spread:.1%}"]


def sites(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    check_agent(tools)
    machines = Machines(options)

    def measure(program: Program) -> Recording:
        ways = [Contender("plain", [machines.to_record]), recording(tools, machines.to_record, folder, program)]
        samples = interleave(program, ways, options.rounds, options.limit, say)
        return Recording(samples, tools.report(profile_path(folder, program)))

    yield from tables_of_programs(tools, options, folder, say, measure, lambda results: [table_3(results, machines, options.rounds)])


def table_3(recordings: list[Recording], machines: Machines, rounds: int) -> Table:
    table = Table("Table 3: Java programs (medians of the measured phase)",
                  ["program", "s", "work/s", "OA MiB", "# sites", "S/M", "# hot", "# types", "samples/s", "recorded", "spread"])
    for recorded in recordings:
        table.row(*recorded.row())
    table.note("OA: MiB of objects allocated; S/M: sites in a method; # hot: methods with compiled code at the end. Sites and types are those of sampled objects, "
               "one each 512 KiB of allocation, so few of those that a program has. Samples are those of compiled Java code.")
    costs = [recorded.cost for recorded in recordings]
    slower = [f"{recorded.samples.program} {recorded.cost:.3f}" for recorded in recordings if recorded.cost > COST + recorded.spread]
    table.note(f"Recorded: time under `isotherm record` over time without; {geometric_mean(costs):.3f} on the geometric mean. Goal: at most {COST}, beyond the spread: "
               f"{missed_by(slower, rounds)}.")
    table.note(machines.note())
    return table


def missed_by(names: list[str], rounds: int) -> str:
    """The verdict on a goal of each program's time."""
    if rounds < LEAST_ROUNDS:
        return f"not judged, because {LEAST_ROUNDS} rounds are the least that have a spread"
    return f"missed by {', '.join(names)}" if names else "reached by all"


def slow_sites(plan: str) -> set[str]:
    """The sites that a plan stores in its slow tier."""
    with open(plan, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return {words[1] for words in lines if words[:1] == ["site"] and words[2] == "slow"}


def java_sites(report: dict) -> list[dict]:
    return [site for site in report["sites"] if site["kind"] == "java"]


def cold_shares(report: dict, cold: set[str]) -> tuple[float, float]:
    """The shares that cold sites have of the bytes of all Java sites, and of their accesses."""
    java = java_sites(report)

    def share(field: str) -> float:
        return sum(site[field] for site in java if site["site"] in cold) / max(1, sum(site[field] for site in java))

    return share("peak_rss_bytes"), share("accesses")


def planned_shares(tools: Tools, profile: str, report: dict) -> list[tuple[float, float]]:
    """For each cold set its shares of bytes and accesses."""
    found = []
    for share in SHARES:
        plan = f"{profile.removesuffix('.iso')}.cold-set.plan"
        tools.plan(profile, f"cold-set={share}%", "50%", plan, tiers="emulated:cxl")
        found.append(cold_shares(report, slow_sites(plan)))
    return found


def modelled(tools: Tools, profile: str) -> list[float]:
    """For each cold set the modelled energy over that of pages in turn on all devices."""
    policies = [f"cold-set={share}%" for share in SHARES]
    [capacity] = tools.simulate([profile], policies, "--tiers", "dimms", "--power", POWER, "--devices", str(DEVICES))
    found = {one["policy"]: one["energy_of_interleaved"] for one in capacity["policies"] if one["policy"] in policies}
    return [found[policy] for policy in policies]


class ColdSets:
    """What is cold of one program, for each of the shares."""

    def __init__(self, tools: Tools, program: Program, profile: str):
        self.name = program.name
        report = tools.report(profile)
        self.count = sum(site["accesses"] for site in java_sites(report))
        shares = planned_shares(tools, profile, report)
        self.bytes = [of_bytes for of_bytes, _ in shares]
        self.accesses = [of_accesses for _, of_accesses in shares]
        self.energy = modelled(tools, profile)


def cold_sets(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    def measure(program: Program) -> ColdSets:
        return ColdSets(tools, program, profile_of(tools, options, folder, program))

    yield from tables_of_programs(tools, options, folder, say, measure, cold_tables)


def median_of(results: list[ColdSets], field: str) -> list[float]:
    """For each cold set the median of the programs with accesses enough; none without such a program."""
    return [statistics.median(column) for column in zip(*(getattr(result, field) for result in results if result.count >= LEAST_ACCESSES))]


def share_table(title: str, results: list[ColdSets], field: str) -> Table:
    """A row for each program, and the median."""
    table = Table(title, ["program", *(f"{share} %" for share in SHARES), "samples"])
    for result in results:
        table.row(result.name, *(f"{value:.1%}" for value in getattr(result, field)), result.count)
    median = median_of(results, field)
    if median:
        table.row("median", *(f"{value:.1%}" for value in median), "")
    few = [result.name for result in results if result.count < LEAST_ACCESSES]
    if few:
        table.note(f"Not in the median, because fewer than {LEAST_ACCESSES} samples fell on Java sites: {', '.join(few)}.")
    return table


def cold_goal(results: list[ColdSets]) -> str:
    goal = f"Goal: at {AT_SHARE} % of the accesses at least {COLD_BYTES:.0%} of the bytes are cold on the median program"
    median = median_of(results, "bytes")
    if not median:
        return f"{goal}: not measured."
    found = median[SHARES.index(AT_SHARE)]
    return f"{goal}. Found: {found:.1%}: {'reached' if found >= COLD_BYTES else 'not reached'}."


def cold_tables(results: list[ColdSets]) -> list[Table]:
    of_bytes = share_table("Figure 8: share of the bytes of Java sites that is cold, by the share of all accesses that may be cold", results, "bytes")
    of_bytes.note(cold_goal(results))
    of_accesses = share_table("Share of the accesses to Java sites that is cold, by the same", results, "accesses")
    of_accesses.note("In the profile itself. It may be more than the column says, which is a share of the accesses to all sites: those of the virtual machine's own memory "
                     "count there.")
    energy = share_table(f"Figure 12: modelled DRAM energy over that of pages in turn on {DEVICES} DIMMs, by the same", results, "energy")
    energy.note("Modelled by `isotherm simulate` from the recorded accesses, not measured. Hot data is on as few devices as it fills; nothing says how few have its bandwidth.")
    return [of_bytes, of_accesses, energy]
