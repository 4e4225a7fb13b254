"""Section `daemon`: the accuracy and the cost of `isotherm daemon` on one machine without a PMU.

Nothing is moved: the machine has one kind of memory, so the daemon runs dry and prints what it would move.
"""
import dataclasses
import json
import os
import re
import statistics
import subprocess
import threading
import time

from measure import Problem
from table import Table
from tools import Tools

GIB = 2**30
PIECE = 2 * 2**20
# The part of the table that fits in fast memory.
PART = 8
# Seconds after the daemon's start that are not judged: it has no samples yet.
WARM_UP = 5
PHASE = 20
# Seconds after the daemon's start in which it scans all memory for the first time.
FIRST = 2.0
PROMISED = 0.9
# By the name of the row: the program's options. Hits in its modelled cache are not accesses to memory. The machine's own
# cache, which affects the samples, may hold more: that matters where single blocks are hot all over the table.
PATTERNS = {
    "zipf": ["--mode", "zipf"],
    "scattered": ["--mode", "scattered"],
    "scattered, cache of 4 MiB": ["--mode", "scattered", "--cache", "4MiB"],
    "phases": ["--mode", "phases", "--phase", str(PHASE)],
    "scan": ["--mode", "scan"],
}
MOVE = re.compile(r"would: move (\S+) at 0x([0-9a-f]+) of process \d+ to (fast|slow) memory")
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclasses.dataclass(frozen=True)
class Slot:
    """The program's record of a quarter of a second: its end, and accesses to memory by piece."""

    end: int
    counts: list[int]


@dataclasses.dataclass(frozen=True)
class Watched:
    """A span of the program alone, and one beside the daemon: its first seconds, the rest, and its status at the end."""

    alone: tuple[int, int]
    first: tuple[int, int]
    settled: tuple[int, int]
    status: dict


def read_bytes(text: str) -> int:
    number, unit = re.fullmatch(r"([0-9]+)([KMG]?i?B)", text).groups()
    return int(number) * SIZES[unit]


class Daemon:
    """A dry run of the daemon that watches one process. Its output is kept with the time of each line."""

    def __init__(self, tools: Tools, folder: str, pid: int, fast: int, unit: str = "2MiB"):
        self.tools, self.folder = tools, folder
        self.said: list[tuple[int, str]] = []
        config = os.path.join(folder, "daemon.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[memory]\nfast = "{fast}B"\nunit = "{unit}"\n'
                       f'[processes]\npids = [{pid}]\nfilter = "off"\n'
                       f'[serve]\nsocket = "{folder}/socket"\nstate = "{folder}/state"\nmetrics = ""\n')
        self.child = subprocess.Popen([tools.isotherm, "daemon", "--dry-run", "--verbose", "--config", config], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        for line in self.child.stdout:
            self.said.append((time.monotonic_ns(), line))

    def status(self) -> dict | None:
        """The output of `isotherm status`; none until the daemon answers."""
        command = [self.tools.isotherm, "status", "--json", "--socket", os.path.join(self.folder, "socket")]
        done = subprocess.run(command, capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def stop(self) -> None:
        self.child.terminate()
        self.reader.join()
        if self.child.wait() != 0:
            raise Problem(f"the daemon ended with status {self.child.returncode}")


def start(tools: Tools, words: list[str], truth: str) -> tuple[subprocess.Popen, int]:
    """The program, once its table exists, and the table's address."""
    command = [*tools.workload("patterns", *words, "--truth", truth).command]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while child.poll() is None:
        if os.path.isfile(truth):
            with open(truth, encoding="utf-8") as file:
                line = file.readline()
            if line.endswith("\n"):
                return child, int(line.split()[1], 16)
        time.sleep(0.05)
    raise Problem(f"patterns ended with status {child.returncode}: {child.stderr.read()}")


def slots(truth: str) -> list[Slot]:
    with open(truth, encoding="utf-8") as file:
        lines = [[int(word) for word in line.split()] for line in file.readlines()[1:] if line.endswith("\n")]
    return [Slot(line[0], line[1:]) for line in lines]


def wanted_at(said: list[tuple[int, str]], table: int, pieces: int) -> list[tuple[int, set[int]]]:
    """Which pieces of the table would be fast, from each moment at which that changed."""
    fast: set[int] = set()
    changes: list[tuple[int, set[int]]] = []
    for moment, line in said:
        move = MOVE.match(line)
        if not move:
            continue
        first, size = int(move[2], 16) - table, read_bytes(move[1])
        moved = {at // PIECE for at in range(first, first + size, PIECE)} & set(range(pieces))
        fast = fast | moved if move[3] == "fast" else fast - moved
        changes.append((moment, fast))
    return changes


def shares(slots: list[Slot], changes: list[tuple[int, set[int]]], begin: int, room: int) -> list[tuple[int, float]]:
    """Of each second from `begin`: its end, and the accesses that the wanted pieces serve, in those that the best
    pieces of the same second would serve (TMP's oracle)."""
    result = []
    seen = [slot for slot in slots if slot.end > begin]
    for at in range(0, len(seen) - 3, 4):
        served, sums = 0, [0] * len(seen[at].counts)
        for slot in seen[at:at + 4]:
            fast = next((fast for moment, fast in reversed(changes) if moment < slot.end - 125_000_000), set())
            served += sum(slot.counts[piece] for piece in fast)
            sums = [a + b for a, b in zip(sums, slot.counts)]
        best = sum(sorted(sums, reverse=True)[:room])
        result.append((seen[at + 3].end, served / max(best, 1)))
    return result


def reaction(judged: list[tuple[int, float]], changed: list[int]) -> int:
    """Most seconds from a change of phase to the first that is served as promised."""
    waits = []
    for moment in changed:
        after = [share for end, share in judged if end > moment + 1_000_000_000]
        waits.append(next((wait for wait, share in enumerate(after) if share >= PROMISED), len(after)))
    return max(waits, default=0)


def detect(tools: Tools, folder: str, pattern: str, size: int, seconds: int) -> list[object]:
    truth = os.path.join(folder, f"{pattern}.truth")
    words = [*PATTERNS[pattern], "--size", f"{size}B", "--seconds", str(seconds)]
    program, table = start(tools, words, truth)
    begun = time.monotonic_ns()
    daemon = Daemon(tools, folder, program.pid, size // PART)
    program.wait()
    daemon.stop()
    counted = slots(truth)
    changes = wanted_at(daemon.said, table, size // PIECE)
    judged = shares(counted, changes, begun + WARM_UP * 10**9, size // PART // PIECE)
    if not judged:
        raise Problem(f"{pattern}: the program ended before anything could be judged")
    values = [share for _, share in judged]
    phases = range(PHASE, seconds, PHASE) if pattern == "phases" else []
    changed = [counted[0].end + phase * 10**9 for phase in phases]
    changed = [moment for moment in changed if moment > begun + WARM_UP * 10**9]
    return [pattern, statistics.mean(values), statistics.median(values), min(values),
            reaction(judged, changed) if changed else ""]


def rate(slots: list[Slot], begin: int, end: int) -> float:
    """Updates a second between two moments."""
    pairs = [(before, slot) for before, slot in zip(slots, slots[1:]) if before.end >= begin and slot.end <= end]
    if not pairs:
        raise Problem("the program did nothing while it was looked at")
    return sum(sum(slot.counts) for _, slot in pairs) * 1e9 / sum(slot.end - before.end for before, slot in pairs)


def span(seconds: float) -> tuple[int, int]:
    """Lets this time pass; returns its begin and end."""
    begin = time.monotonic_ns()
    time.sleep(seconds)
    return begin, time.monotonic_ns()


def watch(tools: Tools, folder: str, size: int, rounds: int, window: float) -> tuple[list[Watched], list[Slot]]:
    """One program, alone and watched in turn: each pair of spans has the same memory and the same neighbours."""
    truth = os.path.join(folder, f"cost-{size}.truth")
    # More than is ever needed: it is stopped when all spans are measured.
    seconds = int(rounds * 2 * (window + FIRST) + 600)
    program, _ = start(tools, ["--mode", "scan", "--cache", "0", "--size", f"{size}B", "--seconds", str(seconds)], truth)
    seen = []
    try:
        for turn in range(rounds):
            before = span(window) if turn % 2 == 0 else None
            daemon = Daemon(tools, folder, program.pid, size // PART)
            first, settled = span(FIRST), span(window)
            status = daemon.status()
            daemon.stop()
            if status is None or status["epochs"] == 0:
                raise Problem("the daemon never answered")
            seen.append(Watched(before or span(window), first, settled, status))
    finally:
        program.terminate()
        program.communicate()
    return seen, slots(truth)


def cost(tools: Tools, options, folder: str, say) -> Table:
    table = Table("What watching costs, epochs of 1 s (medians)",
                  ["size", "updates a second alone", "time watched / alone", "quartiles", "in its first seconds", "daemon's processor", "its own memory",
                   "in what it watches", "with program and libraries"])
    sizes, window = ([1], 3.0) if options.quick else ([1, 4, 8], 10.0)
    rounds = options.rounds * 2
    for gib in sizes:
        say(f"daemon: what watching {gib} GiB costs")
        seen, counted = watch(tools, folder, gib * GIB, rounds, window)
        alone = [rate(counted, *one.alone) for one in seen]
        ratios = [before / rate(counted, *one.settled) for before, one in zip(alone, seen)]
        first = [before / rate(counted, *one.first) for before, one in zip(alone, seen)]
        low, _, high = statistics.quantiles(ratios)
        share = statistics.median(one.status["cpu_share"] for one in seen)
        own = statistics.median(one.status["memory_private_bytes"] + one.status["memory_rings_bytes"] for one in seen)
        resident = statistics.median(one.status["memory_bytes"] for one in seen)
        table.row(f"{gib} GiB", f"{statistics.median(alone):,.0f}", statistics.median(ratios), f"{low:.3f} to {high:.3f}",
                  statistics.median(first), f"{share:.2%}", f"{own / 2**20:.1f} MiB", f"{own / (gib * GIB):.2%}",
                  f"{resident / 2**20:.1f} MiB")
    table.note(f"Program: patterns --mode scan, one thread that runs through all rounds; the daemon is started and stopped beside it, {rounds} times, "
               f"for {FIRST + window:g} s. First seconds: {FIRST:g} s from its start on, in which it looks at everything once. Promised: a ratio of 1.01, "
               "2 % of one processor with 4 GiB, 0.3 % of memory. Its own memory is what no file has a copy of, and the rings that the kernel "
               "writes samples to.")
    return table


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    seconds = 15 if options.quick else 65
    size = GIB // 4 if options.quick else GIB
    table = Table(f"Accesses to memory served by an eighth of {size / GIB:g} GiB that the daemon wants fast, in those of the oracle's eighth",
                  ["program", "mean", "median second", "worst second", "seconds to react"])
    for pattern in PATTERNS:
        say(f"daemon: {pattern}")
        table.row(*detect(tools, folder, pattern, size, seconds))
    table.note(f"Accesses past a modelled cache, of 1 MiB unless said otherwise, in pieces of 2 MiB; the oracle knows each second before it begins. The first {WARM_UP} s are not judged. Promised: "
               f"{PROMISED} and, after a change of phase (every {PHASE} s), {PROMISED} again within 3 epochs of 1 s.")
    return [table, cost(tools, options, folder, say)]
