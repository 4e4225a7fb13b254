"""Two tables of the section `energy` on emulated tiers of a limited bandwidth: balancing by a plan, and remapping while a program runs."""
import dataclasses
import json
import os
import statistics
import tomllib

from measure import Contender, Problem, Program, Run, interleave, run_once
from table import Table
from tools import Tools, must

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
    printed = json.loads(must([tools.isotherm, "--quiet", "report", "--json", profile], "reading a profile"))
    demand = sum(site.get("bandwidth_bytes_per_second", 0) for site in printed["sites"])
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
    """What a run with --remap did."""

    remaps: list[dict]
    samples: list[int]

    def first(self) -> dict:
        return self.remaps[0] if self.remaps else {}

    def seconds_until(self, bound: int) -> float | None:
        """From the begin of the second in which the bandwidth first passed a bound to the first remap."""
        above = [at for at, rate in enumerate(self.samples) if rate >= bound]
        return self.first()["seconds"] - above[0] if above and self.remaps else None

    def undone(self) -> bool:
        return any(remap["undo"] for remap in self.remaps)


def remapped(tools: Tools, program: Program, bounds: list[int], tiers: str, folder: str, seconds: float) -> tuple[Remapped, Run]:
    """A run whose hot data begins on the fast tier, which stands for the first devices."""
    model, summary = os.path.join(folder, "remap.toml"), os.path.join(folder, "remap.json")
    with open(model, "w", encoding="utf-8") as file:
        json_bounds = ", ".join(f'"{bound}B/s"' for bound in bounds)
        file.write(f"bounds = [{json_bounds}]\n")
    words = [tools.isotherm, "--quiet", "run", "--remap", model, "--tiers", tiers, "--fast", "100%", "--summary", summary, "--"]
    run = run_once(program, Contender("remapped", words), seconds)
    with open(summary, encoding="utf-8") as file:
        found = json.load(file)
    return Remapped(found["remaps"], found["samples"]), run


def machine_bounds(tools: Tools, programs: dict[int, Program], device: int, folder: str, options, say) -> list[int]:
    """The model by the bandwidth that the remapper reads, the bytes of the emulated machine's account, which are not those that the program counts:
    each delay with its hot data on 1, 2, 3 and 4 devices, without a remap. The first second, in which data is made, is left out."""
    path, model = os.path.join(folder, "machine.runs"), os.path.join(folder, "machine.toml")
    with open(path, "w", encoding="utf-8") as file:
        for delay, program in programs.items():
            for devices in range(1, DEVICES + 1):
                say(f"remap: delay {delay} on {devices} devices")
                found, run = remapped(tools, program, [UNREACHED], limited(devices * device, DEVICES * device), folder, options.limit)
                steady = found.samples[1:] or found.samples
                if not steady:
                    raise Problem(f"{program.name}, delay {delay}: too short for a sample of the bandwidth")
                work = run.measures["objects_per_second"]
                file.write(f"devices {devices} delay {delay} bandwidth {statistics.median(steady):.0f} work {work:.0f}\n")
    must([tools.isotherm, "--quiet", "fit-bandwidth", path, "-o", model], "fitting the model of the machine")
    with open(model, "rb") as file:
        return [int(bound.removesuffix("B/s")) for bound in tomllib.load(file)["bounds"]]


def remap(tools: Tools, fitted: dict[int, Program], programs: dict[int, Program], device: int, folder: str, options, say) -> Table:
    """MemBench at no delay by the fitted model, and with the longest delay by one whose bounds are far too low."""
    bounds = machine_bounds(tools, fitted, device, folder, options, say)
    program, limited_by_itself = programs[min(programs)], programs[max(programs)]
    table = Table("Remap: MemBench, hot objects on the first of four devices at the start",
                  ["program", "remaps", "first after s", "to devices", "undone", "GB/s before", "GB/s at the end"])
    met = []
    cases = [("no delay, fitted model", program, bounds, True), ("long delay, bounds too low", limited_by_itself, [1, 2, 3], False)]
    for name, one, model, gains in cases:
        say(f"remap: {name}")
        run, _ = remapped(tools, one, model, limited(device, (DEVICES - 1) * device), folder, options.limit)
        first, rates = run.first(), run.samples or [0]
        waited, before = run.seconds_until(model[0]), first.get("bytes_per_second", 0)
        table.row(name, len(run.remaps), "none" if waited is None else waited, first.get("to_devices", ""), "yes" if run.undone() else "",
                  before / 1e9, rates[-1] / 1e9)
        if gains:
            met.append(waited is not None and waited <= REMAPPED and not run.undone() and rates[-1] > before * (1 + LOSS))
        else:
            met.append(run.undone())
    table.note("The model's bounds, in bytes that the machine counts: " + ", ".join(f"{bound / 1e9:.2f} GB/s" for bound in bounds) + ".")
    table.note(f"Goal: at no delay hot data is on more devices within {REMAPPED:.0f} s of the bandwidth that needs them, and the bandwidth rises; a remap that does not raise it "
               f"is undone: {'reached' if all(met) else 'missed'}.")
    return table
