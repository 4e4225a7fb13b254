"""Two tables of the section `energy` on emulated tiers of a limited bandwidth: balancing by a plan, and remapping while a program runs."""
import dataclasses
import json
import math
import os
import statistics

from measure import Contender, Problem, Program, interleave, run_once
from table import Table
from tools import Tools

# Arrays of 205 MiB: the emulated machine knows a stream by samples of one instruction, some of which must fall into one pass over an array.
TRIAD = ["--size", "1GiB", "--hot-percent", "60", "--visit-every", "10", "--threads", "1"]
# Fast memory has half of what the program asks for, slow memory half of that: of both together three quarters.
OF_DEMAND, TWO_TO_ONE = 0.5, 2
# The least limit of an emulated tier, in bytes a second.
LEAST_LIMIT = 100 << 20
# The goals: balanced over filled, the seconds until a remap, and what may be lost after it.
BALANCED, REMAPPED, LOSS = 1.25, 3.0, 0.05
FACTORS = "emulated:B:1,L:1"
DEVICES = 4
MEBIBYTE = 1 << 20
# A bound that no bandwidth reaches, so that nothing is remapped.
UNREACHED = 1 << 62


def limited(fast: int, slow: int) -> str:
    return f"{FACTORS},fast-limit:{fast}B/s,limit:{slow}B/s"


def balance(tools: Tools, options, folder: str, cache: str, say) -> Table:
    """Triad, whose three arrays are alike, by a plan that fills fast memory and by one that balances the tiers, on a machine with so much of caches."""
    program = tools.workload("triad", *TRIAD, "--iterations", "30" if options.quick else "120")
    profile = os.path.join(folder, "triad.iso")
    say("triad: record and isolate")
    run_once(program, Contender("record", tools.isolated(profile, "--cache", cache)), options.limit * 20)
    demand = sum(site.get("bandwidth_bytes_per_second", 0) for site in tools.report(profile)["sites"])
    if not demand:
        raise Problem(f"{profile}: no site has a bandwidth")
    fast = max(int(demand * OF_DEMAND), TWO_TO_ONE * LEAST_LIMIT)
    tiers = limited(fast, fast // TWO_TO_ONE)
    plans = {name: os.path.join(folder, f"triad-{name}.plan") for name in ("thermos", "balance")}
    for policy, plan in plans.items():
        tools.plan(profile, policy, "100%", plan, tiers, "bandwidth")
    ways = [Contender(name, tools.guided(plan, "--cache", cache)) for name, plan in plans.items()]
    samples = interleave(program, ways, options.rounds, options.limit, say)
    table = Table("Balance: triad on two emulated tiers whose bandwidths are as 2 to 1",
                  ["asks for GB/s", "fast GB/s", "slow GB/s", "filled s", "balanced s", "filled over balanced"])
    ratio = samples.ratio("thermos", "balance", "wall")
    table.row(demand / 1e9, fast / 1e9, fast / TWO_TO_ONE / 1e9, samples.median("thermos", "wall"), samples.median("balance", "wall"), f"{ratio:.2f}")
    table.note(f"Goal: by a plan that balances the loaded latencies at least {BALANCED} times as fast as by one that fills fast memory first: "
               f"{'reached' if ratio >= BALANCED else 'missed'}. Fast memory has room for all arrays.")
    return table


@dataclasses.dataclass(frozen=True)
class Remapped:
    """What a run with --remap did, and the second of it in which the program began to write hot objects: it makes them before."""

    remaps: list[dict]
    samples: list[int]
    devices: int
    begin: float
    work: float

    def steady(self, after: float) -> float:
        """The bandwidth from so many seconds after the writing began, without the last second, of which only a part was."""
        samples = self.samples[math.ceil(self.begin + after):-1]
        if not samples:
            raise Problem("membench: too short for a sample of the bandwidth")
        return statistics.median(samples)

    def last_change(self) -> float:
        """Seconds from the begin of the writing to the last remap; 0 where it was before."""
        return max((remap["seconds"] - self.begin for remap in self.remaps), default=0.0)

    def undone(self) -> bool:
        return any(remap["undo"] for remap in self.remaps)


def remapped(tools: Tools, program: Program, bounds: list[int], device: int, more: list[str], folder: str, seconds: float) -> Remapped:
    """A run whose hot data begins on the fast tier, the first device of this bandwidth; the others are the slow tier."""
    model, summary = os.path.join(folder, "remap.toml"), os.path.join(folder, "remap.json")
    with open(model, "w", encoding="utf-8") as file:
        json_bounds = ", ".join(f'"{bound}B/s"' for bound in bounds)
        file.write(f"bounds = [{json_bounds}]\n")
    tiers = limited(device, (DEVICES - 1) * device)
    words = [tools.isotherm, "--quiet", "run", "--remap", model, "--tiers", tiers, "--fast", "100%", "--summary", summary, *more, "--"]
    measures = run_once(program, Contender("remapped", words), seconds).measures
    with open(summary, encoding="utf-8") as file:
        found = json.load(file)
    return Remapped(found["remaps"], found["samples"], found["devices"], measures["writing_begins_seconds"], measures["objects_per_second"])


def machine_runs(tools: Tools, programs: dict[int, Program], hot: int, device: int, cache: str, folder: str, options, say) -> dict[tuple[int, int], Remapped]:
    """Each delay with its hot data on 1, 2, 3 and 4 devices: as many as it fills, at no bandwidth more."""
    runs = {}
    for delay, program in programs.items():
        for devices in range(1, DEVICES + 1):
            say(f"remap: delay {delay} on {devices} devices")
            filled = ["--cache", cache, "--device-capacity", f"{hot // devices + MEBIBYTE}B"]
            runs[delay, devices] = remapped(tools, program, [UNREACHED] * (DEVICES - 1), device, filled, folder, options.limit)
    return runs


def machine_bounds(tools: Tools, runs: dict[tuple[int, int], Remapped], folder: str) -> list[int]:
    """The model by the bandwidth that the remapper reads, the bytes of the emulated machine's account, which are not those that the program counts."""
    lines = [f"devices {devices} delay {delay} bandwidth {run.steady(REMAPPED):.0f} work {run.work:.0f}" for (delay, devices), run in runs.items()]
    return tools.fit_bandwidth(lines, os.path.join(folder, "machine"))


def remap(tools: Tools, fitted: dict[int, Program], programs: dict[int, Program], hot: int, device: int, cache: str, folder: str, options, say) -> Table:
    """MemBench at no delay by the fitted model, and with the longest delay by one whose bounds are far too low."""
    runs = machine_runs(tools, fitted, hot, device, cache, folder, options, say)
    bounds = machine_bounds(tools, runs, folder)
    shortest, longest = min(programs), max(programs)
    table = Table("Remap: MemBench, hot objects on the first of four devices at the start",
                  ["program", "remaps", "last after s", "devices at the end", "undone", "GB/s at the end", "GB/s on all devices"])
    met = []
    cases = [("no delay, fitted model", shortest, bounds), ("long delay, bounds too low", longest, [1, 2, 3])]
    for name, delay, model in cases:
        say(f"remap: {name}")
        run = remapped(tools, programs[delay], model, device, ["--cache", cache], folder, options.limit)
        waited, rate, best = run.last_change(), run.steady(REMAPPED), runs[delay, DEVICES].steady(REMAPPED)
        table.row(name, len(run.remaps), waited, run.devices, "yes" if run.undone() else "", rate / 1e9, best / 1e9)
        met.append(waited <= REMAPPED and rate >= best * (1 - LOSS) if model is bounds else run.undone())
    table.note("The model's bounds, in bytes that the machine counts: " + ", ".join(f"{bound / 1e9:.2f} GB/s" for bound in bounds) + ". Seconds are from the first write.")
    table.note(f"Goal: at no delay hot data is on the devices that its bandwidth needs within {REMAPPED:.0f} s, and the bandwidth is that of all devices within {LOSS:.0%}; "
               f"a remap that does not raise it is undone: {'reached' if all(met) else 'missed'}.")
    return table
