"""Section `movement`: the speed of moves, the waits of writers, the cost of planning moves."""
import json
import statistics

from table import Table
from tools import Tools, beside, must

MEMORY_PER_BYTE = 3.5  # what is moved, a twin for memcpy, the staging buffer of two copies, and air


def run_json(options, arguments: list[str]) -> dict:
    out = must([beside(options, "movement"), *arguments], "measuring movement", timeout=options.limit)
    return json.loads(out.splitlines()[-1])


def available_mib() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    return 0


def sizes(quick: bool) -> list[int]:
    wanted = [16, 256] if quick else [16, 256, 1024, 4096]
    return [mib for mib in wanted if mib * MEMORY_PER_BYTE < available_mib()]


def rates(found: dict) -> dict[str, list[float]]:
    return {way["way"]: way["gib_a_second"] for way in found["ways"]}


def paired(rate: dict[str, list[float]], way: str, other: str) -> float:
    """Median of the ratios within a round; 0 where one of the two is missing."""
    if way not in rate or other not in rate:
        return 0.0
    return statistics.median(a / b for a, b in zip(rate[way], rate[other]))


def quiet(options, say) -> Table:
    table = Table("Staged copy of idle memory, as a share of memcpy into resident memory",
                  ["pages", "MiB", "T", "memcpy GiB/s", "spread", "staged",
                   "two copies", "staged / two copies", "best / best", "huge before", "after"])
    worst, least, lost = 9.0, {True: 99.0, False: 99.0}, False
    for huge in (False, True):
        for mib in sizes(options.quick):
            for threads in (1, 2):
                say(f"movement: {mib} MiB, {'huge' if huge else 'small'} pages, {threads} threads")
                arguments = ["copy", "--mib", str(mib), "--threads", str(threads), "--rounds", str(options.rounds)]
                found = run_json(options, arguments + (["--huge"] if huge else []))
                rate = rates(found)
                plain = statistics.median(rate["memcpy"])
                spread = (max(rate["memcpy"]) - min(rate["memcpy"])) / plain
                gain = paired(rate, "staged", "two copies")
                share = paired(rate, "staged", "memcpy")
                worst, least[huge] = min(worst, share), min(least[huge], gain)
                before, after = found["huge_bytes_before"] >> 20, found["huge_bytes_after"] >> 20
                lost |= before != after or any(way["bytes_left"] for way in found["ways"])
                table.row("2 MiB" if huge else "4 KiB", mib, threads, f"{plain:.2f}", f"{spread:.0%}",
                          share, paired(rate, "two copies", "memcpy"), f"{gain:.1f}",
                          max(rate["staged"]) / max(rate["memcpy"]), f"{before} MiB", f"{after} MiB")
    table.note("`best / best` divides the fastest rounds of the staged copy and memcpy: what is left of a busy machine's noise.")
    table.goal(f"Promised: at least 0.8 of memcpy. Lowest here {worst:.2f}", worst >= 0.8)
    table.goal("Promised: at least 2.5 times the two copies of ATMem with huge pages, 5 times with small ones. Lowest "
               f"here {least[True]:.1f} and {least[False]:.1f}", least[True] >= 2.5 and least[False] >= 5)
    table.goal("Huge pages after as before, and nothing left unmoved", not lost)
    return table


def stalls(options, say) -> Table:
    table = Table("Longest pause of a writer to the 2 MiB that move (microseconds, over units)",
                  ["moves", "pages", "units", "p50", "p99", "max", "stop p50", "stop p99"])
    units = "400" if options.quick else "2000"
    worst = 0.0
    for moves in (False, True):
        for huge in (False, True):
            say(f"movement: stall, {'staged copy' if moves else 'idle'}")
            arguments = ["stall", "--units", units] + ([] if moves else ["--idle"]) + (["--huge"] if huge else [])
            found = run_json(options, arguments)
            stall, stop = found["stall_us"], found["stop_us"]
            if moves:
                worst = max(worst, stall["p99"])
            table.row("staged copy" if moves else "none", "2 MiB" if huge else "4 KiB", found["moved"], f"{stall['p50']:.0f}", f"{stall['p99']:.0f}",
                      f"{stall['max']:.0f}", f"{stop['p50']:.0f}", f"{stop['p99']:.0f}")
    table.note("`none` moves nothing: what the machine itself does to a writer in 0.3 ms.")
    table.goal(f"Promised on an idle machine: p99 at most 1000. Here {worst:.0f}", worst <= 1000)
    return table


def planning(options, say) -> Table:
    say("movement: planning")
    runs = [run_json(options, ["plan"]) for _ in range(options.rounds)]
    seconds = statistics.median(run["seconds"] for run in runs)
    table = Table("Planning and issuing page moves to a kernel that answers at once (our own processor time)",
                  ["pages", "moved", "outcome parts", "seconds"])
    table.row(runs[0]["pages"], runs[0]["moved"], runs[0]["parts"], seconds)
    table.goal("Promised: at most 1 s for a million pages", seconds <= 1)
    return table


def run(_tools: Tools, options, _folder: str, say) -> list[Table]:
    return [quiet(options, say), stalls(options, say), planning(options, say)]
