"""Section `tiering`: the managers of a machine with several memory nodes, on programs whose hot memory is known.

Each run has a virtual machine of its own (tests/vm): an emulated machine has no slow memory, so what is measured is where the accesses
meet their data, counted by the program itself (bench/tiering/accesses.h), and what that took. Needs `setup/vm`,
`cargo build --release` and the Debian package redis-server.
"""
import dataclasses
import os
import re
import shutil

from measure import Problem
from programs import named
from table import Table
from tools import HERE, ROOT, beside, compiled, must

MANAGERS = {
    "none": "nothing moves",
    "kernel": "numa_balancing = 2 and demotion, else as shipped",
    "tuned": "the same, scanning each 200 to 1,000 ms with a hot threshold of 200 ms",
    "damon": "DAMON by frame, migrate_hot and migrate_cold",
    "isotherm-pages": "isotherm daemon with mover = \"pages\"",
    "isotherm": "isotherm daemon as shipped",
}
# Accesses of a run, and of a quick one.
PROGRAMS = {"zipf": (160_000_000, 16_000_000), "phases": (160_000_000, 16_000_000), "scan": (160_000_000, 16_000_000),
            "quiet": (1_500_000, 400_000), "graph": (160_000_000, 16_000_000),
            "sparse": (1_600_000_000, 160_000_000), "redis": (1_500_000, 300_000)}
# Topologies of tests/vm by their number of nodes.
TOPOLOGIES = {2: "two-nodes", 3: "three-tiers"}
HUGE_PAGES = ["always", "never"]
TICKS_A_SECOND = 100
COLUMNS = ["program", "nodes", "huge pages", "manager", "hot accesses", "all accesses", "work until 0.9", "moved MiB", "manager s", "program's system s"]
FIGURES = re.compile(r"^hot (\S+) all (\S+) reached (\d+) of (\d+) until (\S+) system (\S+) faults \d+ ticks (\d+) moved (\d+) high \d+ free \d+$", re.M)


@dataclasses.dataclass(frozen=True)
class Case:
    """A program under a manager on a machine."""

    program: str
    nodes: int
    huge: str
    manager: str

    def __str__(self) -> str:
        return f"{self.program} under {self.manager}, {self.nodes} nodes, huge pages {self.huge}"


def redis_server() -> str:
    path = shutil.which("redis-server")
    if path is None:
        raise Problem("there is no redis-server; install the Debian package of this name, or choose other programs with --program")
    return path


def payload(options, folder: str, programs: list[str]) -> list[str]:
    """The programs that the guest of some programs needs."""
    names = ["patterns", *(name for name in ("graph", "sparse") if name in programs)]
    files = [beside(options, "isotherm")]
    if "redis" in programs:
        files, names = [*files, redis_server()], [*names, "redis_client"]
    return files + [compiled(f"tiering/{name}.c", folder, "-Wall", "-lm") for name in names]


def measured(options, files: list[str], case: Case) -> re.Match:
    """Runs a case in a virtual machine of its own."""
    work = PROGRAMS[case.program][1 if options.quick else 0]
    brought = [word for file in files for word in ("--with", file)]
    output = must([beside(options, "isotherm-vm"), "run", *brought, TOPOLOGIES[case.nodes], os.path.join(HERE, "tiering", "guest"),
                   case.manager, case.program, str(work), case.huge], str(case), options.limit + 300)
    found = FIGURES.search(output)
    if not found:
        raise Problem(f"{case}: no figures in {output.strip()!r}")
    return found


def cells(case: Case, found: re.Match) -> list[object]:
    hot, every, reached, phases, until, system, ticks, moved = found.groups()
    has = f"{float(until):.3f}" + ("" if reached == phases else f" ({reached} of {phases})") if int(reached) else "never"
    return [case.program, case.nodes, case.huge, case.manager, float(hot), float(every), has, int(moved) * 4 // 1024, int(ticks) / TICKS_A_SECOND,
            float(system)]


def explain(table: Table) -> None:
    table.note("zipf, phases, scan, graph, redis: 112 MiB, 24 MiB of them hot and first on the slowest node, 48 MiB above the kernel's high watermark in each "
               "other node. sparse: 112 MiB, of which 64 KiB in each 2 MiB are hot, 40 MiB of it first on the fastest node and the rest on the slowest. "
               "quiet: 16 MiB of a control group, 8 MiB of them hot, that rests beside a greedy program of 112 MiB; the daemon has a floor of 8 MiB for it, "
               "which no other manager offers.")
    table.note("Fast is the fastest node. Accesses: of redis, reads of values. Work until 0.9: the part of all accesses after which nine of ten accesses to the hot "
               "part met the fast node, of the phases that got there. Moved: all pages that the kernel migrated for any process, of redis with those that its client puts on the slowest node. Manager: processor time of the "
               "daemon, kdamonds and kswapd; what promotion takes of a program is its own system time (of redis, the server's), its start included.")
    table.note("memtierd takes no part: the guests' kernel lacks CONFIG_IDLE_PAGE_TRACKING, its tracker by DAMON needs bpftrace or perf, and that of soft-dirty "
               "bits sees writes only.")
    table.note(" ".join(f"{name}: {words}." for name, words in MANAGERS.items()))


def fill(table: Table, options, files: list[str], cases: list[Case], say) -> None:
    """A row for each case. A case that fails leaves the table with the rows before it."""
    for number, case in enumerate(cases):
        say(f"{case}: run {number + 1} of {len(cases)}")
        try:
            table.row(*cells(case, measured(options, files, case)))
        except Problem as problem:
            raise Problem(str(problem), [table] if table.rows else []) from None


def run(_tools: None, options, folder: str, say) -> list[Table]:
    if not os.path.isdir(os.path.join(ROOT, "build", "vm")):
        raise Problem("there is no build/vm; make it with setup/vm")
    programs = list(named(PROGRAMS, options.program))
    files = payload(options, folder, programs)
    rounds = options.rounds if options.has_rounds else 1
    cases = [Case(program, nodes, huge, manager) for program in programs for nodes in options.nodes or [2] for huge in options.huge or ["always"]
             for _ in range(rounds) for manager in MANAGERS]
    table = Table("Managers of two and three memory nodes: share of the accesses that met the fast node", COLUMNS)
    explain(table)
    fill(table, options, files, cases, say)
    return [table]
