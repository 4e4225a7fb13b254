"""Section `daemon`: what `isotherm daemon` finds on one machine without a PMU, and what its watching costs.

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
# Seconds of the daemon's life that are not judged: it has seen nothing yet.
WARM_UP = 5
PHASE = 20
PROMISED = 0.9
MODES = {"zipf": [], "scattered": [], "phases": ["--phase", str(PHASE)], "scan": []}
MOVE = re.compile(r"would: move (\S+) at 0x([0-9a-f]+) of process \d+ to (fast|slow) memory")
SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


@dataclasses.dataclass(frozen=True)
class Slot:
    """What the program says of a quarter of a second: when it ended, and accesses to memory by piece."""

    end: int
    counts: list[int]


def read_bytes(text: str) -> int:
    number, unit = re.fullmatch(r"([0-9]+)([KMG]?i?B)", text).groups()
    return int(number) * SIZES[unit]


class Daemon:
    """A dry run of the daemon that watches one process. What it says is kept with the time at which it said it."""

    def __init__(self, tools: Tools, folder: str, pid: int, fast: int, unit: str = "2MiB"):
        self.tools, self.folder = tools, folder
        self.said: list[tuple[int, str]] = []
        config = os.path.join(folder, "daemon.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[memory]\nfast = "{fast}B"\nunit = "{unit}"\n'
                       f'[processes]\npids = [{pid}]\nfilter = "off"\n'
                       f'[serve]\nsocket = "{folder}/socket"\nstate = "{folder}/state"\nmetrics = ""\n')
        self.child = subprocess.Popen([tools.isotherm, "daemon", "--dry-run", "--config", config], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        for line in self.child.stdout:
            self.said.append((time.monotonic_ns(), line))

    def status(self) -> dict | None:
        """What `isotherm status` says; none until the daemon answers."""
        command = [self.tools.isotherm, "status", "--json", "--socket", os.path.join(self.folder, "socket")]
        done = subprocess.run(command, capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def stop(self) -> None:
        self.child.terminate()
        self.reader.join()
        if self.child.wait() != 0:
            raise Problem(f"the daemon ended with status {self.child.returncode}")


def start(tools: Tools, words: list[str], truth: str) -> tuple[subprocess.Popen, int]:
    """The program, once its table is there, and the table's address."""
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
    pieces of that very second would serve (TMP's oracle)."""
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


def detect(tools: Tools, folder: str, mode: str, size: int, seconds: int) -> list[object]:
    truth = os.path.join(folder, f"{mode}.truth")
    words = ["--mode", mode, "--size", f"{size}B", "--seconds", str(seconds), *MODES[mode]]
    program, table = start(tools, words, truth)
    begun = time.monotonic_ns()
    daemon = Daemon(tools, folder, program.pid, size // PART)
    program.wait()
    daemon.stop()
    counted = slots(truth)
    changes = wanted_at(daemon.said, table, size // PIECE)
    judged = shares(counted, changes, begun + WARM_UP * 10**9, size // PART // PIECE)
    if not judged:
        raise Problem(f"{mode}: the program ended before anything could be judged")
    values = [share for _, share in judged]
    phases = range(PHASE, seconds, PHASE) if mode == "phases" else []
    changed = [counted[0].end + phase * 10**9 for phase in phases]
    changed = [moment for moment in changed if moment > begun + WARM_UP * 10**9]
    return [mode, statistics.mean(values), statistics.median(values), min(values),
            reaction(judged, changed) if changed else ""]


def timed(tools: Tools, folder: str, size: int, updates: int, watched: bool) -> tuple[float, dict | None]:
    """Seconds of the program, and the daemon's last status while it ran."""
    truth = os.path.join(folder, f"cost-{size}-{watched}.truth")
    if os.path.exists(truth):
        os.remove(truth)
    program, _ = start(tools, ["--mode", "scan", "--size", f"{size}B", "--updates", str(updates)], truth)
    daemon = Daemon(tools, folder, program.pid, size // PART) if watched else None
    status, pause = None, 1
    while True:
        try:
            program.wait(timeout=pause)
            break
        except subprocess.TimeoutExpired:
            # Ever more rarely, because asking is no part of what watching costs.
            status, pause = (daemon.status() if daemon else None) or status, pause * 2
    if daemon:
        daemon.stop()
    measures = program.stderr.read()
    if program.returncode != 0:
        raise Problem(f"patterns ended with status {program.returncode}: {measures}")
    return float(re.search(r"kernel_seconds (\S+)", measures)[1]), status


def cost(tools: Tools, options, folder: str, say) -> Table:
    table = Table("What watching costs, epochs of 1 s (medians)",
                  ["size", "alone s", "watched s", "spread", "ratio", "daemon's processor", "its memory", "in what it watches"])
    sizes, updates = ([1], 20_000_000) if options.quick else ([1, 4, 8], 150_000_000)
    for gib in sizes:
        alone, watched, statuses = [], [], []
        for turn in range(options.rounds):
            for way in ((False, True), (True, False))[turn % 2]:
                say(f"daemon: {gib} GiB, round {turn + 1} of {options.rounds}, {'watched' if way else 'alone'}")
                seconds, status = timed(tools, folder, gib * GIB, updates, way)
                (watched if way else alone).append(seconds)
                statuses += [status] if status else []
        if not statuses:
            raise Problem("the daemon never answered")
        ratio = statistics.median(a / b for a, b in zip(watched, alone))
        spread = max((max(times) - min(times)) / 2 / statistics.median(times) for times in (alone, watched))
        share = statistics.median(status["cpu_share"] for status in statuses)
        memory = statistics.median(status["memory_bytes"] for status in statuses)
        table.row(f"{gib} GiB", statistics.median(alone), statistics.median(watched), f"{spread:.1%}", ratio,
                  f"{share:.2%}", f"{memory / 2**20:.1f} MiB", f"{memory / (gib * GIB):.2%}")
    table.note("Program: patterns --mode scan, one thread. Promised: a ratio of 1.01, 2 % of one processor with 4 GiB, 0.3 % of "
               "memory.")
    return table


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    seconds = 15 if options.quick else 65
    size = GIB // 4 if options.quick else GIB
    table = Table(f"Accesses to memory served by an eighth of {size / GIB:g} GiB that the daemon wants fast, in those of the oracle's eighth",
                  ["program", "mean", "median second", "worst second", "seconds to react"])
    for mode in MODES:
        say(f"daemon: {mode}")
        table.row(*detect(tools, folder, mode, size, seconds))
    table.note(f"Accesses past a modelled cache of 1 MiB, in pieces of 2 MiB; the oracle knows each second before it begins. The first {WARM_UP} s are not judged. Promised: "
               f"{PROMISED} and, after a change of phase (every {PHASE} s), {PROMISED} again within 3 epochs of 1 s.")
    return [table, cost(tools, options, folder, say)]
