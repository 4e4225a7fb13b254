"""CoMerge's figure 2 and table 3: what each data object gains its program when it alone is fast, measured and predicted from one run.

    sensitivity: record --> the prediction
                 all slow, each object alone fast, all fast, in turn --> the measured benefits
"""
import json
import os
from collections.abc import Iterator

from comerge_programs import TIERS, short
from measure import Problem
from programs import ONE_THREAD
from table import Table
from tools import Tools, must

# The programs of table 3, and the paper's benefit of each object.
PROGRAMS = {
    "lookup": {"nuclide_grid": 0.91, "energy_grid": 0.14},
    "zones": {"zones": 1.0, "parts": 0.02},
    "stream": {"a": 0.40, "b": 0.40, "c": 0.58},
    "doitgen": {"C4": 0.81, "sum": 0.64, "A": 0.15},
    "adi": {"X": 0.62, "B": 0.53, "A": 0.34},
    "trmm": {"B": 0.99, "A": 0.04},
    "fdtd-2d": {"hz": 0.48, "ey": 0.37, "ex": 0.29},
    "jacobi-2d": {"A": 0.62, "B": 0.58},
}
# The goal: predictions within this of the measured benefit, for this share of the objects.
WITHIN, SHARE = 0.1, 0.9


def measure(tools: Tools, name: str, options) -> dict:
    benefits = PROGRAMS[name]
    made = short(tools, name, options)
    command = [tools.isotherm, "--quiet", "sensitivity", "--json", "--tiers", TIERS, "--rounds", str(options.rounds), "--time-limit",
               f"{options.limit:g}s", "--objects", str(len(benefits)), "--", *made.command]
    limit = options.limit * (len(benefits) + 3) * options.rounds
    return json.loads(must(command, f"sensitivity of {name}", env=dict(os.environ, **ONE_THREAD), timeout=limit))


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    made = Table(f"Benefit of each data object that alone is fast, on {TIERS} (figure 2, table 3)",
                 ["program", "class", "object", "benefit", "of the rounds", "predicted", "error", "in the paper"])
    near = objects = 0
    for name in say.steps(list(PROGRAMS)[:1] if options.quick else list(PROGRAMS)):
        say(f"{name}: sensitivity")
        printed = measure(tools, name, options)
        for each in printed["objects"]:
            measured, predicted = each["measured"], each["predicted"]
            if not measured or not predicted:
                raise Problem(f"{name}, {each['object']}: no benefit was {'predicted' if measured else 'measured'}", [made])
            error = predicted["benefit"] - measured["benefit"]
            objects, near = objects + 1, near + (abs(error) <= WITHIN)
            spread = [measured["benefit_min"], measured["benefit_max"]]
            made.row(name, printed["measured"]["class"], each["object"], f"{measured['benefit']:.2f}",
                     "no gap" if None in spread else f"{spread[0]:.2f} .. {spread[1]:.2f}", f"{predicted['benefit']:.2f}", f"{error:+.2f}",
                     PROGRAMS[name].get(each["object"], ""))
    made.goal(f"Goal: predictions within {WITHIN} of the measured benefit for {SHARE:.0%} of the objects. {near} of {objects}", near >= SHARE * objects)
    made.note("Objects have the paper's names, and other sizes; lookup, zones and stream stand for XSBench, CLOMP and STREAM.")
    yield made
