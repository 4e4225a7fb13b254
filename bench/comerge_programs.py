"""The programs of CoMerge's Table 2, and the machine on which they are measured."""
import dataclasses

from emulated import workload
from measure import Program
from tools import Tools

# The machine of the paper's Table 3, B:0.2 L:5, by the factors that its Table 1 measured.
TIERS = "emulated:B:5.3,L:4.6"
# XSBench, CLOMP and STREAM of the paper are programs of their own.
APART = {"lookup", "zones", "stream"}


def program(tools: Tools, name: str, words: list[str] = []) -> Program:
    if name in APART:
        return workload(tools, name, words)
    return dataclasses.replace(workload(tools, "polybench", ["--kernel", name, *words]), name=name)
