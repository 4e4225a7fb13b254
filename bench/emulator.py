"""Section `emulator`: whether a program whose data lies in emulated slow memory takes the factor that the memory is slower.

Every kernel has all of its data in slow memory. Plain is the runtime without an emulated machine; `sampling` is an emulated
machine of factor 1, whose only cost is that of its samples; a factor is measured over it.
"""
import dataclasses
import os

from measure import Contender, Program, interleave
from table import Table
from tools import HERE, Tools, must

FACTORS = [2, 3, 5]
# A quarter of the cache that is assumed for each processor of a virtual machine, and of most others at least.
SMALL_SET = 512 << 10
MIB, GIB = 1 << 20, 1 << 30
WITHIN, SPREAD, SAMPLING, CACHED = 0.07, 0.04, 1.08, 1.1


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel, the size of its data, its work with `--quick` and without, and whether it waits for memory."""

    name: str
    size: int
    quick: int
    amount: int
    waits: bool = True

    @property
    def label(self) -> str:
        if self.name == "compute":
            return self.name
        unit, name = (GIB, "GiB") if self.size >= GIB else (MIB, "MiB") if self.size >= MIB else (1024, "KiB")
        return f"{self.name} {self.size // unit} {name}"

    def program(self, path: str, quick: bool) -> Program:
        return Program(self.label, [path, self.name, str(self.size), str(self.quick if quick else self.amount)])


KERNELS = [
    Kernel("chase", 64 * MIB, 8, 16),
    Kernel("chase", 512 * MIB, 4, 10),
    Kernel("chase", 4 * GIB, 4, 8),
    Kernel("random", 64 * MIB, 100, 250),
    Kernel("random", 1 * GIB, 30, 100),
    Kernel("update", 1 * GIB, 30, 100),
    Kernel("read", 64 * MIB, 10, 20),
    Kernel("read", 1 * GIB, 10, 20),
    Kernel("write", 64 * MIB, 5, 12),
    Kernel("write", 1 * GIB, 5, 12),
    Kernel("chase", SMALL_SET, 200, 400, waits=False),
    Kernel("random", SMALL_SET, 700, 1500, waits=False),
    Kernel("compute", 4096, 700, 1500, waits=False),
]


def all_slow(folder: str, factor: int) -> str:
    """A plan that puts everything into slow memory of a factor."""
    path = os.path.join(folder, f"factor-{factor}.plan")
    with open(path, "w", encoding="utf-8") as file:
        file.write("isotherm-plan 1\npolicy all-slow\nvalue accesses\nweight peak-rss\ndepth 4\ncommand \"any\"\n"
                   "tier fast emulated-fast capacity 64MiB placement preferred\n"
                   "tier slow emulated-slow capacity 1024GiB placement preferred "
                   f"latency-factor {factor} bandwidth-factor {factor} migrate 5us\n"
                   "default slow\nstanding planned 0 first-touch 0 bound 0 total 0\n")
    return path


def verdict(kernel: Kernel, factors: dict[int, float], sampling: float, spread: float) -> str:
    """`reached`, or what missed its goal."""
    if kernel.waits:
        misses = [f"factor {factor}" for factor, found in factors.items() if abs(found / factor - 1) > WITHIN]
    else:
        misses = [f"factor {factor}" for factor, found in factors.items() if found > CACHED]
    misses += ["sampling"] * (sampling > SAMPLING) + ["spread"] * (spread > SPREAD)
    return ", ".join(misses) + " missed" if misses else "reached"


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    kernels = os.path.join(folder, "kernels")
    must(["cc", "-O2", "-o", kernels, os.path.join(HERE, "emulator", "kernels.c")], "compiling the kernels")
    prefix = [tools.isotherm, "--quiet", "run"]
    ways = [Contender("plain", ["env", f"LD_PRELOAD={tools.library}"])]
    ways += [Contender(str(factor), [*prefix, "--plan", all_slow(folder, factor), "--"]) for factor in [1, *FACTORS]]
    table = Table("Emulated slow memory: processor time of a kernel over that of factor 1",
                  ["kernel", "seconds", "sampling", *(f"factor {factor}" for factor in FACTORS), "spread", "goals"])
    for kernel in KERNELS:
        samples = interleave(kernel.program(kernels, options.quick), ways, options.rounds, options.limit, say)
        sampling = samples.ratio("1", "plain", "kernel_seconds")
        factors = {factor: samples.ratio(str(factor), "1", "kernel_seconds") for factor in FACTORS}
        spread = max(samples.spread(way.name, "kernel_seconds") for way in ways)
        table.row(kernel.label, samples.median("plain", "kernel_seconds"), sampling, *factors.values(),
                  f"{spread:.1%}", verdict(kernel, factors, sampling, spread))
    table.note(f"Goals: within {WITHIN:.0%} of the factor where the kernel waits for memory, at most {CACHED} where its data fits in "
               f"a quarter of the assumed cache or it has none; sampling at most {SAMPLING}; spread of all columns at most {SPREAD:.0%}.")
    return [table]
