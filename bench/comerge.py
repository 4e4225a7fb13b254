"""Section `comerge`: CoMerge's evaluation (MEMSYS 2017) on the emulated machine of its labels, part by part. Each table is printed as soon as it is made."""
import argparse
from collections.abc import Iterator

import comerge_benefit
import comerge_cases
import comerge_classes
import comerge_figures
import comerge_machine
import comerge_online
import comerge_sharing
from parts import Parts, of_section, run_parts
from table import Table
from tools import Tools

# In the order in which they run, which is the paper's.
PARTS: Parts = {
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
    return of_section(PARTS, options) or (["classes"] if options.program else list(PARTS))


def run(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    if options.quick and not options.has_rounds:
        options = argparse.Namespace(**dict(vars(options), rounds=QUICK_ROUNDS))
    yield from run_parts("comerge", PARTS, chosen(options), tools, options, folder, say)
