"""Section `chunks`: ATMem's two readings of equation 2, and thermos, between first touch and the oracle, in the simulator."""
import os

from measure import geometric_mean
from table import Table
from tools import ROOT, Tools, must

POLICIES = ["atmem=eq2:printed", "atmem=eq2:prose", "thermos"]
CAPACITIES = ["50%", "25%", "12.5%"]
PROGRAMS = {
    "graph, search": ["graph", "--kernel", "bfs", "--rmat", "20", "--roots", "48"],
    "graph, PageRank": ["graph", "--kernel", "pagerank", "--rmat", "20", "--iterations", "25"],
    "gups, two tables": ["gups"],
    "gups, Zipf": ["gups", "--mode", "zipf"],
    "triad": ["triad", "--iterations", "400"],
    "stencil": ["stencil", "--iterations", "200"],
    **{f"patterns, {mode}": ["patterns", "--mode", mode, "--seconds", "12", "--phase", "3", "--size", "256MiB"]
       for mode in ("zipf", "scattered", "phases", "scan")},
}
# The least part of the accesses that there must be to win.
LEAST = 0.01
# A share counts as this much at least in a geometric mean.
FLOOR = 0.01


def shares(tools: Tools, profile: str, fast: str) -> list[float] | None:
    """The share of each policy between first touch, 0, and the oracle, 1; None where these hardly differ."""
    [capacity] = tools.simulate([profile], POLICIES, "--fast", fast)
    rates = {policy["policy"]: policy["hit_rate"] for policy in capacity["policies"]}
    least, most = rates["first touch"], rates["oracle"]
    return [(rates[policy] - least) / (most - least) for policy in POLICIES] if most - least >= LEAST else None


def generated(accesses: int) -> list[tuple[str, str, list[float]]]:
    """The same for every generated trace, as one data object with exact counts."""
    command = ["cargo", "run", "--release", "--quiet", "--package", "isotherm-sim", "--example", "chunk_selection",
               "--", str(accesses)]
    lines = must(command, "the generated traces", cwd=ROOT).splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    return [(f"{name} (trace)", f"{100 * float(fast):g}%", [float(share) for share in found])
            for name, fast, *found in rows]


def recorded(tools: Tools, profiles: dict[str, str]) -> list[tuple[str, str, list[float]]]:
    """The same for these profiles."""
    found = [(name, fast, shares(tools, path, fast)) for name, path in profiles.items() for fast in CAPACITIES]
    return [(name, fast, row) for name, fast, row in found if row is not None]


def tabulate(rows: list[tuple[str, str, list[float]]]) -> Table:
    table = Table("Chunk selection: share between first touch (0) and the oracle (1)", ["program", "fast", *POLICIES])
    for name, fast, found in rows:
        table.row(name, fast, *found)
    of_policies = zip(*(found for *_, found in rows))
    table.row("geometric mean", "", *(geometric_mean([max(share, FLOOR) for share in found]) for found in of_policies))
    table.note(f"In the mean a share counts as {FLOOR} at least. A policy is replayed on the samples from which it chose, so it "
               "serves less in another run.")
    return table


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    profiles = {}
    for name, (program, *words) in PROGRAMS.items():
        say(f"recording {name}")
        profiles[name] = os.path.join(folder, f"{len(profiles)}.iso")
        must([*tools.record(profiles[name]), *tools.workload(program, *words).command], f"recording {name}")
        if options.quick:
            break
    say("replaying")
    return [tabulate(recorded(tools, profiles) + generated(1 << (16 if options.quick else 20)))]
