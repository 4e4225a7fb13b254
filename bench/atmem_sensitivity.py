"""How ATMem's choice of data, and the time of a repetition, follow epsilon (CGO 2020, figures 9 and 10).

    each epsilon: the choice among all data --> the program optimized with as many fast bytes, all values in turn, with all data fast
"""
import dataclasses
import os

from atmem_choice import ALL_FAST, LATER, choice, optimized
from measure import Contender, Program, interleave, run_once
from table import Table
from tools import Tools

KERNEL = "bfs"
# From the default on: 1/m for the default m of 8, the least value that has a meaning (equation 5).
EPSILONS = ["0.125", "0.25", "0.4", "0.55", "0.7", "0.85", "1"]


def sensitivity(tools: Tools, programs: dict[str, Program], tiers: str, folder: str, options, say) -> Table:
    """A row for each graph and epsilon."""
    table = Table(f"The choice of {KERNEL} by epsilon, on {tiers}: seconds of a repetition behind the first (median)",
                  ["graph", "epsilon", "data", "seconds", "over all fast", "spread"])
    for graph, made in programs.items():
        profile, everything = (os.path.join(folder, f"{made.name}-epsilon.{kind}") for kind in ("iso", "plan"))
        run_once(made, Contender("record", tools.record(profile)), options.limit)
        tools.plan(profile, ALL_FAST, "100%", everything, tiers)
        whole = tools.footprint(profile)
        fast, contenders = {}, [Contender(ALL_FAST, tools.guided(everything))]
        for epsilon in EPSILONS:
            say(f"{made.name}: the choice by epsilon {epsilon}")
            policy = f"atmem=epsilon:{epsilon}"
            fast[epsilon] = choice(tools, made, policy, tiers, options.limit)
            contenders.append(dataclasses.replace(optimized(tools, policy, tiers, f"{fast[epsilon]}B"), name=epsilon))
        samples = interleave(made, contenders, options.rounds, options.limit, say)
        for contender in contenders:
            share = fast.get(contender.name, whole) / whole
            table.row(graph, contender.name, f"{share:.1%}", samples.median(contender.name, LATER),
                      samples.ratio(contender.name, ALL_FAST, LATER), f"{samples.spread(contender.name, LATER):.1%}")
    table.note("A larger epsilon asks for more critical chunks in a node of the tree before the chunks between them are taken, too, "
               "so it chooses less data. The paper sweeps it by hand in the same way.")
    return table
