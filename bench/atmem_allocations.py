"""What parts of a plan add to an allocation (docs/parts.md): the same program by two plans, in turn.

    pairs.c, recorded --> its site whole in the slow tier -------------------------------> malloc and free of one size, timed
                      --> the same, and every other 64 KiB of its first MiB fast --------> likewise

On the emulated machine an entry in a table places a page, on nodes `mbind` does where the pages had another place before.
"""
import dataclasses
import os

from measure import Contender, Problem, Program, Samples, interleave, run_once
from table import Table
from tools import Tools, compiled

NANOSECONDS = "nanoseconds_per_allocation"
WHOLE, IN_PARTS = "whole sites", "in parts"
KIB, MIB = 1 << 10, 1 << 20
# Least bytes of an allocation that has parts (docs/parts.md).
LARGE = 64 * KIB
PART_KIB, PARTS = 64, 8
# The goal of large allocations; a small one costs nothing, that is: not each of its runs takes longer than each by whole sites.
ADDED_AT_MOST_US = 5
# Nothing is slowed: what is left is the cost of placing.
UNSLOWED, NODES = "emulated:B:1,L:1", "detect"


@dataclasses.dataclass(frozen=True)
class Size:
    """Bytes of an allocation, and how many make a run of half a second."""

    bytes: int
    count: int

    @property
    def label(self) -> str:
        unit, name = (MIB, "MiB") if self.bytes >= MIB else (KIB, "KiB") if self.bytes >= KIB else (1, "B")
        return f"{self.bytes // unit} {name}"

    @property
    def is_large(self) -> bool:
        return self.bytes >= LARGE

    def program(self, path: str, quick: bool, pattern: str = "pair") -> Program:
        count = self.count // (10 if quick else 1)
        return Program(f"allocations of {self.label}", [path, pattern, str(self.bytes), "1", str(count)])


# jemalloc unmaps blocks of 8 MiB and more as soon as they are freed.
SIZES = [Size(256, 20_000_000), Size(32 * KIB, 10_000_000), Size(256 * KIB, 500_000), Size(4 * MIB, 100_000), Size(16 * MIB, 20_000)]

# One site allocates all sizes. These blocks are written and exceed the caches, so that each profile has samples of the site.
RECORDED = Size(64 * MIB, 30)


def divided(plan: str) -> str:
    """A copy of the plan whose sites are placed in parts."""
    with open(plan, encoding="utf-8") as file:
        lines = file.read().splitlines()
    fast = next(line.split()[1] for line in lines if line.startswith("tier "))
    # What the plan expects holds for whole sites.
    lines = [line for line in lines if not line.startswith("expected ")]
    written = []
    for line in lines:
        written.append(line)
        words = line.split()
        if words[:1] == ["site"] and words[1] != "shared":
            starts = [2 * PART_KIB * part for part in range(PARTS)]
            written += [f"part {words[1]} {fast} from {start}KiB to {start + PART_KIB}KiB value 0 weight 0B" for start in starts]
    if len(written) == len(lines):
        raise Problem(f"{plan}: it has no site of its own, so nothing is placed in parts")
    output = plan.removesuffix(".plan") + ".parts.plan"
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(written) + "\n")
    return output


def machines(tools: Tools) -> dict[str, str]:
    """The tiers to measure on, by name: nodes where this machine has memory of two speeds."""
    found = tools.json(["tiers", "--tiers", NODES], "reading the tiers")
    return {"emulated": UNSLOWED} | ({} if found["emulated"] else {"nodes": NODES})


def added_us(samples: Samples) -> float:
    """Microseconds that parts add to an allocation."""
    return (samples.median(IN_PARTS, NANOSECONDS) - samples.median(WHOLE, NANOSECONDS)) / 1000


def is_slower(samples: Samples) -> bool:
    """Whether each run by parts took longer than each by whole sites."""
    return min(samples.values(IN_PARTS, NANOSECONDS)) > max(samples.values(WHOLE, NANOSECONDS))


def measured(tools: Tools, path: str, tiers: str, folder: str, options, say) -> list[tuple[Size, Samples]]:
    """Allocations of every size by both plans of these tiers."""
    profile, plan = (os.path.join(folder, f"allocations.{kind}") for kind in ("iso", "plan"))
    run_once(RECORDED.program(path, False, "written"), Contender("record", tools.record(profile)), options.limit)
    ways = [Contender(WHOLE, tools.guided(tools.plan(profile, "all-slow", "64MiB", plan, tiers))), Contender(IN_PARTS, tools.guided(divided(plan)))]
    return [(size, interleave(size.program(path, options.quick), ways, options.rounds, options.limit, say)) for size in SIZES]


def allocations(tools: Tools, folder: str, options, say) -> Table:
    """A row for each machine and size."""
    table = Table("What parts of a plan add to an allocation: nanoseconds of processor time for one malloc and free (median)",
                  ["tiers", "bytes", "whole sites", "spread", "in parts", "spread", "added us"])
    path = compiled("pairs.c", folder, "-pthread")
    large, small = [], []
    kinds = machines(tools)
    for kind, tiers in kinds.items():
        for size, samples in measured(tools, path, tiers, folder, options, say):
            cells = [cell for way in (WHOLE, IN_PARTS)
                     for cell in (f"{samples.median(way, NANOSECONDS):.1f}", f"{samples.spread(way, NANOSECONDS):.1%}")]
            added, name = added_us(samples), f"{size.label} on {kind}"
            table.row(kind, size.label, *cells, added)
            if size.is_large and added > ADDED_AT_MOST_US:
                large.append(name)
            if not size.is_large and is_slower(samples):
                small.append(name)
    table.goal_of_each(f"Goal: an allocation of more than 64 KiB takes at most {ADDED_AT_MOST_US} us more", large)
    table.goal_of_each("Goal: an allocation of less takes no longer, beyond the ranges of both", small)
    table.note("The emulated machine slows nothing here. Each block of 64 KiB and more has up to eight parts; a smaller one has none.")
    if "nodes" not in kinds:
        table.note("Left out: nodes, because this machine has memory of one speed.")
    return table
