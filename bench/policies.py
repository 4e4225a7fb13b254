"""Section `policies`: the promises for the policies and the simulator, on input made from seeds."""
import re

from measure import Problem
from table import Table
from tools import ROOT, must

# The examples print one such line for each promise.
VERDICT = re.compile(r"(reached|not reached): (.*): promised (.*), measured (.*)")


def figures(package: str, example: str, *arguments: str) -> list[tuple[str, ...]]:
    """Builds and runs an example; the word, the figure, the promise and the measurement of each."""
    command = ["cargo", "run", "--release", "--quiet", "--package", package, "--example", example, "--", *arguments]
    printed = must(command, f"the figures of {package}", cwd=ROOT)
    found = [match.groups() for match in map(VERDICT.fullmatch, printed.splitlines()) if match]
    if not found:
        raise Problem(f"the figures of {package}: no promise was printed")
    return found


def run(_tools, options, _folder: str, say) -> list[Table]:
    say("the policies' figures")
    found = figures("isotherm-policy", "figures")
    say("the simulator's figures")
    # A quarter of the accesses, and one seed, with --quick.
    found += figures("isotherm-sim", "simulator_figures", *(["1048576", "1"] if options.quick else []))
    table = Table("Policies and simulator: what is promised, and what this machine does",
                  ["figure", "promised", "measured", ""])
    for word, what, promised, measured in found:
        table.row(what, promised, measured, word)
    reached = sum(word == "reached" for word, *_ in found)
    table.note(f"{reached} of {len(found)} reached. Times are processor time on one core; hit rates do not depend on the "
               "machine.")
    return [table]
