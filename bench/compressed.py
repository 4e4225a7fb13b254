"""Section `compressed`: programs in less memory than they have, with compressed memory behind it.

First table: the same limit, of a control group that the kernel's own reclaim keeps to, and of `isotherm run --tiers compressed --fast`. Second table: how much memory leaves within a slow-down of 2 %, by Isotherm's policies and by TMO's rule. Needs root.
"""
import dataclasses
import json
import os
import statistics
import sys
import threading

from emulated import script, workload
from measure import Contender, Problem, Program, Run, Samples, geometric_mean, in_turn, run_once
from memory_group import GroupLook, MemoryGroup
from parts import tables_of_each
from programs import named
from table import Table
from tools import HERE, Tools, compiled, must

SOURCES = os.path.join(HERE, "compressed")
# Shares of the memory that a program takes by itself.
LIMITS = (0.75, 0.5, 0.35)
BUDGET = "2%"
KERNEL, OURS, TMO, PLAIN = "kernel", "isotherm", "TMO", "plain"
# The goals: over the kernel at half of the memory, saved within the budget, and seconds after a change of phase until full speed.
FASTER, SAVED, RECOVERED = 1.3, 0.3, 3
ROUNDS = 3
SWAP = "3GiB"
# Seconds between two looks at a group's memory.
LOOK = 0.02


@dataclasses.dataclass(frozen=True)
class Work:
    """How a program is made, given its amount of work: some ten seconds on a fast machine, and one or two with --quick."""

    make: object
    amount: int
    quick: int


def patterns(mode: str):
    def make(_tools: Tools, folder: str, amount: int) -> Program:
        return Program(mode, [compiled("compressed/patterns.c", folder), mode, str(amount)])
    return make


def image(_tools: Tools, folder: str, amount: int) -> Program:
    return Program("image", [compiled("compressed/image.c", folder), str(amount)])


def records(_tools: Tools, folder: str, amount: int) -> Program:
    must(["javac", "-d", folder, os.path.join(SOURCES, "Records.java")], "compiling Records.java")
    # The heap is large enough that the collector marks no live objects, which would touch every record. Its size must not depend on the group's limit:
    # the virtual machine would read the kernel's and take less memory.
    return Program("java records", ["java", "-Xmx1g", "-XX:-UseContainerSupport", "-cp", folder, "Records", "250000", str(amount)])


def of_workload(name: str, words: str):
    return lambda tools, _folder, amount: workload(tools, name, words.format(amount).split())


def table(_tools: Tools, _folder: str, amount: int) -> Program:
    return Program("python table", [sys.executable, os.path.join(SOURCES, "table.py"), "600000", str(amount)])


def redis(_tools: Tools, _folder: str, amount: int) -> Program:
    return Program("redis", [sys.executable, os.path.join(SOURCES, "redis.py"), "250000", str(amount)], is_script=True)


def sqlite(tools: Tools, _folder: str, amount: int) -> Program:
    return dataclasses.replace(script(tools, "sqlite", [f"ROWS={amount}"]), is_script=True)


PROGRAMS = {
    "cold": Work(patterns("cold"), 2_700_000, 150_000),
    "scan": Work(patterns("scan"), 2_700_000, 150_000),
    "phases": Work(patterns("phases"), 2_700_000, 150_000),
    "python table": Work(table, 720, 100),
    "java records": Work(records, 30_000_000, 2_000_000),
    "image": Work(image, 4_000, 150),
    "redis": Work(redis, 5_000_000, 300_000),
    "sqlite": Work(sqlite, 1_500_000, 200_000),
    "graph": Work(of_workload("graph", "--rmat 20 --iterations {} --roots 4 --threads 1"), 400, 40),
    "stencil": Work(of_workload("stencil", "--size 384MiB --iterations {} --threads 1"), 2_500, 300),
    "triad": Work(of_workload("triad", "--size 384MiB --iterations {} --threads 1"), 6_000, 800),
    "lookup": Work(of_workload("lookup", "--nuclides 68 --gridpoints 12000 --lookups {} --threads 1"), 11_000_000, 1_100_000),
}


@dataclasses.dataclass(frozen=True)
class Measured:
    """One run in a group of its own."""

    seconds: float
    # Mean and most bytes of its private memory, and pages that came back from swap.
    resident: float
    most: float
    refaults: int
    # The summary of `isotherm run`, empty without it.
    summary: dict
    # Seconds after a change of phase until the program works at full speed, where it has phases.
    recovery: float | None

    @property
    def saved(self) -> float:
        """The share of its memory that the program did not take."""
        return 1 - (self.summary["memory_share"] or 1)

    @property
    def paged_out(self) -> float:
        """The share of its memory that was in zram."""
        paged = self.summary["paged"]
        return 1 - paged["mean_present_bytes"] / max(paged["mean_bytes"], 1)


class Watch(threading.Thread):
    """Looks at the memory of a group until it is ended."""

    def __init__(self, group: MemoryGroup):
        super().__init__(daemon=True)
        self.group, self.seen, self.ends = group, [], threading.Event()

    def run(self) -> None:
        while not self.ends.wait(LOOK):
            look = self.group.look()
            if look is not None and look.private > 0:
                self.seen.append(look)

    def end(self) -> list[GroupLook]:
        self.ends.set()
        self.join()
        if not self.seen:
            raise Problem("no memory of the program was seen in its control group")
        return self.seen


def seconds_of(program: Program, run: Run, summary: dict) -> float:
    """The time of a program's work where it prints that; else that of the whole program, without the start of `isotherm`."""
    if "kernel_seconds" in run.measures and not (summary and program.name == "sqlite"):
        return run.measures["kernel_seconds"]
    return summary["seconds"] if summary else run.wall


def measure(program: Program, name: str, prefix: list[str], limit: float | None, folder: str, options) -> Measured:
    """Runs the program in a new group. `prefix` is empty, or begins a run of Isotherm."""
    path = os.path.join(folder, "summary.json")
    with MemoryGroup(limit) as group:
        words = words_of(prefix, path, group)
        watch = Watch(group)
        watch.start()
        try:
            run = run_once(program, Contender(name, words), options.limit)
        finally:
            seen = watch.end()
    summary = {}
    if prefix:
        with open(path, encoding="utf-8") as file:
            summary = json.load(file)
    if group.has_tool and not summary["paged"]["kernel_reclaimed_bytes"]:
        raise Problem(f"{program.name}: the program had no control group of its own, and was not measured")
    private = [look.private for look in seen]
    refaults = max(look.refaults for look in seen)
    return Measured(seconds_of(program, run, summary), statistics.mean(private), max(private), refaults, summary, run.measures.get("recovery_seconds"))


def words_of(prefix: list[str], summary: str, group: MemoryGroup) -> list[str]:
    """The words before a program. Under a limit `isotherm run` itself enters a group of version 1, and makes one below it for its program; in version 2 a group
    with a process has none below it."""
    if not prefix:
        return group.enter()
    own = prefix + ["--summary", summary, "--"]
    group.has_tool = group.is_old and "--fast" in prefix
    return group.enter() + own if group.has_tool else own + group.enter()


def share(samples: Samples, contender: str) -> float:
    """Resident memory, as a share of what the program takes by itself."""
    return samples.median(contender, "resident") / samples.median(PLAIN, "most")


def at(contender: str, share: float) -> str:
    return f"{contender} {share:.0%}"


def compressed(tools: Tools, *more: str) -> list[str]:
    return [tools.isotherm, "--quiet", "run", "--tiers", "compressed", *more]


def contenders(tools: Tools, most: float) -> list[tuple[str, list[str], float | None]]:
    """Name, the words of `isotherm run`, and the limit of the group."""
    made = [(PLAIN, [], None), (OURS, compressed(tools, "--slowdown", BUDGET), None), (TMO, compressed(tools, "--policy", "tmo"), None)]
    for share in LIMITS:
        limit = share * most
        fast = ["--fast", f"{int(limit)}B", "--slowdown", "100%"]
        # Isotherm keeps the limit by itself: the kernel's reclaim would take the very pages that it keeps.
        made += [(at(KERNEL, share), [], limit), (at(OURS, share), compressed(tools, *fast), None)]
    return made


def run_program(tools: Tools, name: str, work: Work, rounds: int, folder: str, options, say) -> Samples:
    program = dataclasses.replace(work.make(tools, folder, work.quick if options.quick else work.amount), name=name)
    say(f"{name}: by itself")
    most = measure(program, PLAIN, [], None, folder, options).most
    ways = contenders(tools, most)
    samples = Samples(name, [way for way, _, _ in ways])
    for turn, (way, prefix, limit) in in_turn(ways, rounds):
        say(f"{name}: round {turn + 1} of {rounds}: {way}")
        samples.runs[way].append(measure(program, way, prefix, limit, folder, options))
    return samples


def limits_table(results: list[Samples], rounds: int) -> Table:
    made = Table(f"Compressed memory: the same limit, kept by the kernel's reclaim and by Isotherm (median of {rounds})",
                 ["program", "limit", "plain s", "kernel s", "isotherm s", "kernel / isotherm", "spread", "kernel's refaults", "isotherm's", "kernel's resident",
                  "isotherm's "])
    speedups = {limit: [] for limit in LIMITS}
    for result in results:
        for limit in LIMITS:
            kernel, ours = at(KERNEL, limit), at(OURS, limit)
            speedups[limit].append(result.ratio(kernel, ours, "seconds"))
            made.row(result.program, f"{limit:.0%}", *(result.median(way, "seconds") for way in (PLAIN, kernel, ours)), speedups[limit][-1],
                     f"{max(result.spread(way, 'seconds') for way in (kernel, ours)):.0%}",
                     *(f"{result.median(way, 'refaults'):,.0f}" for way in (kernel, ours)), *(f"{share(result, way):.0%}" for way in (kernel, ours)))
    for limit, ratios in speedups.items():
        made.row("geometric mean", f"{limit:.0%}", "", "", "", geometric_mean(ratios), *[""] * 5)
    mean = geometric_mean(speedups[0.5])
    made.goal(f"Goal: {FASTER} times as fast as the kernel at 50 %, on the geometric mean. Measured: {mean:.2f}", mean >= FASTER)
    slower = [f"{result.program} at {limit:.0%}" for result in results for limit in LIMITS
              if result.ratio(at(OURS, limit), at(KERNEL, limit), "seconds") > 1 + sum(result.spread(at(way, limit), "seconds") for way in (OURS, KERNEL))]
    made.goal(f"Goal: never slower than the kernel beyond the spread. Slower: {', '.join(slower) or 'none'}", not slower)
    made.note("The limit is a share of the most that the program has by itself: that of a control group, which is never exceeded, and --fast of `isotherm run`, which may be for "
              "some time. Refaults: pages that came back from swap. Resident: the mean of the private memory, over the same most. Spread: half the range of the runs over their median, the larger of the two.")
    return made


def budget_table(results: list[Samples], rounds: int) -> Table:
    made = Table(f"Compressed memory within a slow-down of {BUDGET}: without a limit (median of {rounds})",
                 ["program", "plain s", "isotherm s", "slower", "saved", "paged out", "TMO s", "slower ", "saved ", "paged out "])
    saved = {OURS: [], TMO: []}
    for result in results:
        cells = []
        for way in (OURS, TMO):
            saved[way].append(result.median(way, "saved"))
            cells += [result.median(way, "seconds"), f"{result.ratio(way, PLAIN, 'seconds') - 1:+.1%}", f"{saved[way][-1]:.0%}",
                      f"{result.median(way, 'paged_out'):.0%}"]
        made.row(result.program, result.median(PLAIN, "seconds"), *cells)
    medians = {way: statistics.median(shares) for way, shares in saved.items()}
    made.row("median", "", "", "", f"{medians[OURS]:.0%}", "", "", "", f"{medians[TMO]:.0%}", "")
    made.goal(f"Goal: {SAVED:.0%} saved on the median. Measured: {medians[OURS]:.0%}", medians[OURS] >= SAVED)
    for result in results:
        if all(run.recovery is not None for run in result.runs[PLAIN]):
            within = {way: result.median(way, "recovery") for way in (PLAIN, OURS)}
            made.goal(f"Goal: full speed within {RECOVERED} s after a change of phase. Measured on {result.program}: {within[OURS]:.2f} s, and {within[PLAIN]:.2f} s "
                      "without page-out", within[OURS] <= RECOVERED)
    made.note("Saved: the memory that the program did not take, of its own, as the mean over the run; what pages take in zram is counted as taken. Paged out: the share of its memory that was "
              "in zram. Slower: over the plain runs of the same rounds; the time of observing is in it. TMO: memory is reclaimed, least recently used first, until the pressure is reached "
              "(docs/page-out.md).")
    return made


class Swap:
    """Compressed memory for the time of the benchmark, unless the machine has swap."""

    def __init__(self, tools: Tools):
        self.tools, self.made = tools, False

    def __enter__(self) -> None:
        with open("/proc/swaps", encoding="utf-8") as file:
            has_swap = len(file.readlines()) > 1
        if not has_swap:
            must([self.tools.isotherm, "tiers", "--make-compressed", SWAP, "--compressor", "lz4"], "setting up compressed memory")
            self.made = True

    def __exit__(self, *_problem) -> None:
        if self.made:
            must([self.tools.isotherm, "tiers", "--remove-compressed"], "removing compressed memory")


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    rounds = options.rounds if options.has_rounds else 1 if options.quick else ROUNDS
    wanted = named(PROGRAMS, options.program)
    with Swap(tools):
        return tables_of_each(wanted.items(), lambda program: run_program(tools, *program, rounds, folder, options, say),
                              lambda results: [limits_table(results, rounds), budget_table(results, rounds)])
