"""Table of section `comerge`: programs that come and go, under the daemon and by plans that know all of them beforehand.

    offline   gups ---------[plan]----------------->     `isotherm colocate` knew both
                     lookup [plan]----------------->
    online    gups ---------[daemon]--------------->     nobody knew anything
                     lookup [daemon]--------------->
                     |--------|-----------------|        windows in which slow-downs are measured: 5 s and 15 s
"""
import contextlib
import dataclasses
import json
import os
import signal
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator

from comerge_programs import TIERS
from emulated import workload
from measure import Contender, Problem, Program, run_once
from memory_group import ENTER, remove
from table import Table
from tools import Tools

MIB = 2**20
# Shared by both programs, each of which has some 256 MiB.
FAST = 128 * MIB
FLOOR = 32 * MIB
# Enough for any run; each is ended when it has been measured.
FOREVER = ["--repeat", "1000000", "--laps", "--threads", "1"]
# In the order of their starts: words for laps of a second at most, and laps of the recorded run.
PROGRAMS = {
    "gups": (["--updates", "10000000"], "30"),
    "lookup": (["--lookups", "50000"], "16"),
}
# A neighbour that accesses all of its 256 MiB.
GREEDY = ["--hot-updates-percent", "20", "--updates", "3000000"]
# Seconds from one start to the next, until the shares must be settled, and that are measured then.
APART, SETTLED, MEASURED, QUICK_MEASURED = 5, 5, 15, 6
ALONE, QUICK_ALONE = 8, 4
MAX_ROUNDS = 3
# The goal: the summed slow-down over that of the offline plan, less one.
WITHIN = 0.1
CONTROL_GROUPS = "/sys/fs/cgroup"


@dataclasses.dataclass(frozen=True)
class Window:
    """A span of the monotonic clock."""

    begin: float
    end: float


class Running:
    """A program that prints its laps; ended by `stop`."""

    def __init__(self, name: str, command: list[str]):
        self.name = name
        self.laps: list[float] = []
        self.words: list[str] = []
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                      start_new_session=True, env=dict(os.environ, OMP_WAIT_POLICY="passive"))
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        for line in self.child.stderr:
            words = line.split()
            if len(words) == 2 and words[0] == "lap":
                self.laps.append(float(words[1]))
            else:
                self.words.append(line.strip())

    def has_ended(self) -> bool:
        return self.child.poll() is not None

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGTERM)
        self.child.wait()
        self.reader.join()

    def rate(self, window: Window) -> float:
        """Laps a second in a window, parts of laps included."""

        def done(moment: float) -> float:
            after = next((i for i, lap in enumerate(self.laps) if lap > moment), None)
            if not after:
                raise Problem(f"{self.name}: no lap around a measured moment; last words: {' | '.join(self.words[-3:])}")
            begin, end = self.laps[after - 1], self.laps[after]
            return after - 1 + (moment - begin) / (end - begin)

        return (done(window.end) - done(window.begin)) / (window.end - window.begin)


class Daemon:
    """The daemon on emulated machines, and its status after each epoch."""

    def __init__(self, tools: Tools, folder: str, groups: str = ""):
        self.socket = os.path.join(folder, "socket")
        config = os.path.join(folder, "daemon.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'[memory]\ntiers = "emulated"\nfast = "{FAST}B"\n'
                       f'[processes]\nprograms = ["gups", "lookup"]\nfilter = "off"\n{groups}'
                       f'[serve]\nsocket = "{self.socket}"\nstate = "{folder}/state"\nmetrics = ""\n')
        self.child = subprocess.Popen([tools.isotherm, "daemon", "--config", config], stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True)
        self.epochs: list[dict] = []
        self.follower = threading.Thread(target=self.follow)
        self.follower.start()

    def connected(self) -> socket.socket | None:
        for _ in range(100):
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(self.socket)
                return connection
            except OSError:
                connection.close()
                time.sleep(0.1)
        return None

    def follow(self) -> None:
        connection = self.connected()
        if connection is None:
            return
        with connection, connection.makefile("rw") as file:
            file.write("follow\n")
            file.flush()
            with contextlib.suppress(OSError):
                self.epochs.extend(json.loads(line) for line in file)

    def stop(self) -> list[dict]:
        self.child.terminate()
        _, errors = self.child.communicate()
        self.follower.join()
        if self.child.returncode != 0 or not self.epochs:
            raise Problem(f"the daemon ended with status {self.child.returncode}: {errors.strip()[-300:]}")
        return self.epochs


class Group:
    """A control group of version 2 for one program."""

    def __init__(self, word: str):
        self.name = f"/isotherm-bench-{os.getpid()}-{word}"
        roots = [folder for folder in (CONTROL_GROUPS, os.path.join(CONTROL_GROUPS, "unified"))
                 if os.path.isfile(os.path.join(folder, "cgroup.procs"))]
        if not roots:
            raise OSError("there are no control groups of version 2")
        self.folder = roots[0] + self.name
        os.mkdir(self.folder)

    def command(self, command: list[str]) -> list[str]:
        return [ENTER, self.folder, *command]

    def remove(self) -> None:
        remove(self.folder)


def programs(tools: Tools) -> dict[str, Program]:
    return {name: workload(tools, name, [*words, *FOREVER]) for name, (words, _) in PROGRAMS.items()}


def online(tools: Tools) -> list[str]:
    """Prefix of a program whose memory the daemon moves."""
    return [tools.isotherm, "--quiet", "run", "--policy", "none", "--tiers", TIERS, "--fast", f"{FAST}B", "--"]


def plans(tools: Tools, folder: str, options, say) -> tuple[dict[str, str], dict[str, str]]:
    """By program: a plan with all data fast, and its plan of the memory that both share."""
    alone, profiles = {}, []
    for name, (words, laps) in PROGRAMS.items():
        say(f"{name}: record")
        profile = os.path.join(folder, f"online-{name}.iso")
        recorded = workload(tools, name, [*words, "--threads", "1", "--repeat", laps])
        run_once(recorded, Contender("record", tools.record(profile)), options.limit)
        alone[name] = os.path.join(folder, f"online-{name}-fast.plan")
        tools.plan(profile, "all-fast", "100%", alone[name], TIERS)
        profiles.append(profile)
    printed = tools.json(["colocate", *profiles, "--tiers", TIERS, "--fast", f"{FAST}B", "-o", folder], "sharing the fast memory")["programs"]
    shared = {name: os.path.join(folder, one["plan"]) for name in PROGRAMS for one in printed if name in one["program"]}
    return alone, shared


def run_alone(name: str, command: list[str], seconds: float) -> float:
    """Laps a second of a program that has the machine for itself."""
    running = Running(name, command)
    try:
        wait_for_laps(running)
        begin = time.monotonic()
        time.sleep(seconds)
        window = Window(begin, time.monotonic())
        wait_for_laps(running, window.end)
    finally:
        running.stop()
    return running.rate(window)


def wait_for_laps(running: Running, after: float = 0) -> None:
    """Waits for two laps, and for one that ends after a moment."""
    while (len(running.laps) < 2 or running.laps[-1] <= after) and not running.has_ended():
        time.sleep(0.1)


def run_together(commands: dict[str, list[str]], seconds: float) -> list[dict[str, float]]:
    """Laps a second by program, in the first seconds after the last start and in those that follow."""
    running: list[Running] = []
    try:
        for name, command in commands.items():
            if running:
                wait_for_laps(running[-1])
                time.sleep(APART)
            running.append(Running(name, command))
        wait_for_laps(running[-1])
        # It has made its data and begins to work.
        begin = running[-1].laps[0]
        time.sleep(max(0.0, begin + SETTLED + seconds - time.monotonic()))
        windows = [Window(begin, begin + SETTLED), Window(begin + SETTLED, time.monotonic())]
        for one in running:
            wait_for_laps(one, windows[-1].end)
    finally:
        for one in running:
            one.stop()
    return [{one.name: one.rate(window) for one in running} for window in windows]


def slowdowns(alone: dict[str, float], together: dict[str, float]) -> dict[str, float]:
    return {name: alone[name] / together[name] for name in alone}


@dataclasses.dataclass
class Round:
    """Slow-downs by program in both windows, by way; and the epochs of the daemon."""

    offline: list[dict[str, float]]
    online: list[dict[str, float]]
    epochs: list[dict]

    def ratio(self) -> float:
        """The settled sum, online over offline."""
        return sum(self.online[1].values()) / sum(self.offline[1].values())


def measure(tools: Tools, alone_plans: dict[str, str], shared: dict[str, str], folder: str, options, say) -> Round:
    made = programs(tools)
    seconds, alone_seconds = (QUICK_MEASURED, QUICK_ALONE) if options.quick else (MEASURED, ALONE)
    say("alone, all data fast")
    alone = {name: run_alone(name, tools.guided(alone_plans[name]) + made[name].command, alone_seconds) for name in made}
    say("by plans")
    offline = run_together({name: tools.guided(shared[name]) + made[name].command for name in made}, seconds)
    say("under the daemon")
    daemon = Daemon(tools, folder)
    try:
        by_daemon = run_together({name: online(tools) + made[name].command for name in made}, seconds)
    finally:
        epochs = daemon.stop()
    return Round([slowdowns(alone, window) for window in offline], [slowdowns(alone, window) for window in by_daemon], epochs)


def too_full(epochs: list[dict]) -> int:
    """Epochs after which more was fast than the daemon may have."""
    return sum(epoch["fast_bytes"] > FAST for epoch in epochs)


def floor_epochs(tools: Tools, folder: str, options, say) -> tuple[int, int]:
    """Epochs in which a program with a floor ran beside a greedy one whose accesses count a hundred times, and those of them
    after which it had less than its floor."""
    say("a floor")
    kept, greedy = Group("kept"), Group("greedy")
    groups = (f'[groups."{kept.name}"]\nfloor = "{FLOOR}B"\n[groups."{greedy.name}"]\npriority = 100\n')
    words, _ = PROGRAMS["gups"]
    commands = {
        "kept": kept.command(online(tools) + workload(tools, "gups", [*words, *FOREVER]).command),
        "greedy": greedy.command(online(tools) + workload(tools, "gups", [*GREEDY, *FOREVER]).command),
    }
    daemon = Daemon(tools, folder, groups)
    try:
        run_together(commands, QUICK_MEASURED if options.quick else MEASURED)
    finally:
        epochs = daemon.stop()
        kept.remove()
        greedy.remove()
    shares = [group["fast_bytes"] for epoch in epochs for group in epoch["groups"]
              if group["control_group"] == kept.name and group["resident_bytes"] >= FLOOR]
    return len(shares), sum(share < FLOOR for share in shares)


def table_of(rounds: list[Round]) -> Table:
    table = Table(f"Programs that come and go: {' and, after '.join([next(iter(PROGRAMS)), f'{APART} s, {list(PROGRAMS)[1]}'])}, with "
                  f"{FAST // MIB} MiB of fast memory on {TIERS}: time over all data fast, alone",
                  ["program", f"first {SETTLED} s: by plans", f"first {SETTLED} s: by the daemon", "then: by plans", "then: by the daemon"])

    def median(way: str, window: int, name: str) -> float:
        return statistics.median(getattr(one, way)[window][name] for one in rounds)

    columns = [("offline", 0), ("online", 0), ("offline", 1), ("online", 1)]
    for name in PROGRAMS:
        table.row(name, *(f"{median(way, window, name):.2f}" for way, window in columns))
    sums = [statistics.median(sum(getattr(one, way)[window].values()) for one in rounds) for way, window in columns]
    table.row("sum", *(f"{value:.2f}" for value in sums))
    ratios = [one.ratio() for one in rounds]
    off = statistics.median(ratios) - 1
    table.goal(f"Goal: {SETTLED} s after a program starts, a sum within {WITHIN:.0%} of that of the plans. Measured: {off:+.1%}, in the rounds "
               f"{min(ratios) - 1:+.1%} to {max(ratios) - 1:+.1%}", off <= WITHIN)
    full, epochs = sum(too_full(one.epochs) for one in rounds), sum(len(one.epochs) for one in rounds)
    table.note(f"{full} of {epochs} epochs ended with more fast memory than the daemon may have. A program that starts has some of its own run by first "
               "touch.")
    table.note("Slow-downs from the moment at which the second program has made its data and begins to work. Each program has one thread and is measured by the "
               "time that its laps end. The plans are those of isotherm colocate, which knew a profile of both; the daemon knew none.")
    return table


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    alone, shared = plans(tools, folder, options, say)
    count = 1 if options.quick else min(options.rounds, MAX_ROUNDS)
    table = table_of([measure(tools, alone, shared, folder, options, say) for _ in say.steps(range(count))])
    try:
        epochs, missed = floor_epochs(tools, folder, options, say)
    except OSError as error:
        table.note(f"Floors were not measured: no control group can be made here ({error}).")
        yield table
        return
    except Problem as problem:
        raise Problem(str(problem), [table]) from None
    table.goal(f"Goal: floors held in every epoch. Measured: beside a greedy program with priority 100, a floor of {FLOOR // MIB} MiB was missed in "
               f"{missed} of {epochs} epochs", epochs > 0 and not missed)
    yield table
