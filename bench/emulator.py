"""Section `emulator`: whether a program whose data lies in emulated slow memory takes the factor that the memory is slower.

The second table is of the bandwidth that programs share: two at once on a machine with a limit.

Every kernel has all of its data in slow memory. Plain is the runtime without an emulated machine; `sampling` is an emulated
machine of factor 1, whose only cost is that of its samples; a factor is measured over it.
"""
import concurrent.futures
import dataclasses
import os
import statistics

from measure import Contender, Program, interleave, run_once
from table import Table
from tools import Tools, compiled

FACTORS = [2, 3, 5]
# A quarter of the cache that is assumed for each processor of a virtual machine, and of most others at least.
SMALL_SET = 512 << 10
MIB, GIB = 1 << 20, 1 << 30
WITHIN, SPREAD, SAMPLING, CACHED = 0.07, 0.04, 1.08, 1.1
# The limit is the kernel's own bandwidth over this; two programs share it within `SHARED`.
LIMITED, SHARED = 4, 0.1


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


STREAMS = [Kernel("read", 1 * GIB, 15, 30), Kernel("write", 1 * GIB, 15, 30)]


def everything(folder: str, tier: str, latency: float, bandwidth: float, more: str = "") -> str:
    """A plan that puts everything into one tier, `fast` or `slow`, of an emulated machine with these factors, and with a limit that the programs
    of a machine share."""
    path = os.path.join(folder, f"{tier}-{latency:g}-{bandwidth:g}{more.replace(' ', '-').replace('/', '-')}.plan")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"isotherm-plan 1\npolicy all-{tier}\nvalue accesses\nweight peak-rss\ndepth 4\ncommand \"any\"\n"
                   "tier fast emulated-fast capacity 1024GiB placement preferred\n"
                   "tier slow emulated-slow capacity 1024GiB placement preferred "
                   f"latency-factor {latency:g} bandwidth-factor {bandwidth:g} migrate 5us{more}\n"
                   f"default {tier}\nstanding planned 0 first-touch 0 bound 0 total 0\n")
    return path


def all_slow(folder: str, factor: int, more: str = "") -> str:
    """A plan that puts everything into slow memory of a factor."""
    return everything(folder, "slow", factor, factor, more)


def verdict(kernel: Kernel, factors: dict[int, float], sampling: float, spread: float) -> str:
    """`reached`, or what missed its goal."""
    if kernel.waits:
        misses = [f"factor {factor}" for factor, found in factors.items() if abs(found / factor - 1) > WITHIN]
    else:
        misses = [f"factor {factor}" for factor, found in factors.items() if found > CACHED]
    misses += ["sampling"] * (sampling > SAMPLING) + ["spread"] * (spread > SPREAD)
    return ", ".join(misses) + " missed" if misses else "reached"


def together(program: Program, ways: list[Contender], seconds: float) -> list[float]:
    """Wall seconds of a program's kernel, by each way at once."""
    with concurrent.futures.ThreadPoolExecutor(len(ways)) as pool:
        runs = list(pool.map(lambda way: run_once(program, way, seconds), ways))
    return [run.measures["wall_seconds"] for run in runs]


def shared(tools: Tools, options, folder: str, kernels: str, say) -> Table:
    """What one and two programs get of a limit."""
    table = Table("Emulated slow memory of a limited bandwidth: share of the limit that each program gets (median)",
                  ["kernel", "own GB/s", "limit GB/s", "alone", "first of two", "second of two", "goals"])
    for kernel in STREAMS:
        program = kernel.program(kernels, options.quick)
        amount = (kernel.quick if options.quick else kernel.amount) * GIB
        free = Contender("free", tools.guided(all_slow(folder, 1)))
        shares: dict[str, list[float]] = {"alone": [], "first": [], "second": []}
        own = amount / statistics.median(together(program, [free], options.limit)[0] for _ in range(options.rounds))
        limit = int(own / LIMITED)
        way = Contender("limited", tools.guided(all_slow(folder, 1, f" bandwidth-limit {limit}B/s machine bench")))
        for turn in range(options.rounds):
            say(f"{kernel.label}: round {turn + 1} of {options.rounds}: a limit of {limit / 1e9:.1f} GB/s")
            shares["alone"].append(amount / together(program, [way], options.limit)[0] / limit)
            for name, seconds in zip(["first", "second"], together(program, [way, way], options.limit)):
                shares[name].append(amount / seconds / limit)
        alone, first, second = (statistics.median(values) for values in shares.values())
        missed = [name for name, found, goal in [("alone", alone, 1), ("first", first, 0.5), ("second", second, 0.5)]
                  if abs(found / goal - 1) > SHARED]
        table.row(kernel.label, own / 1e9, limit / 1e9, alone, first, second,
                  ", ".join(missed) + " missed" if missed else "reached")
    table.note(f"Goals: alone all of the limit, of two half each, within {SHARED:.0%}. The factors are 1, so that only the limit "
               "delays. Each program has a thread; the machine has a processor for each or more.")
    return table


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    kernels = compiled("emulator/kernels.c", folder)
    ways = [Contender("plain", ["env", f"LD_PRELOAD={tools.library}"])]
    ways += [Contender(str(factor), tools.guided(all_slow(folder, factor))) for factor in [1, *FACTORS]]
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
    return [table, shared(tools, options, folder, kernels, say)]
