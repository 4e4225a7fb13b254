"""Runs contenders side by side and sums up: interleaved rounds, medians, paired ratios.

    round 1:  A B C      Every round starts with another contender, so that a slow spell of the
    round 2:  B C A      machine falls on all of them, and the ratios are taken within a round.
    round 3:  C A B
"""
import dataclasses
import os
import resource
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

Way = TypeVar("Way")

# Seconds that a command has for its end after SIGTERM.
TO_END = 20


class Problem(Exception):
    """A run that failed or printed something else: the benchmark reports it and ends with status 1.

    `tables` are those of a section's other runs, which are still printed.
    """

    def __init__(self, message: str, tables: list | None = None):
        super().__init__(message)
        self.tables = tables or []


@dataclasses.dataclass(frozen=True)
class Program:
    """A program to measure. Scripts put the contender's prefix before the program under test themselves."""

    name: str
    command: list[str]
    is_script: bool = False
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Contender:
    """A way to run a program: the words before it, and additional options for the program."""

    name: str
    prefix: list[str]
    options: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run: wall seconds, processor seconds of it and its descendants, the measures it printed (`name value` on standard error), its output."""

    wall: float
    processor: float
    measures: dict[str, float]
    out: bytes


def read_measures(text: str) -> dict[str, float]:
    measures = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == 2:
            try:
                measures[words[0]] = float(words[1])
            except ValueError:
                continue
    return measures


def processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def end(child: subprocess.Popen) -> None:
    """Ends a command that still runs. It is asked first, so that it can end the programs that it runs."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(TO_END)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def run_once(program: Program, contender: Contender, seconds: float) -> Run:
    """Runs in an empty folder; raises Problem where it fails."""
    # Waiting threads sleep: where cores are shared with others, spinning ones measure the scheduler.
    environment = dict(os.environ, OMP_WAIT_POLICY="passive", **program.environment)
    command = program.command + contender.options
    if program.is_script:
        environment["ISOTHERM_WRAP"] = shlex.join(contender.prefix)
    else:
        command = contender.prefix + command
    where = f"{program.name}, {contender.name}"
    with tempfile.TemporaryDirectory(prefix="isotherm-bench-") as folder:
        begin, begin_processor = time.monotonic(), processor_seconds()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=environment, stdin=subprocess.DEVNULL)
        try:
            output, said = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Problem(f"{where}: took more than {seconds:g} s") from None
        finally:
            end(child)
        wall = time.monotonic() - begin
    errors = said.decode(errors="replace")
    if child.returncode != 0:
        last = " | ".join(errors.strip().splitlines()[-3:])
        raise Problem(f"{where}: ended with status {child.returncode}: {last}")
    return Run(wall, processor_seconds() - begin_processor, read_measures(errors), output)


class Samples:
    """The results of one program, per contender, in the order of the rounds. A measure is a field of a run, or one that it printed."""

    def __init__(self, program: str, contenders: list[str]):
        self.program = program
        self.runs: dict[str, list[Run]] = {name: [] for name in contenders}

    def values(self, contender: str, measure: str) -> list[float]:
        runs = self.runs[contender]
        if all(hasattr(run, measure) for run in runs):
            return [getattr(run, measure) for run in runs]
        missing = [run for run in runs if measure not in run.measures]
        if missing:
            raise Problem(f"{self.program}, {contender}: printed no {measure}")
        return [run.measures[measure] for run in runs]

    def median(self, contender: str, measure: str) -> float:
        return statistics.median(self.values(contender, measure))

    def most(self, contender: str, measure: str) -> float:
        """The greatest: of a rate, that of the round which other work on the machine disturbed least."""
        return max(self.values(contender, measure))

    def ratio(self, contender: str, base: str, measure: str) -> float:
        """Median of the ratios within the rounds."""
        pairs = zip(self.values(contender, measure), self.values(base, measure))
        return statistics.median(a / b for a, b in pairs)

    def spread(self, contender: str, measure: str) -> float:
        """Half the range of the middle runs over their median: how far to trust the last digits."""
        values = sorted(self.values(contender, measure))
        if len(values) >= 5:
            values = values[1:-1]
        return (values[-1] - values[0]) / 2 / statistics.median(values)


def in_turn(contenders: Sequence[Way], rounds: int) -> Iterator[tuple[int, Way]]:
    """Every contender once a round, with the number of the round."""
    for turn in range(rounds):
        for place in range(len(contenders)):
            yield turn, contenders[(turn + place) % len(contenders)]


def interleave(program: Program, contenders: list[Contender], rounds: int, seconds: float,
               say=lambda text: None) -> Samples:
    """Runs every contender once a round. All must print what the first run printed."""
    samples = Samples(program.name, [contender.name for contender in contenders])
    reference: dict[tuple[str, ...], bytes] = {}
    for turn, contender in in_turn(contenders, rounds):
        say(f"{program.name}: round {turn + 1} of {rounds}: {contender.name}")
        run = run_once(program, contender, seconds)
        expected = reference.setdefault(tuple(contender.options), run.out)
        if run.out != expected:
            raise Problem(f"{program.name}, {contender.name}: printed another result: "
                          f"{run.out[:200]!r} instead of {expected[:200]!r}")
        samples.runs[contender.name].append(run)
    return samples


def geometric_mean(values: list[float]) -> float:
    return statistics.geometric_mean(values)
