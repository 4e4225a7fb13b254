"""The programs of CoMerge's Table 2, the machine on which they are measured, and their profiles."""
import dataclasses
import os

from emulated import workload
from measure import Contender, Program, run_once
from tools import Tools

# The machine of the paper's Table 3: the label stands for the factors that its Table 1 measured, 5.32 and 4.63.
TIERS = "emulated:B:0.2,L:5"
# XSBench, CLOMP and STREAM of the paper are programs of their own.
APART = {"lookup", "zones", "stream"}
# Less work than by default, for tables in which a program runs often.
SHORT = {"lookup": ["--lookups", "200000"], "zones": ["--cycles", "12"], "stream": ["--iterations", "6"], "jacobi-2d": ["--steps", "15"],
         "fdtd-2d": ["--steps", "10"]}
# With --quick: enough to be sampled for longer than the making of its data takes.
QUICK = {"lookup": ["--lookups", "100000"], "zones": ["--cycles", "8"], "stream": ["--iterations", "6"], "jacobi-2d": ["--steps", "10"],
         "fdtd-2d": ["--steps", "6"], "adi": ["--steps", "3"], "bicg": ["--repeat", "20"], "trisolv": ["--repeat", "40"]}


def program(tools: Tools, name: str, words: list[str] = []) -> Program:
    if name in APART:
        return workload(tools, name, words)
    return dataclasses.replace(workload(tools, "polybench", ["--kernel", name, *words]), name=name)


def short(tools: Tools, name: str, options) -> Program:
    """A program with less work than by default."""
    return program(tools, name, (QUICK if options.quick else SHORT).get(name, []))


def record(tools: Tools, made: Program, folder: str, options, say) -> str:
    """The profile of a program, which is recorded once for all parts of the section that run it with the same work."""
    words = [word.lstrip("-") for word in made.command[1:]]
    inside = os.path.join(folder, "-".join(words) or made.name)
    os.makedirs(inside, exist_ok=True)
    profile = os.path.join(inside, f"{made.name}.iso")
    if not os.path.exists(profile):
        say(f"{made.name}: record")
        run_once(made, Contender("record", tools.record(profile)), options.limit)
    return profile
