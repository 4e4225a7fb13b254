"""The programs of CoMerge's Table 2, and the machine on which they are measured."""
import dataclasses

from emulated import workload
from measure import Program
from tools import Tools

# The machine of the paper's Table 3: the label stands for the factors that its Table 1 measured, 5.32 and 4.63.
TIERS = "emulated:B:0.2,L:5"
# XSBench, CLOMP and STREAM of the paper are programs of their own.
APART = {"lookup", "zones", "stream"}
# Less work than by default, for tables in which a program runs often.
SHORT = {"lookup": ["--lookups", "200000"], "zones": ["--cycles", "12"], "stream": ["--iterations", "6"], "jacobi-2d": ["--steps", "15"],
         "fdtd-2d": ["--steps", "10"]}


def program(tools: Tools, name: str, words: list[str] = []) -> Program:
    if name in APART:
        return workload(tools, name, words)
    return dataclasses.replace(workload(tools, "polybench", ["--kernel", name, *words]), name=name)
