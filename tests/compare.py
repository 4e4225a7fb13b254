"""Runs programs plain and in other modes, and compares their outputs and exit statuses.

    compare.py --library FILE [--isotherm FILE] [--mode NAME]... [--case NAME]... CASES

A case is a name and a command. The plain run is the truth: the run in a mode must give the same
standard output, standard error and exit status (or signal), byte for byte. A program whose plain
runs differ from each other proves nothing: it is tried again and has failed if it never agrees with itself,
as has one whose plain run does not end in time. Only a program that ends with status 77, because the
machine lacks what it needs, is skipped.
"""
import argparse
import configparser
import dataclasses
import difflib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "skip"))
from skip_record import record as record_skip  # noqa: E402

SKIP_STATUS = 77
# Rounds for a program whose plain runs differ, such as one whose output depends on the load.
TRIES = 3
# Lines of a difference that are printed.
DIFFERENCES_SHOWN = 6
HERE = os.path.dirname(os.path.abspath(__file__))


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    status: int  # as subprocess has it: negative for a signal
    out: bytes
    err: bytes
    timed_out: bool = False

    def ending(self) -> str:
        if self.timed_out:
            return "timed out"
        return f"signal {-self.status}" if self.status < 0 else f"status {self.status}"


def as_it_is(text: bytes) -> bytes:
    return text


@dataclasses.dataclass(frozen=True)
class Case:
    """A command with a name. `clean` and `clean_errors` remove the parts of its output that may differ, such as times."""

    name: str
    command: list[str]
    clean: Callable[[bytes], bytes] = as_it_is
    seconds: float = 60
    clean_errors: Callable[[bytes], bytes] = as_it_is
    # Whether a plain run that ends in failure is a failure of the test: it would compare little.
    must_succeed: bool = False
    # Words to add to the command in a mode, to skip checks that must differ there; both runs get them.
    in_mode: dict[str, list[str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Mode:
    """A way to run a command."""

    name: str
    run: str
    prepare: list[str]
    quiet: str
    # The test sets that have it; empty for all.
    sets: list[str]

    def words(self, text: str, values: dict[str, str], command: list[str]) -> list[str]:
        words = []
        for word in shlex.split(text):
            if word == "{command}":
                words.extend(command)
            else:
                words.append(word.format(**values))
        return words


def read_modes(path: str) -> list[Mode]:
    parser = configparser.ConfigParser(interpolation=None)
    with open(path, encoding="utf-8") as file:
        parser.read_file(file)
    modes = []
    for name in parser.sections():
        section = parser[name]
        prepare = [line for line in section.get("prepare", "").splitlines() if line.strip()]
        sets = section.get("sets", "").split()
        modes.append(Mode(name, section["run"], prepare, section.get("quiet", ""), sets))
    return modes


def obey_interrupts() -> None:
    """A shell that starts the tests in the background makes them ignore the interrupt; some programs test it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def execute(command: list[str], seconds: float, folder: str) -> Outcome:
    """Runs a command in an empty folder until its output is closed, by descendants as well.

    It gets a session of its own, so that a run that takes too long can be ended whole.
    """
    os.makedirs(folder, exist_ok=True)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        start_new_session=True,
        preexec_fn=obey_interrupts,
    )
    try:
        out, err = process.communicate(timeout=seconds)
        return Outcome(process.returncode, out, err)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, err = process.communicate()
        return Outcome(process.returncode, out, err, timed_out=True)


def without_tool_lines(text: bytes, prefix: str) -> bytes:
    if not prefix:
        return text
    lines = text.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(prefix.encode()))


def differences(plain: Outcome, other: Outcome, case: Case) -> list[str]:
    """The differences, one sentence each; empty for equal results."""
    found = []
    if other.timed_out != plain.timed_out or other.status != plain.status:
        found.append(f"ended by {other.ending()}, plain by {plain.ending()}")
    streams = (("output differs", case.clean, plain.out, other.out),
               ("error differs", case.clean_errors, plain.err, other.err))
    for what, clean, left, right in streams:
        left, right = clean(left), clean(right)
        if left != right:
            found.append(f"standard {what}: {first_differences(left, right)}")
    return found


def first_differences(left: bytes, right: bytes) -> str:
    """The first lines that only one of both has, so that a failure once in ten runs is reported in detail."""
    changes = difflib.diff_bytes(difflib.unified_diff, left.splitlines(), right.splitlines(), n=0, lineterm=b"")
    lines = [line for line in changes if not line.startswith((b"---", b"+++", b"@@"))]
    if not lines:
        return "only in the ends of lines"
    shown = [("plain " if line.startswith(b"-") else "now ") + show(line[1:]) for line in lines[:DIFFERENCES_SHOWN]]
    more = len(lines) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def show(line: bytes) -> str:
    return repr(line[:200].decode(errors="replace"))


class Comparison:
    """Runs the cases in the modes and keeps count."""

    def __init__(self, name: str, values: dict[str, str], folder: str, verbose: bool):
        self.name, self.values, self.folder, self.verbose = name, values, folder, verbose
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def report(self, result: str, mode: str, case: str, why: str = "") -> None:
        self.counts[result] += 1
        if result == "skipped":
            record_skip(self.name, f"{mode}: {case}", why)
        if result != "passed" or self.verbose:
            print(f"{result}: {mode}: {case}{': ' if why else ''}{why}", flush=True)

    def work(self, name: str) -> str:
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder)

    def run_case(self, case: Case, modes: list[Mode]) -> None:
        plain = execute(case.command, case.seconds, self.work("plain"))
        if plain.status == SKIP_STATUS:
            for mode in modes:
                self.report("skipped", mode.name, case.name, "the program says it cannot run here")
            return
        if plain.timed_out:
            # The machine is no excuse: the program hangs, or the limit is too short.
            self.report("failed", "plain", case.name, f"takes more than {case.seconds:g} s")
            return
        if case.must_succeed and plain.status != 0:
            last = b" | ".join((plain.err.strip() or plain.out.strip()).splitlines()[-2:])
            self.report("failed", "plain", case.name, f"ended by {plain.ending()}: {show(last)}")
            return
        for mode in modes:
            if mode.name not in case.in_mode:
                self.run_mode(case, mode, plain)
                continue
            less = dataclasses.replace(case, command=case.command + case.in_mode[mode.name])
            self.run_mode(less, mode, execute(less.command, less.seconds, self.work("plain")))

    def run_mode(self, case: Case, mode: Mode, plain: Outcome) -> None:
        work = self.work(mode.name)
        values = dict(self.values, work=work)
        for line in mode.prepare:
            words = mode.words(line, values, case.command)
            step = execute(words, case.seconds * 3, os.path.join(work, "prepare"))
            is_program = "{command}" in shlex.split(line)
            if step.timed_out or (not is_program and step.status != 0):
                last = step.err.decode(errors="replace").strip().splitlines()[-1:]
                why = f"{shlex.join(words)}: {step.ending()} {' '.join(last)}"
                self.report("failed", mode.name, case.name, why)
                return
        words = mode.words(mode.run, values, []) + case.command
        self.report(*self.compare(case, mode, words, plain))
        shutil.rmtree(work, ignore_errors=True)

    def compare(self, case: Case, mode: Mode, words: list[str], plain: Outcome) -> tuple[str, str, str, str]:
        """The result of a run in a mode, in the form for `report`."""
        for _ in range(TRIES):
            begin = time.monotonic()
            other = execute(words, case.seconds * 2, self.work("run"))
            seconds = time.monotonic() - begin
            other = dataclasses.replace(other, err=without_tool_lines(other.err, mode.quiet))
            found = differences(plain, other, case)
            if not found:
                return "passed", mode.name, case.name, f"{seconds:.1f} s"
            again = execute(case.command, case.seconds, self.work("plain"))
            if not differences(plain, again, case):
                return "failed", mode.name, case.name, "; ".join(found)
            # The program differs from itself, so this round proved nothing.
            plain = again
        return "failed", mode.name, case.name, f"plain runs differed from each other in {TRIES} rounds, so nothing was compared"

    def finish(self) -> int:
        print(", ".join(f"{count} {what}" for what, count in self.counts.items()))
        if sum(self.counts.values()) == 0:
            print("nothing was compared", file=sys.stderr)
            return 1
        return 1 if self.counts["failed"] else 0


def needs_tool(mode: Mode) -> bool:
    return any("{isotherm}" in text for text in [mode.run, *mode.prepare])


def choose_modes(modes: list[Mode], wanted: list[str], has_tool: bool) -> list[Mode]:
    names = [mode.name for mode in modes]
    for name in wanted:
        if name not in names:
            sys.exit(f"compare: there is no mode {name}; modes.ini has {', '.join(names)}")
    chosen = [mode for mode in modes if not wanted or mode.name in wanted]
    for mode in chosen:
        if needs_tool(mode) and not has_tool:
            if wanted:
                sys.exit(f"compare: mode {mode.name} needs --isotherm FILE")
            record_skip("modes", mode.name, "no --isotherm is given")
            print(f"not compared: mode {mode.name}, because no --isotherm is given")
    return [mode for mode in chosen if has_tool or not needs_tool(mode)]


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("library", help="libisotherm.so")
    parser.add_argument("--isotherm", help="the command-line tool, for the modes that need it")
    parser.add_argument("--mode", action="append", default=[], help="only this mode (may be repeated)")
    parser.add_argument("--case", action="append", default=[], help="only this case (may be repeated)")
    parser.add_argument("--modes-file", default=os.path.join(HERE, "modes.ini"))
    parser.add_argument("--verbose", action="store_true", help="name the cases that passed too")
    return parser


def run_all(name: str, cases: list[Case], options: argparse.Namespace) -> int:
    """Compares every chosen case of a test set in every chosen mode; returns the exit status."""
    for path in [options.library] + ([options.isotherm] if options.isotherm else []):
        if not os.path.isfile(path):
            sys.exit(f"compare: there is no file {path}")
    names = [case.name for case in cases]
    for wanted in options.case:
        if wanted not in names:
            sys.exit(f"compare: there is no case {wanted}")
    modes = [mode for mode in read_modes(options.modes_file) if not mode.sets or name in mode.sets]
    modes = choose_modes(modes, options.mode, bool(options.isotherm))
    values = {"lib": os.path.abspath(options.library), "tests": HERE}
    if options.isotherm:
        values["isotherm"] = os.path.abspath(options.isotherm)
    with tempfile.TemporaryDirectory(prefix="isotherm-compare-", ignore_cleanup_errors=True) as folder:
        comparison = Comparison(name, values, folder, options.verbose)
        for case in cases:
            if not options.case or case.name in options.case:
                comparison.run_case(case, modes)
        return comparison.finish()
