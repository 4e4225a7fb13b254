"""Shared by the tests of compiled programs: an empty folder, the tools, and comparisons that print the difference."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "skip"))
from skip_record import record as record_skip  # noqa: E402

PROGRAMS = os.path.join(HERE, "programs")
# Seconds for one command; far more than any needs, because other programs may keep the machine busy.
LIMIT_SECONDS = 300


class Failed(Exception):
    """A check that failed, as a sentence."""


class Skipped(Exception):
    """A test that cannot run here, with the reason as a sentence."""


class Bench:
    """An empty directory to build in, and the tools: the folder that `make -C llvm` filled, the command line."""

    def __init__(self, build: str, isotherm: str, folder: str):
        self.build, self.isotherm, self.folder = build, isotherm, folder

    def run(self, *command: str, status: int = 0, **environment: str) -> subprocess.CompletedProcess:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=LIMIT_SECONDS,
                              check=False, env=dict(os.environ, **environment), stdin=subprocess.DEVNULL)
        if done.returncode != status:
            raise Failed(f"{' '.join(command)}: status {done.returncode} instead of {status}: {done.stderr[-2000:]}")
        return done

    def compile(self, *words: str, compiler: str = "isotherm-cc", root: str = PROGRAMS, status: int = 0,
                **environment: str):
        return self.run(os.path.join(self.build, compiler), "-O2", "-Wall", "-Werror", f"--isotherm-root={root}",
                        *words, status=status, **environment)

    def sites(self, name: str) -> dict[str, str]:
        """The sites of a file, by function."""
        text = self.run(self.isotherm, "sites", "--json", name).stdout
        return {site["function"]: site["site"] for site in json.loads(text)["sites"]}


def expect(what: str, found, wanted) -> None:
    if found != wanted:
        raise Failed(f"{what}: {found!r} instead of {wanted!r}")


def expect_in(what: str, part: str, text: str) -> None:
    if part not in text:
        raise Failed(f"{what}: {part!r} is not in {text[-2000:]!r}")


def plan_of_all(bench: Bench, tier: str = "fast", sites: str = "") -> str:
    """A plan for any program: everything in one tier, except some sites."""
    with open(os.path.join(ROOT, "tests", "plans", f"{tier}.plan"), encoding="utf-8") as file:
        text = file.read()
    path = os.path.join(bench.folder, "all.plan")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("standing ", f"{sites}standing ", 1))
    return path


def arguments(what: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("build", help="what `make -C llvm OUT=BUILD` made")
    parser.add_argument("--isotherm", required=True, help="the release build of the command line")
    parser.add_argument("--only", help="run the tests whose name holds this")
    return parser


def run_all(tests: list, options: argparse.Namespace) -> int:
    """Runs each test in an empty folder; returns the exit status."""
    if not os.path.isfile(os.path.join(options.build, "isotherm_pass.so")):
        record_skip("pass", "all", "the pass was not built")
        print(f"skipped: there is no pass in {options.build}; llvm/build prints the missing package")
        return 0
    failed = 0
    for test in tests:
        name = test.__name__.replace("_", " ")
        if options.only and options.only.replace("_", " ") not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="isotherm-pass-") as folder:
            try:
                said = test(Bench(os.path.abspath(options.build), os.path.abspath(options.isotherm), folder))
                print(f"ok      {name}{f' ({said})' if said else ''}", flush=True)
            except Skipped as reason:
                record_skip("pass", name, str(reason))
                print(f"skipped {name}: {reason}", flush=True)
            except (Failed, subprocess.TimeoutExpired) as problem:
                failed += 1
                print(f"FAILED  {name}: {problem}", flush=True)
    print(f"{failed} failed" if failed else "all passed")
    return 1 if failed else 0
