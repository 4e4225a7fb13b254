"""Section `java`, parts `sites` and `cold-set`: the paper's Table 3, and figures 8 and 12 in form.

    record --depth 1 --> profile --plan --policy cold-set=1% ... 20%--> colour of each Java site --> shares of bytes and accesses
                                 --simulate--> modelled energy on four DIMMs
"""
import os
import statistics
from collections.abc import Iterator

from java_machines import Machines
from java_programs import agent_of, programs
from measure import Contender, Program, Samples, interleave, run_once
from table import Table
from tools import Tools

SHARES = [1, 2, 5, 10, 20]
# The goals: at this share of the accesses, so many of the bytes are cold on the median program; and recording costs at most this.
AT_SHARE, COLD_BYTES, COST = 5, 0.40, 1.05
# A plan of profiles of this depth weighs what a heap can part: places, whoever calls them.
DEPTH = ("--depth", "1")
# As the paper's machine.
DEVICES, POWER = 4, "ddr4"


def profile_path(folder: str, program: Program) -> str:
    return os.path.join(folder, f"{program.name}.iso")


def recording(tools: Tools, java: str, folder: str, program: Program) -> Contender:
    return Contender("recorded", [*tools.record(profile_path(folder, program), *DEPTH), java])


def profile_of(tools: Tools, options, folder: str, program: Program) -> str:
    """The profile of the program: the last one that a part of the section recorded, or a new one."""
    agent_of(tools)
    path = profile_path(folder, program)
    if not os.path.isfile(path):
        run_once(program, recording(tools, Machines(options).to_record, folder, program), options.limit)
    return path


def statistics_row(table: Table, report: dict, samples: Samples) -> float:
    """Adds a row; returns the time of the recorded runs over that of the plain ones."""
    java = report["java"]
    cost = samples.ratio("recorded", "plain", "kernel_seconds")
    spread = max(samples.spread(way, "kernel_seconds") for way in samples.runs)
    table.row(samples.program, samples.median("plain", "kernel_seconds"), f"{samples.median('plain', 'work_per_second'):,.0f}",
              f"{java['allocated_bytes'] / 2**20:,.0f}", java["allocation_sites"], f"{java['sites_per_method']:.2f}", java["hot_methods"],
              java["types"], f"{java['samples_per_second']:,.0f}", f"{cost:.3f}", f"{spread:.1%}")
    return cost


def sites(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    agent_of(tools)
    machines = Machines(options)
    built, reasons = programs(tools, options, folder, say)
    table = Table("Table 3: Java programs (medians of the measured phase)",
                  ["program", "s", "work/s", "OA MiB", "# sites", "S/M", "# hot", "# types", "samples/s", "recorded", "spread"])
    costs = []
    for program in say.steps(built):
        ways = [Contender("plain", [machines.to_record]), recording(tools, machines.to_record, folder, program)]
        samples = interleave(program, ways, options.rounds, options.limit, say)
        costs.append(statistics_row(table, tools.report(profile_path(folder, program)), samples))
    table.note("OA: MiB of objects allocated; S/M: sites in a method; # hot: methods with compiled code at the end. Sites and types are those of sampled objects, "
               "one each 512 KiB of allocation, so few of those that a program has. Samples are those of compiled Java code.")
    table.note(f"Recorded: time under `isotherm record` over time without. Goal: at most {COST}. Median of the programs: {statistics.median(costs):.3f}, "
               f"worst {max(costs):.3f}: {'reached' if max(costs) <= COST else 'not reached'}.")
    yield noted(table, machines.note(), reasons)


def noted(table: Table, *more) -> Table:
    """The table, with these notes or lists of notes."""
    for note in more:
        for line in [note] if isinstance(note, str) else note:
            table.note(line)
    return table


def slow_sites(plan: str) -> set[str]:
    """The sites that a plan stores in its slow tier."""
    with open(plan, encoding="utf-8") as file:
        lines = [line.split() for line in file]
    return {words[1] for words in lines if words[:1] == ["site"] and words[2] == "slow"}


def cold_shares(report: dict, cold: set[str]) -> tuple[float, float]:
    """The shares that cold sites have of the bytes of all Java sites, and of their accesses."""
    java = [site for site in report["sites"] if site["kind"] == "java"]

    def share(field: str) -> float:
        return sum(site[field] for site in java if site["site"] in cold) / max(1, sum(site[field] for site in java))

    return share("peak_rss_bytes"), share("accesses")


def planned_shares(tools: Tools, profile: str) -> list[tuple[float, float]]:
    """For each cold set its shares of bytes and accesses."""
    report, found = tools.report(profile), []
    for share in SHARES:
        plan = f"{profile.removesuffix('.iso')}.cold-set.plan"
        tools.plan(profile, f"cold-set={share}%", "50%", plan, tiers="emulated:cxl")
        found.append(cold_shares(report, slow_sites(plan)))
    return found


def modelled(tools: Tools, profile: str) -> list[float]:
    """For each cold set the modelled energy over that of pages in turn on all devices."""
    policies = [f"cold-set={share}%" for share in SHARES]
    found = tools.simulate(profile, policies, POWER, DEVICES)
    return [found[policy]["energy_of_interleaved"] for policy in policies]


def percent(values: list[float]) -> list[str]:
    return [f"{value:.1%}" for value in values]


def with_median(table: Table, rows: list[list[float]]) -> Table:
    table.row("median", *percent([statistics.median(column) for column in zip(*rows)]))
    return table


def cold_sets(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    built, reasons = programs(tools, options, folder, say)
    columns = ["program", *(f"{share} %" for share in SHARES)]
    bytes_table = Table("Figure 8: share of the bytes of Java sites that is cold, by the share of accesses that may be cold", columns)
    access_table = Table("Share of the accesses to Java sites that is cold", columns)
    energy_table = Table(f"Figure 12: modelled DRAM energy over that of pages in turn on {DEVICES} DIMMs", columns)
    found: dict[Table, list[list[float]]] = {bytes_table: [], access_table: [], energy_table: []}
    for program in say.steps(built):
        say(program.name)
        profile = profile_of(tools, options, folder, program)
        shares = planned_shares(tools, profile)
        for table, values in zip(found, [[share[0] for share in shares], [share[1] for share in shares], modelled(tools, profile)]):
            table.row(program.name, *percent(values))
            found[table].append(values)
    add_cold_goal(bytes_table, found[bytes_table])
    access_table.note("Shares in the profile itself. The share may be larger than the column says: there it is of the accesses to all sites, those of the virtual machine's "
                      "own memory among them.")
    energy_table.note("Modelled from the recorded accesses, as `isotherm simulate` does; hot data is on as few devices as it fills. Not measured, and of the profile's times.")
    for table, rows in found.items():
        yield noted(with_median(table, rows), reasons)


def add_cold_goal(table: Table, rows: list[list[float]]) -> None:
    median = statistics.median(row[SHARES.index(AT_SHARE)] for row in rows)
    table.note(f"Goal: at {AT_SHARE} % of the accesses at least {COLD_BYTES:.0%} of the bytes are cold on the median program. Found: {median:.1%}: "
               f"{'reached' if median >= COLD_BYTES else 'not reached'}. Of profiles with few accesses to the heap the shares are as good as their samples.")
