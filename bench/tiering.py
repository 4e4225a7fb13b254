"""Section `tiering`: the managers of a machine with two memory nodes, on programs whose hot memory is known.

Each run has a virtual machine of its own (tests/vm): an emulated machine has no slow memory, so what is measured is where the accesses
meet their data, counted by the program itself (bench/tiering/patterns.c), and what that took. Needs `setup/vm` and
`cargo build --release`.
"""
import os
import re

from measure import Problem
from table import Table
from tools import HERE, ROOT, Tools, must

MANAGERS = {
    "none": "nothing moves",
    "kernel": "numa_balancing = 2 and demotion, else as shipped",
    "tuned": "the same, scanning each 200 to 1,000 ms with a hot threshold of 200 ms",
    "damon": "DAMON by frame, migrate_hot and migrate_cold",
    "isotherm-pages": "isotherm daemon with mover = \"pages\"",
    "isotherm": "isotherm daemon as shipped",
}
# Accesses of a run, and of a quick one.
PATTERNS = {"zipf": (160_000_000, 16_000_000), "phases": (160_000_000, 16_000_000), "scan": (160_000_000, 16_000_000),
            "quiet": (1_500_000, 400_000)}
TICKS_A_SECOND = 100
FIGURES = re.compile(r"^hot (\S+) all (\S+) reached (\d+) of (\d+) until (\S+) system (\S+) faults \d+ ticks (\d+) moved (\d+) high \d+ free \d+$", re.M)


def guest(options, patterns: str, manager: str, pattern: str, huge: str) -> re.Match:
    """Runs a pattern under a manager in a virtual machine of its own."""
    work = PATTERNS[pattern][1 if options.quick else 0]
    stand = os.path.join(os.path.dirname(os.path.abspath(options.isotherm)), "isotherm-vm")
    command = [stand, "run", "--with", options.isotherm, "--with", patterns, "two-nodes", os.path.join(HERE, "tiering", "guest"),
               manager, pattern, str(work), huge]
    what = f"{pattern} under {manager}"
    output = must(command, what, options.limit + 300)
    found = FIGURES.search(output)
    if not found:
        raise Problem(f"{what}: no figures in {output.strip()!r}")
    return found


def run(_tools: Tools | None, options, folder: str, say) -> list[Table]:
    for needed in ("isotherm", "isotherm-vm"):
        path = os.path.join(os.path.dirname(os.path.abspath(options.isotherm)), needed)
        if not os.path.isfile(path):
            raise Problem(f"there is no {path}; build it with cargo build --release --workspace")
    if not os.path.isdir(os.path.join(ROOT, "build", "vm")):
        raise Problem("there is no build/vm; make it with setup/vm")
    patterns = os.path.join(folder, "patterns")
    must(["cc", "-O2", "-Wall", "-o", patterns, os.path.join(HERE, "tiering", "patterns.c"), "-lm"], "compiling the patterns")
    wanted = options.program or list(PATTERNS)
    table = Table("Managers of two memory nodes: share of the accesses that met the fast node",
                  ["pattern", "manager", "hot accesses", "all accesses", "work until 0.9", "moved MiB", "manager s", "program's system s"])
    rounds = options.rounds if options.has_rounds else 1
    for pattern in wanted:
        for turn in range(rounds):
            for manager in MANAGERS:
                say(f"{pattern} under {manager}: round {turn + 1} of {rounds}")
                hot, every, reached, phases, until, system, ticks, moved = guest(options, patterns, manager, pattern, "always").groups()
                has = f"{float(until):.3f}" + ("" if reached == phases else f" ({reached} of {phases})") if int(reached) else "never"
                table.row(pattern, manager, float(hot), float(every), has, str(int(moved) * 4 // 1024), int(ticks) / TICKS_A_SECOND, float(system))
    table.note("zipf, phases, scan: 112 MiB, 24 MiB of them hot and first on the slow node, 48 MiB of fast memory above the kernel's high watermark, huge pages always. "
               "quiet: 16 MiB of a control group, 8 MiB of them hot, that rests beside a greedy program of 112 MiB; the daemon has a floor of 8 MiB for it, "
               "which no other manager offers.")
    table.note("Work until 0.9: the part of all accesses after which nine of ten accesses to the hot part met the fast node, of the phases that got there. "
               "Moved: all pages that the kernel migrated for anyone. Manager: processor time of the daemon, kdamonds and kswapd; what promotion takes of a program "
               "is its own system time, its start included.")
    table.note(" ".join(f"{name}: {words}." for name, words in MANAGERS.items()))
    return [table]
