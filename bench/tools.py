"""The paths and commands of the programs under test, and the build of the peer allocator.

The only file that knows the command line of `isotherm`.
"""
import glob
import json
import os
import re
import shlex
import subprocess
import tomllib

from machine import jemalloc_version
from measure import Problem, Program, end

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"


def must(command: list[str], what: str, timeout: float | None = None, **options) -> str:
    """Runs a command and returns its output; raises Problem with its last words where it fails. After `timeout` seconds it is asked to end,
    so that it can end the programs that it runs."""
    try:
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    except OSError as error:
        raise Problem(f"{what}: {error}") from None
    try:
        output, said = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Problem(f"{what}: {shlex.join(command)} has not ended after {timeout:g} s") from None
    finally:
        end(child)
    if child.returncode != 0:
        last = " | ".join((said or output).strip().splitlines()[-3:])
        raise Problem(f"{what}: {shlex.join(command)} ended with status {child.returncode}: {last}")
    return output


def wrapper(name: str) -> str:
    """A compiler of Isotherm: isotherm-cc or isotherm-c++."""
    path = os.path.join(ROOT, "build", "llvm", name)
    if not os.path.isfile(path):
        raise Problem(f"there is no {path}; `make build` makes it where clang-19 is")
    return path


def beside(options, name: str) -> str:
    """A program that is built beside `isotherm`."""
    path = os.path.join(os.path.dirname(os.path.abspath(options.isotherm)), name)
    if not os.path.isfile(path):
        raise Problem(f"there is no {path}; build it with cargo build --release --workspace")
    return path


def compiled(source: str, folder: str, *options: str) -> str:
    """A program in C of the benchmarks, compiled into a folder."""
    path = os.path.join(folder, os.path.basename(source).removesuffix(".c"))
    must(["cc", "-O2", "-o", path, os.path.join(HERE, source), *options], f"compiling {source}")
    return path


def unslowed(plan: str) -> str:
    """A copy of a plan for `emulated:tmp` that never slows its slow tier: the only cost left is that of following
    the plan. By time a thread would be sampled all the same."""

    def change(line: str) -> str:
        if not line.startswith("tier slow "):
            return line
        if " period " not in line:
            raise Problem(f"{plan}: its slow tier is not that of emulated:tmp: {line.strip()}")
        return re.sub(r" (period|access|hot|migrate) \S+", r" \1 0ns", line)

    with open(plan, encoding="utf-8") as file:
        lines = [change(line) for line in file]
    output = plan.removesuffix(".plan") + ".unslowed.plan"
    with open(output, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return output


class Tools:
    """The built files."""

    def __init__(self, isotherm: str, library: str, build: str, with_workloads: bool = True):
        self.isotherm, self.library, self.build = isotherm, library, build
        for path in (isotherm, library):
            if not os.path.isfile(path):
                raise Problem(f"there is no {path}; build it with cargo build --release, or name another one")
        os.makedirs(build, exist_ok=True)
        if with_workloads:
            must(["make", "-s", "-C", os.path.join(ROOT, "workloads")], "building the workloads")

    def workload(self, name: str, *options: str) -> Program:
        return Program(name, [os.path.join(ROOT, "workloads", "build", name), *options])

    def script(self, name: str, **environment: str) -> Program:
        path = os.path.join(ROOT, "workloads", "debian", name, "run.sh")
        return Program(name, [path], is_script=True, environment=environment)

    def peer(self) -> str:
        """Plain jemalloc to preload; builds it on the first call (minutes)."""
        library = os.path.join(self.build, "libjemalloc-peer.so")
        crate = os.path.join(HERE, "peer-jemalloc")
        ours = jemalloc_version(os.path.join(ROOT, "Cargo.lock"))
        theirs = jemalloc_version(os.path.join(crate, "Cargo.lock"))
        if ours != theirs:
            raise Problem(f"the peer's jemalloc is {theirs} but libisotherm.so has {ours}; run cargo update -p "
                          "tikv-jemalloc-sys in bench/peer-jemalloc")
        if os.path.isfile(library):
            return library
        target = os.path.join(self.build, "peer-target")
        must(["cargo", "build", "--release", "--locked"], "building the peer allocator", cwd=crate,
             env=dict(os.environ, CARGO_TARGET_DIR=target))
        archives = glob.glob(os.path.join(target, "release/build/tikv-jemalloc-sys-*/out/lib/libjemalloc_pic.a"))
        if len(archives) != 1:
            raise Problem(f"{len(archives)} archives of jemalloc below {target}; remove it and try again")
        must(["cc", "-shared", "-o", library, "-Wl,--whole-archive", archives[0], "-Wl,--no-whole-archive",
              "-lpthread", "-ldl"], "linking the peer allocator")
        return library

    def record(self, profile: str, *more: str) -> list[str]:
        """Prefix that profiles a program."""
        return [self.isotherm, "--quiet", "record", "--force", *more, "-o", profile, "--"]

    def isolated(self, profile: str, *more: str) -> list[str]:
        """Prefix that profiles a program and measures the bandwidth of its sites, each alone in a tier."""
        return [self.isotherm, "--quiet", "record", "--force", "--isolate", "sites", *more, "-o", profile, "--"]

    def plan(self, profile: str, policy: str, fast: str, output: str, tiers: str = "emulated", value: str = "accesses",
             guide: str | None = None) -> str:
        """Makes a plan, whose file it returns; and the guide file of a Java heap with colours where `guide` names one."""
        more = ["--guide", guide] if guide else []
        must([self.isotherm, "plan", profile, "--tiers", tiers, "--fast", fast, "--policy", policy, "--value", value, *more,
              "-o", output], f"planning by {policy}")
        return output

    def json(self, words: list[str], what: str, **options) -> dict:
        """What a command of `isotherm` prints as JSON."""
        return json.loads(must([self.isotherm, "--quiet", *words, "--json"], what, **options))

    def report(self, profile: str) -> dict:
        return self.json(["report", profile], "reading the profile")

    def footprint(self, profile: str) -> int:
        """Most bytes that the program's sites had resident at one time."""
        return max(self.report(profile)["totals"]["footprint_bytes"], 1)

    def simulate(self, data: list[str], policies: list[str], *more: str) -> list[dict]:
        """What the simulator says of these policies, for each capacity. `data`: a profile, a trace or what generates one."""
        words = [word for policy in policies for word in ("--policy", policy)]
        return self.json(["simulate", *data, *more, *words], f"replaying {' '.join(data)}")["capacities"]

    def fit_bandwidth(self, runs: list[str], stem: str, *more: str) -> list[int]:
        """The bounds of the model that fits these runs, in bytes a second."""
        path, model = f"{stem}.runs", f"{stem}.toml"
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(f"{run}\n" for run in runs))
        must([self.isotherm, "--quiet", "fit-bandwidth", path, *more, "-o", model], "fitting the model")
        with open(model, "rb") as file:
            return [int(bound.removesuffix("B/s")) for bound in tomllib.load(file)["bounds"]]

    def by_policy(self, policy: str, tiers: str, fast: int, *more: str) -> list[str]:
        """Prefix that runs a program on an emulated machine whose pages an epoch policy moves."""
        return [self.isotherm, "--quiet", "run", "--policy", policy, "--tiers", tiers, "--fast", f"{fast}B", *more, "--"]

    def optimized(self, policy: str, tiers: str, fast: str) -> list[str]:
        """Prefix that runs a program whose data this policy places at the program's request."""
        return [self.isotherm, "--quiet", "run", "--optimize-after", "1h", "--policy", policy, "--tiers", tiers, "--fast", fast, "--"]

    def guided(self, plan: str, *more: str) -> list[str]:
        """Prefix that runs a program by a plan."""
        return [self.isotherm, "--quiet", "run", "--plan", plan, *more, "--"]

    def coloured(self, home: str, tiers: str, fast: int, *more: str) -> list[str]:
        """Prefix that runs a Java program without a plan, on the heap with colours of this JDK."""
        return [self.isotherm, "--quiet", "run", "--java", "--java-home", home, "--tiers", tiers, "--fast", f"{fast}B", *more, "--"]

    def compare(self, plan: str, rounds: int) -> list[str]:
        """Prefix that runs a program under four placements in turn and prints their times as JSON."""
        return [self.isotherm, "--quiet", "compare", "--json", "--check-output", "--rounds", str(rounds), plan, "--"]
