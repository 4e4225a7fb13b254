"""The cases of CoMerge's sections 4.1 and 4.2: its programs, and its part of fast memory."""
from collections.abc import Iterator

from comerge_sharing import CELLS, EQUAL, OURS, PUBLISHED, TABLE_4, Shared, cells, evaluate
from parts import tables_of_each
from table import Table
from tools import Tools

# The programs, their fast memory as a part of their data in the paper, and the used share by policy.
CASES = [(("lookup", "zones", "stream"), "73%", {policy: used for policy, (used, _) in TABLE_4.items()}),
         (("jacobi-2d", "fdtd-2d"), "80%", {EQUAL: 1.0, "proportional-split": 0.75}),
         (("doitgen", "fdtd-2d"), "80%", {EQUAL: 1.0, "proportional-split": 0.75}),
         (("jacobi-2d", "fdtd-2d"), "40%", {"fair-merge": 1.0, "blind-merge": 1.0}),
         (("jacobi-2d", "adi"), "40%", {"blind-merge": 1.0, PUBLISHED: 1.0})]
# With --quick.
QUICK_CASES = CASES[-1:]


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    def compare(case: tuple) -> tuple[Shared, str, dict[str, float]]:
        names, fast, paper = case
        # Equal split first: the slow-downs of the others are divided by its own.
        wanted = list(dict.fromkeys([EQUAL, *paper, OURS]))
        return evaluate(tools, names, wanted, fast, folder, options, say), fast, paper

    yield from tables_of_each(say.steps(QUICK_CASES if options.quick else CASES), compare, lambda compared: [cases(compared)])


def cases(compared: list[tuple[Shared, str, dict[str, float]]]) -> Table:
    table = Table("The cases of sections 4.1 and 4.2", ["programs", "fast", "policy", "used", "in the paper", *CELLS])
    for shared, fast, paper in compared:
        for policy, outcome in shared.outcomes.items():
            table.row(shared.title(), fast, policy, f"{outcome.used:.2f}", f"{paper[policy]:.2f}" if policy in paper else "", *cells(shared, policy))
    table.note("In the paper's figures 3 and 4 the three programs of the first case are slowed " +
               ", ".join(f"up to {most} by {policy}" for policy, (_, most) in TABLE_4.items()) + ".")
    table.note("Fast memory is the paper's part of the programs' data; objects have other sizes here, so another number of them fits.")
    return table
