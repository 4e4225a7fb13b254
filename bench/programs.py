"""The programs of the sections `truth` and `emulated` and their inputs: workloads, kernels in C, and programs from Debian. All run
with one thread where they can, so that two runs allocate in the same order."""
import dataclasses
import glob
import os
from typing import TypeVar

from measure import Problem
from tools import HERE, ROOT, must

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
KERNELS = os.path.join(HERE, "truth", "programs")
Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True)
class Input:
    """The words after a program, or the variables of a script: those of a run that QEMU can emulate in a minute, and those of
    a run that is timed, with {} for the amount of work, which is less with `--quick`."""

    truth: str
    timed: str
    quick: int
    amount: int

    def truth_words(self) -> list[str]:
        return self.truth.split()

    def timed_words(self, quick: bool) -> list[str]:
        return self.timed.format(self.quick if quick else self.amount).split()


# Those that are timed take 1.5 to 6 s with everything fast, some 0.7 s with --quick. Most have 110 to 400 MiB.
C = {
    "hot_and_stream": Input("", "{}", 4, 16),
    "jacobi": Input("", "{}", 150, 600),
    "join": Input("", "{}", 10, 40),
    "matrix": Input("", "{}", 512, 4096),
    "merge": Input("", "{}", 4 << 20, 12 << 20),
    "rank": Input("", "{}", 12, 50),
    "spmv": Input("", "{}", 10, 40),
    "tree": Input("", "{}", 1_500_000, 8_000_000),
    "updates": Input("", "{}", 30_000_000, 120_000_000),
}
CPP = {
    "graph": Input("--rmat 18 --iterations 30 --roots 2 --threads 1", "--rmat 19 --iterations {} --roots 4 --threads 1", 10, 80),
    "triad": Input("--size 192MiB --iterations 120 --threads 1", "--size 192MiB --iterations {} --threads 1", 400, 1600),
    "gups": Input("--size 192MiB --updates 15000000 --threads 1", "--size 192MiB --updates {} --threads 1", 10_000_000, 50_000_000),
    "stencil": Input("--size 192MiB --iterations 80 --threads 1", "--size 192MiB --iterations {} --threads 1", 150, 800),
    "larson": Input("--threads 1 --blocks 150000 --rounds 4 --replacements 400000",
                    "--threads 1 --blocks 200000 --rounds {} --replacements 400000", 8, 40),
    "xmalloc": Input("--batch 65536 --batches 40", "--batch 524288 --batches {}", 10, 80),
    "context": Input("--blocks 1000000 --allocations 10000000", "--blocks 2500000 --allocations {}", 30_000_000, 60_000_000),
    "lookup": Input("--nuclides 34 --gridpoints 12000 --lookups 250000 --threads 1",
                    "--nuclides 68 --gridpoints 12000 --lookups {} --threads 1", 400_000, 2_000_000),
    "zones": Input("--parts 3200 --zones 640 --cycles 60 --threads 1", "--threads 1 --cycles {}", 100, 400),
    "stream": Input("--size 96MiB --iterations 30 --threads 1", "--size 192MiB --iterations {} --threads 1", 40, 160),
    "polybench": Input("--kernel gemver", "--kernel gemver --repeat {}", 6, 25),
    "membench": Input("--hot 64MiB --cold 256MiB --passes 4 --threads 1", "--hot 96MiB --cold 384MiB --passes {} --threads 1", 3, 10),
    "numabench": Input("--hot 64MiB --cold 256MiB --passes 4 --threads 1 --remote 40",
                       "--hot 96MiB --cold 384MiB --passes {} --threads 1 --remote 40", 3, 10),
    "patterns": Input("--size 128MiB --mode scan --updates 20000000 --cache 0B",
                      "--size 192MiB --mode zipf --updates {} --cache 0B", 8_000_000, 30_000_000),
}
FORTRAN = {"ocean": Input("256 70", "320 {}", 120, 600)}
# Scripts of workloads/debian.
DEBIAN = {
    "numpy": Input("MEGABYTES=128", "MEGABYTES={}", 64, 256),
    "sqlite": Input("ROWS=200000", "ROWS={}", 120_000, 600_000),
    "redis": Input("KEYS=120000 REQUESTS=120000", "KEYS=200000 REQUESTS={}", 60_000, 600_000),
    "graphicsmagick": Input("WIDTH=2400 HEIGHT=1800", "WIDTH=5000 HEIGHT={}", 1000, 3600),
    "pandas": Input("ROWS=200000", "ROWS={}", 300_000, 2_000_000),
}


def variables(words: list[str]) -> dict[str, str]:
    """Of words of the form NAME=VALUE."""
    return dict(word.split("=", 1) for word in words)


def kernel_source(name: str) -> str:
    return os.path.join(KERNELS, f"{name}.c")


def workload_sources(name: str) -> list[str]:
    return glob.glob(os.path.join(ROOT, "workloads", name, "*.cpp"))


def build_ocean(folder: str) -> str:
    """Built by gfortran, as flang need not be there: its sites are named by their callers."""
    output = os.path.join(folder, "ocean")
    must(["gfortran", "-O2", "-g", "-J", folder, "-o", output, os.path.join(ROOT, "workloads", "ocean", "ocean.f90")], "building ocean")
    return output


def named(programs: dict[str, Value], only: list[str] | None) -> dict[str, Value]:
    """What the programs that `--program` names have, or all."""
    unknown = [name for name in only or [] if name not in programs]
    if unknown:
        raise Problem(f"--program {unknown[0]}: there are {', '.join(programs)}")
    return {name: value for name, value in programs.items() if not only or name in only}
