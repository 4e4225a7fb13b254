"""What ATMem's moves cost (CGO 2020, section 7.3, table 4, and 7.4).

    profiled first repetition - the same unprofiled + choice and moves = cost;  cost / what a later repetition gains = repetitions to pay it back
    mbind, move_pages, two copies, staged copy: the same memory, moved to and fro between the nodes of a virtual machine
"""
import json
import os
import statistics

from atmem_choice import ALL_SLOW, ATMEM, FIRST, FIRST_TOUCH, LATER, UNPROFILED
from measure import geometric_mean
from table import Table
from tools import ROOT, Tools, must

# The times that the program waits at its requests.
WAITS = ["profile_start_seconds", "profile_stop_seconds", "optimize_seconds"]
# The goals: a profiled repetition over the same unprofiled, and the repetitions until a move is paid back.
PROFILED_AT_MOST, PAID_WITHIN = 1.05, 2
TOPOLOGY, MIB = "two-nodes", 48
# What moves the memory in table 4, and what is printed where its misses cannot be counted.
MOVES, NO_COUNTER = ("mbind", "two copies", "staged"), "no counter"
PAGE_BYTES = 4096


def repetitions(cost: float, before: float, after: float) -> float:
    """Later repetitions until the cost is paid back; infinite where they gain nothing."""
    return max(cost, 0) / (before - after) if before > after else float("inf")


def paid_back(results: list, tiers: str) -> Table:
    table = Table(f"When ATMem's moves are paid back on {tiers}: seconds (median)",
                  ["program", "first, unprofiled", "profiled", "ratio", "requests", "moved MiB", "GiB/s", "paid back, of all slow",
                   "of first touch"])
    ratios, late = [], []
    for result in results:
        samples = result.samples
        ratios.append(samples.ratio(ATMEM, UNPROFILED, FIRST))
        moves, copied = (sum(samples.median(ATMEM, name) for name in names) for names in (WAITS, ["move_seconds"]))
        moved = samples.median(ATMEM, "promoted_bytes") + samples.median(ATMEM, "demoted_bytes")
        first, profiled = samples.median(UNPROFILED, FIRST), samples.median(ATMEM, FIRST)
        paid = [repetitions(profiled - first + moves, samples.median(base, LATER), samples.median(ATMEM, LATER))
                for base in (ALL_SLOW, FIRST_TOUCH)]
        if paid[0] > PAID_WITHIN:
            late.append(result.name)
        table.row(result.name, first, profiled, ratios[-1], moves, f"{moved / (1 << 20):.1f}",
                  f"{moved / (1 << 30) / copied:.2f}" if copied else "", *(f"{value:.2f}" for value in paid))
    table.row("geometric mean", "", "", geometric_mean(ratios), *[""] * 5)
    table.goal(f"Goal: a profiled repetition takes at most {PROFILED_AT_MOST} of an unprofiled one, in the same placement. "
               f"Highest here {max(ratios):.3f}", max(ratios) <= PROFILED_AT_MOST)
    table.goal_of_each(f"Goal: paid back, of all slow, within {PAID_WITHIN} later repetitions", late)
    table.note("Requests: the time that the program waits for the start and the end of its profile, the choice and the moves. On the emulated machine a page moves by a change of "
               "its record and the preset's cost, so GiB/s is that of the emulation; the table of the ways to move is that of real pages.")
    return table


def ways(tools: Tools, options, say) -> Table:
    table = Table(f"Ways to move {MIB} MiB between the nodes of a virtual machine, by two threads: GiB/s (median)",
                  ["pages", "memcpy", "mbind", "move_pages", "two copies", "staged", "two copies / mbind", "staged / mbind", "huge pages left",
                   "TLB misses a page"])
    binaries = os.path.dirname(tools.isotherm)
    start, program = (os.path.join(binaries, name) for name in ("isotherm-vm", "movement"))
    if not os.path.isdir(os.path.join(ROOT, "build", "vm")):
        table.note("Left out: this machine has no virtual machine; setup/vm fetches one.")
        return table
    for huge in (False, True):
        say(f"ways to move, {'huge' if huge else 'small'} pages")
        command = [start, "run", TOPOLOGY, program, "copy", "--mib", str(MIB), "--threads", "2", "--rounds", str(max(options.rounds, 3))]
        found = json.loads(must(command + ["--huge"] * huge, "moving memory in the virtual machine", timeout=options.limit).splitlines()[-1])
        rates = {way["way"]: way["gib_a_second"] for way in found["ways"]}
        left = {way["way"]: way["huge_bytes_after"] >> 20 for way in found["ways"]}
        medians = [f"{statistics.median(rates[way]):.3f}" for way in ("memcpy", "mbind", "move_pages", "two copies", "staged")]
        against = [statistics.median(a / b for a, b in zip(rates[way], rates["mbind"])) for way in ("two copies", "staged")]
        table.row("2 MiB" if huge else "4 KiB", *medians, *against,
                  ", ".join(f"{way} {left[way]} MiB" for way in MOVES) if huge else "", tlb_misses(found))
    table.note("The virtual machine is emulated in software. Its page faults and TLB misses have other costs than those of hardware, and so have the ratios. "
               "`bench/run movement` has the copies on this machine itself. TLB misses of table 4: those of reading a word of each page of 4 KiB again behind "
               f"the move, in a scattered order (median). Where there is no counter for them, as in a virtual machine without one, the huge pages left stand "
               "for them.")
    return table


def tlb_misses(found: dict) -> str:
    """Misses behind each kind of move, for each page of 4 KiB that was read again."""
    if found["no_tlb_counter"]:
        return NO_COUNTER
    pages = (found["mib"] << 20) // PAGE_BYTES
    counted = {way["way"]: way["tlb_misses"] for way in found["ways"]}
    return ", ".join(f"{way} {statistics.median(counted[way]) / pages:.3f}" if counted[way] else f"{way} {NO_COUNTER}" for way in MOVES)
