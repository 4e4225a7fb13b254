"""Section `comerge`: CoMerge's evaluation (MEMSYS 2017) on the emulated machine of its labels, part by part. Each table is printed as soon as it is made."""
import argparse
import sys
import time
from collections.abc import Callable, Iterator

import comerge_benefit
import comerge_cases
import comerge_classes
import comerge_figures
import comerge_machine
import comerge_online
import comerge_sharing
from measure import Problem
from progress import Progress, in_words
from table import Table
from tools import Tools

# In the order in which they run, which is the paper's.
PARTS: dict[str, Callable[[Tools, argparse.Namespace, str, Progress], Iterator[Table]]] = {
    "machine": comerge_machine.tables,
    "classes": comerge_classes.tables,
    "figures": comerge_figures.tables,
    "benefit": comerge_benefit.tables,
    "sharing": comerge_sharing.tables,
    "cases": comerge_cases.tables,
    "online": comerge_online.tables,
}
# Rounds with --quick, which shows that everything works: some five minutes.
QUICK_ROUNDS = 1


def chosen(options) -> list[str]:
    """The parts that are to run: those of --part; with --program the one that is of single programs; else all."""
    return options.part or (["classes"] if options.program else list(PARTS))


def run(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    if options.quick and not options.has_rounds:
        options = argparse.Namespace(**dict(vars(options), rounds=QUICK_ROUNDS))
    problems = []
    for part in chosen(options):
        begin = time.monotonic()
        try:
            yield from PARTS[part](tools, options, folder, Progress(say, part))
        except Problem as problem:
            yield from problem.tables
            problems.append(f"{part}: {problem}")
        say("")
        print(f"bench: comerge, {part}: {in_words(time.monotonic() - begin)}", file=sys.stderr, flush=True)
    if problems:
        raise Problem("; ".join(problems))
