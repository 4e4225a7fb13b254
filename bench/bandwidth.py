"""Two tables of the section `energy` on emulated tiers of a limited bandwidth: balancing by a plan, and remapping while a program runs."""
import dataclasses
import json
import os

from measure import Contender, Problem, Program, interleave, run_once
from table import Table
from tools import Tools, must

# Fast memory has half of what the program asks for, slow memory half of that: of both together three quarters.
OF_DEMAND, TWO_TO_ONE = 0.5, 2
# The least limit of an emulated tier, in bytes a second.
LEAST_LIMIT = 100 << 20
# The goals: balanced over filled, the seconds until a remap, and what may be lost after it.
BALANCED, REMAPPED, LOSS = 1.25, 3.0, 0.05
FACTORS = "emulated:B:1,L:1"
DEVICES = 4


def limited(fast: int, slow: int) -> str:
    return f"{FACTORS},fast-limit:{fast}B/s,limit:{slow}B/s"


def balance(tools: Tools, options, folder: str, say) -> Table:
    """Triad, whose three arrays are alike, by a plan that fills fast memory and by one that balances the tiers."""
    program = tools.workload("triad", "--size", "192MiB", "--iterations", "400" if options.quick else "1600", "--threads", "1")
    profile = os.path.join(folder, "triad.iso")
    say("triad: record and isolate")
    run_once(program, Contender("record", tools.isolated(profile)), options.limit * 20)
    printed = json.loads(must([tools.isotherm, "--quiet", "report", "--json", profile], "reading a profile"))
    demand = sum(site.get("bandwidth_bytes_per_second", 0) for site in printed["sites"])
    if not demand:
        raise Problem(f"{profile}: no site has a bandwidth")
    fast = max(int(demand * OF_DEMAND), TWO_TO_ONE * LEAST_LIMIT)
    tiers = limited(fast, fast // TWO_TO_ONE)
    plans = {name: os.path.join(folder, f"triad-{name}.plan") for name in ("thermos", "balance")}
    for policy, plan in plans.items():
        tools.plan(profile, policy, "100%", plan, tiers, "bandwidth")
    ways = [Contender(name, tools.guided(plan)) for name, plan in plans.items()]
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


def remapped(tools: Tools, program: Program, bounds: list[int], device: int, folder: str, seconds: float) -> Remapped:
    """A run whose hot data begins on the first of four devices of this bandwidth."""
    model, summary = os.path.join(folder, "remap.toml"), os.path.join(folder, "remap.json")
    with open(model, "w", encoding="utf-8") as file:
        json_bounds = ", ".join(f'"{bound}B/s"' for bound in bounds)
        file.write(f"bounds = [{json_bounds}]\n")
    words = [tools.isotherm, "--quiet", "run", "--remap", model, "--tiers", limited(device, (DEVICES - 1) * device), "--fast", "100%",
             "--summary", summary, "--"]
    run_once(program, Contender("remapped", words), seconds)
    with open(summary, encoding="utf-8") as file:
        found = json.load(file)
    return Remapped(found["remaps"], found["samples"])


def remap(tools: Tools, program: Program, limited_by_itself: Program, bounds: list[int], device: int, folder: str, options, say) -> Table:
    """MemBench at no delay by the fitted model, and with a long delay by one whose bounds are far too low."""
    table = Table("Remap: MemBench, hot objects on the first of four devices at the start",
                  ["program", "remaps", "first after s", "to devices", "undone", "GB/s before", "GB/s at the end"])
    met = []
    cases = [("no delay, fitted model", program, bounds, True), ("long delay, bounds too low", limited_by_itself, [1, 2, 3], False)]
    for name, one, model, gains in cases:
        say(f"remap: {name}")
        run = remapped(tools, one, model, device, folder, options.limit)
        first, rates = run.first(), run.samples or [0]
        waited, before = run.seconds_until(model[0]), first.get("bytes_per_second", 0)
        table.row(name, len(run.remaps), "none" if waited is None else waited, first.get("to_devices", ""), "yes" if run.undone() else "",
                  before / 1e9, rates[-1] / 1e9)
        if gains:
            met.append(waited is not None and waited <= REMAPPED and not run.undone() and rates[-1] > before * (1 + LOSS))
        else:
            met.append(run.undone())
    table.note(f"Goal: at no delay hot data is on more devices within {REMAPPED:.0f} s of the bandwidth that needs them, and the bandwidth rises; a remap that does not raise it "
               f"is undone: {'reached' if all(met) else 'missed'}.")
    return table
