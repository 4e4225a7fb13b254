"""CoMerge's figures 1 and 2 (MEMSYS 2017, section 3.1): how much slower are its programs with all data slow, on each of its five machines?

    record --> plans: all data slow on each machine, all data fast --> all in turn
"""
import os
from collections.abc import Iterator

from comerge_classes import names
from comerge_machine import LABELS
from comerge_programs import APART, record, short
from measure import Contender, interleave
from table import Table
from tools import Tools

ALL_FAST = "all fast"
# The paper's words on figure 1 (4 to 6 times at B:0.15 L:5) and figure 2 (up to 4 times).
CORAL, CORAL_AT, POLYBENCH = (4.0, 6.0), "B:0.15,L:5", 4.0
# Each program runs six times in a round.
MAX_ROUNDS = 3
# With --quick: one for each figure.
QUICK_NAMES = ["lookup", "jacobi-2d"]


def slowdowns(tools: Tools, name: str, folder: str, options, say) -> dict[str, float]:
    """By machine: the time with all data slow over the time with all data fast."""
    made = short(tools, name, options)
    profile = record(tools, made, folder, options, say)
    inside = os.path.dirname(profile)
    contenders = []
    for number, label in enumerate(LABELS):
        plan = os.path.join(inside, f"figures-{number}.plan")
        tools.plan(profile, "all-slow", "100%", plan, f"emulated:{label}")
        contenders.append(Contender(label, tools.guided(plan)))
    plan = os.path.join(inside, "figures-fast.plan")
    tools.plan(profile, "all-fast", "100%", plan, f"emulated:{CORAL_AT}")
    contenders.append(Contender(ALL_FAST, tools.guided(plan)))
    samples = interleave(made, contenders, min(options.rounds, MAX_ROUNDS), options.limit, say)
    return {label: samples.ratio(label, ALL_FAST, "processor") for label in LABELS}


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    """A table for each figure."""
    chosen = QUICK_NAMES if options.quick and not options.program else names(options)
    found = {name: slowdowns(tools, name, folder, options, say) for name in say.steps(chosen)}
    for number, is_coral in ((1, True), (2, False)):
        rows = {name: by for name, by in found.items() if (name in APART) == is_coral}
        if rows:
            yield figure(number, is_coral, rows)


def figure(number: int, is_coral: bool, rows: dict[str, dict[str, float]]) -> Table:
    what = "the programs in the place of XSBench, CLOMP and STREAM" if is_coral else "the kernels of PolyBench"
    table = Table(f"All slow over all fast, {what} (figure {number})", ["program", *LABELS])
    for name, by in rows.items():
        table.row(name, *(f"{by[label]:.2f}" for label in LABELS))
    at_worst = [by[CORAL_AT] for by in rows.values()]
    if is_coral:
        within = sum(CORAL[0] <= value <= CORAL[1] for value in at_worst)
        table.note(f"In the paper {CORAL[0]:.0f} to {CORAL[1]:.0f} times at {CORAL_AT}; here {min(at_worst):.2f} to {max(at_worst):.2f}, "
                   f"{within} of {len(at_worst)} within.")
    else:
        most = max(max(by.values()) for by in rows.values())
        table.note(f"In the paper up to {POLYBENCH:.0f} times; here up to {most:.2f}, {sum(max(by.values()) > POLYBENCH for by in rows.values())} of "
                   f"{len(rows)} kernels above.")
    return table
