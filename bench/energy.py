"""Section `energy`: Cross-Layer's figures 3, 4 and 5 and its tables 1 and 2 in form, by MemBench and NUMABench, part by part.

    membench, a delay --hot objects on 1, 2, 3, 4 devices--> throughput and bandwidth (measured) --> `isotherm fit-bandwidth`, twice
                                                                       \\--> power of the devices (modelled, DDR4)

The emulated machine stands for the devices: a limit of slow memory's bandwidth, as many quarters of the program's demand as there are devices with hot data. It is
slower by nothing else (factors 1). Of accesses that are no stream it counts 64 bytes for each 100 ns of waiting, so two threads that always wait ask for 1.28 GB/s.
"""
import os
import statistics
from collections.abc import Iterator

from bandwidth import balance, remap
from emulator import everything
from measure import Contender, Problem, Samples, interleave, run_once
from parts import Parts, of_section, run_parts
from table import Table
from tools import ROOT, Tools, must

DEVICES = [1, 2, 3, 4]
# Delays between two objects, over the time that a write takes on this machine without one, because the demand depends on both: dense where the bounds of the
# model are, with some beyond the first of them: a write counts as more bytes than it moves where it waits for longer than 100 ns, and takes longer on the
# emulated machine.
DELAYS = [0, 0.5, 1, 2, 4, 6, 8, 12, 24]
QUICK_DELAYS = [0, 1, 4, 16]
# What the emulated machine has of caches. Those of this one may hold all hot objects.
CACHE = "8MiB"
# Passes before the time is taken: the emulated machine lets a thread wait when a few hundred of its accesses were sampled, then for all so far. With a
# long delay that takes seconds, so that it would fall into the time of some runs only.
WARM_UP = "4"
REMOTE = [0, 20, 40, 60, 80, 100]
# Percent of the work that a number of devices may lose.
TOLERANCE = 5
# The goals: hot/cold loses at most this, saves at least that, and two fits differ by at most this.
LOSS, SAVED, VARIES = 0.05, 0.25, 0.10
# What two threads ask for on the emulated machine, in bytes a second.
DEMAND = 2 * 64 * 10**7
UNBOUNDED = 2**64 - 1
# A remap takes two samples of a second, its judgement two more.
REMAP_SECONDS = 10
# Some samples of a second, at the full speed of the load; too few devices take up to four times as long.
FIT_SECONDS = 8


class Settings:
    """Sizes and numbers of one run of the section."""

    def __init__(self, tools: Tools, options):
        # Smaller than the paper's 200 MiB and 2 GiB, and many times what the emulated machine has of caches.
        self.hot, self.cold = "64MiB", "256MiB" if options.quick else "512MiB"
        self.objects = (64 << 20) // 64
        plain = tools.workload("membench", "--hot", self.hot, "--cold", self.cold, "--delay", "0", "--passes", "4")
        written = run_once(plain, Contender("plain", []), options.limit).measures["objects_per_second"]
        # Nanoseconds of a write, by each of two threads.
        self.write = 2e9 / written
        self.delays = self.delays_of(QUICK_DELAYS if options.quick else DELAYS)
        # Each of the two fits has every other round: of fewer than two each, a single disturbed run would be a load's only one.
        self.rounds = max(2, options.rounds if options.has_rounds else 4)
        self.seconds = 0.5 if options.quick else 1.5

    def delays_of(self, writes: list[float]) -> list[int]:
        """Nanoseconds, of delays that are given in writes."""
        return [round(delay * self.write) for delay in writes]

    def program(self, tools: Tools, name: str, delay: int, *more: str, seconds: float | None = None):
        passes = max(1, round((seconds or self.seconds) * 2e9 / (delay + self.write) / self.objects))
        return tools.workload(name, "--hot", self.hot, "--cold", self.cold, "--delay", str(delay), "--passes", str(passes), "--warm-up", WARM_UP, *more)


def on_devices(tools: Tools, folder: str) -> list[Contender]:
    """The program with its data on one to four devices."""
    limits = {devices: DEMAND // len(DEVICES) * devices for devices in DEVICES}
    return [Contender(str(devices), tools.guided(everything(folder, "slow", 1, 1, f" bandwidth-limit {limit}B/s"), "--cache", CACHE))
            for devices, limit in limits.items()]


def fit(tools: Tools, folder: str, runs: dict[int, Samples], first: int) -> list[int]:
    """The bounds that `isotherm fit-bandwidth` finds in every other round."""
    lines = []
    for delay, samples in runs.items():
        for devices in DEVICES:
            figures = (samples.values(str(devices), name)[first::2] for name in ("bytes_per_second", "objects_per_second"))
            lines += [f"devices {devices} delay {delay} bandwidth {bandwidth:.0f} work {work:.0f}" for bandwidth, work in zip(*figures)]
    return tools.fit_bandwidth(lines, os.path.join(folder, f"membench-{first}"), "--tolerance", str(TOLERANCE))


def powers(questions: list[tuple[int, int, float]]) -> list[float]:
    """Milliwatts of (devices, hot devices, bytes a second): half of the bytes are read, half written."""
    words = [f"{devices}:{hot}:{bandwidth / 2:.0f}:{bandwidth / 2:.0f}" for devices, hot, bandwidth in questions]
    command = ["cargo", "run", "--release", "--quiet", "--package", "isotherm-policy", "--example", "dram_devices", "--", *words]
    return [float(line) for line in must(command, "the power of the devices", cwd=ROOT).split()]


def figure_3(runs: dict[int, Samples]) -> Table:
    table = Table("Figure 3: one DDR4 device (a rank) with all accesses, by the delay between two",
                  ["delay ns", "GB/s, measured", "power mW, modelled", "of idle"])
    rates = [samples.most("1", "bytes_per_second") for samples in runs.values()]
    *found, idle = powers([(1, 1, rate) for rate in rates] + [(1, 1, 0)])
    for delay, rate, power in zip(runs, rates, found):
        table.row(delay, rate / 1e9, f"{power:.0f}", f"{power / idle:.2f}")
    table.note(f"An idle device takes {idle:.0f} mW (self-refresh). The paper's DIMM takes 15 % of a fully active one when idle.")
    return table


def figure_4(runs: dict[int, Samples], bounds: list[int]) -> Table:
    table = Table("Figure 4: hot objects on one of four devices over all four (default)",
                  ["delay ns", "default GB/s", "hot/cold GB/s", "throughput", "spread", "energy, modelled", "below first bound"])
    most, met = str(len(DEVICES)), []
    questions = [(len(DEVICES), hot, samples.most(str(hot), "bytes_per_second")) for samples in runs.values() for hot in (len(DEVICES), 1)]
    found = powers(questions)
    for (delay, samples), default, packed in zip(runs.items(), found[::2], found[1::2]):
        throughput = samples.most("1", "objects_per_second") / samples.most(most, "objects_per_second")
        energy = packed / default / throughput
        rate = samples.most(most, "bytes_per_second")
        below = rate < bounds[0]
        spread = max(samples.spread(way, "objects_per_second") for way in ("1", most))
        table.row(delay, rate / 1e9, samples.most("1", "bytes_per_second") / 1e9, f"{throughput:.2f}", f"{spread:.1%}", f"{energy:.2f}",
                  "yes" if below else "")
        if below:
            met.append(throughput >= 1 - LOSS and energy <= 1 - SAVED)
    word = "reached" if met and all(met) else "missed"
    table.note(f"Goal: below the model's first bound no slower than default (within {LOSS:.0%}) and at least {SAVED:.0%} less energy for the same work: {word}. "
               "Bandwidth and throughput are measured on the emulated machine, each that of the fastest round; energy is modelled.")
    return table


def table_1(samples: Samples) -> Table:
    table = Table("Table 1: bandwidth by the number of devices with hot objects, without a delay", ["# hot", "total GB/s", "GB/s each"])
    for devices in DEVICES:
        rate = samples.most(str(devices), "bytes_per_second") / 1e9
        table.row(devices, rate, rate / devices)
    table.note("The paper's, from 1 to 4: 11.7, 23.2, 32.1, 39.5 GB/s. Here a device is an emulated quarter of what the two threads ask for.")
    return table


def table_2(fits: list[list[int]]) -> Table:
    table = Table("Table 2: devices by bandwidth, fitted twice from different rounds", ["# hot", "first fit", "second fit", "difference"])
    differences = []
    for devices, bounds in enumerate(zip(*fits), start=1):
        first, second = (None if bound == UNBOUNDED else bound for bound in bounds)
        both = first is not None and second is not None
        difference = abs(first - second) / min(first, second) if both else 0.0 if first == second else float("inf")
        differences.append(difference)
        table.row(devices, *("any" if bound is None else f"< {bound / 1e9:.2f} GB/s" for bound in (first, second)), f"{difference:.1%}")
    word = "reached" if max(differences) <= VARIES else "missed"
    table.note(f"Goal: two fits differ by at most {VARIES:.0%}: {word}. A device loses at most {TOLERANCE} % of the work of all.")
    return table


def figure_5(tools: Tools, settings: Settings, folder: str, options, say) -> Table:
    """NUMABench on the emulated pair as two nodes: remote objects in slow memory."""
    table = Table("Figure 5: NUMABench, hot objects on a remote node", ["remote", "local GB/s", "remote GB/s", "throughput", "energy, modelled"])
    way = Contender("remote", tools.guided(remote_plan(tools, settings, folder), "--cache", CACHE))
    rates = {}
    for share in REMOTE[::2] if options.quick else REMOTE:
        program = settings.program(tools, "numabench", 0, "--remote", str(share))
        rates[share] = interleave(program, [way], max(1, settings.rounds // 2), options.limit, say).most("remote", "bytes_per_second")
    nodes = [(len(DEVICES), hot, rate * part) for share, rate in rates.items() for hot in (len(DEVICES), 1)
             for part in (1 - share / 100, share / 100)]
    found = powers(nodes)
    for number, (share, rate) in enumerate(rates.items()):
        default, packed = (statistics.fsum(found[4 * number + 2 * way:][:2]) for way in (0, 1))
        table.row(f"{share} %", rate * (1 - share / 100) / 1e9, rate * share / 100 / 1e9, f"{rate / rates[0]:.2f}", f"{packed / default:.2f}")
    table.note("Throughput over none remote, measured; energy of one hot device on each node over all four of each at the same bandwidth, modelled. The remote node is "
               "the slow tier of emulated:remote.")
    return table


def remote_plan(tools: Tools, settings: Settings, folder: str) -> str:
    """A plan by which `hot_remote` is in slow memory and all else in fast memory."""
    profile, plan = os.path.join(folder, "numabench.iso"), os.path.join(folder, "numabench.plan")
    program = settings.program(tools, "numabench", 0, "--remote", "50")
    must([*tools.record(profile, "--cache", "0B"), *program.command], "recording numabench")
    tools.plan(profile, "all-fast", "100%", plan, "emulated:remote")
    with open(plan, encoding="utf-8") as file:
        lines = file.readlines()
    remote = [number for number, line in enumerate(lines) if line.startswith("site ") and "# hot_remote" in line]
    if len(remote) != 1:
        raise Problem(f"{plan}: {len(remote)} sites are hot_remote")
    words = lines[remote[0]].split(" ")
    lines[remote[0]] = " ".join([*words[:2], "slow", *words[3:]])
    with open(plan, "w", encoding="utf-8") as file:
        file.writelines(lines)
    return plan


def devices(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    """Each delay on each number of devices: the most runs of the section by far. Table 1 needs those of the first delay only."""
    settings, runs = Settings(tools, options), {}
    for delay in say.steps(settings.delays):
        runs[delay] = interleave(settings.program(tools, "membench", delay), on_devices(tools, folder), settings.rounds, options.limit, say)
        if len(runs) == 1:
            yield table_1(runs[delay])
    fits = [fit(tools, folder, runs, first) for first in (0, 1)]
    yield figure_3(runs)
    yield figure_4(runs, fits[0])
    yield table_2(fits)


def remote(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    yield figure_5(tools, Settings(tools, options), folder, options, say)


def balancing(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    yield balance(tools, options, folder, CACHE, say)


def remapping(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    """Runs that last for some samples of the bandwidth, one a second."""
    settings = Settings(tools, options)

    def programs(delays: list[float], seconds: float) -> dict:
        return {delay: settings.program(tools, "membench", delay, seconds=seconds) for delay in settings.delays_of(delays)}

    fitted, remapped = programs(QUICK_DELAYS, FIT_SECONDS), programs([QUICK_DELAYS[0], QUICK_DELAYS[-1]], REMAP_SECONDS)
    yield remap(tools, fitted, remapped, settings.objects * 64, DEMAND // len(DEVICES), CACHE, folder, options, say)


PARTS: Parts = {"devices": devices, "remote": remote, "balance": balancing, "remap": remapping}


def run(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    yield from run_parts("energy", PARTS, of_section(PARTS, options) or list(PARTS), tools, options, folder, say)
