"""CoMerge's Table 1 (MEMSYS 2017, section 2) on the emulated machines of its labels: how much slower is slow memory?

    label --isotherm tiers--> the factors that the emulator is asked for
      |
      \\-> dependent loads and a stream, all data slow and all data fast, in turn: the factors that a program meets
"""
import tempfile
from collections.abc import Iterator

from emulator import GIB, MIB, WITHIN, Kernel, everything
from measure import Contender, Samples, interleave
from table import Table
from tools import Tools, compiled

# The paper's latency in ns and bandwidth in GB/s: without a throttle (B:1 L:1), and by label.
FAST = (67, 11.7)
LABELS = {"B:1,L:2": (131, 11.7), "B:0.5,L:3": (197, 4.9), "B:0.25,L:2.5": (174, 2.8), "B:0.2,L:5": (310, 2.2), "B:0.15,L:5": (300, 1.7)}
# What tells the latency, and what the bandwidth.
CHASE, STREAM = Kernel("chase", 512 * MIB, 1, 10), Kernel("read", 1 * GIB, 10, 20)
ALL_FAST = "all fast"


def asked(tools: Tools, label: str) -> tuple[float, float]:
    """The factors of latency and bandwidth that a label stands for."""
    slow = tools.json(["tiers", "--tiers", f"emulated:{label}"], f"the tiers of {label}")["tiers"][-1]["emulation"]
    return slow["latency_factor"], slow["bandwidth_factor"]


def cells(samples: Samples, label: str, paper: float, wanted: float) -> list[object]:
    """The paper's factor, the one asked for, the one measured, and the spread of the latter."""
    spread = max(samples.spread(name, "kernel_seconds") for name in (label, ALL_FAST))
    return [f"{paper:.2f}", f"{wanted:.2f}", f"{samples.ratio(label, ALL_FAST, 'kernel_seconds'):.2f}", f"{spread:.1%}"]


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    """A row for each label."""
    factors = {label: asked(tools, label) for label in LABELS}
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        kernels = compiled("emulator/kernels.c", inside)
        ways = [Contender(label, tools.guided(everything(inside, "slow", *factors[label]))) for label in LABELS]
        ways.append(Contender(ALL_FAST, tools.guided(everything(inside, "fast", *factors["B:0.2,L:5"]))))
        latency, bandwidth = (interleave(kernel.program(kernels, options.quick), ways, options.rounds, options.limit, say)
                              for kernel in say.steps((CHASE, STREAM)))
    yield rows(factors, latency, bandwidth)


def rows(factors: dict[str, tuple[float, float]], latency: Samples, bandwidth: Samples) -> Table:
    made = Table("CoMerge's Table 1 (the preset measured): slow memory over fast memory",
                 ["emulated", "latency: paper", "asked", "measured", "spread", "bandwidth: paper", "asked", "measured", "spread"])
    for label, (nanoseconds, rate) in LABELS.items():
        of_latency, of_bandwidth = factors[label]
        made.row(label, *cells(latency, label, nanoseconds / FAST[0], of_latency), *cells(bandwidth, label, FAST[1] / rate, of_bandwidth))
    made.note(f"Processor time of {CHASE.label} (dependent loads) and of {STREAM.label} (a stream), all data slow over all data fast; the emulator's goal is "
              f"{WITHIN:.0%}. The paper's factors are those of its printed latencies and bandwidths over {FAST[0]} ns and {FAST[1]} GB/s.")
    made.note("A label with a share of the bandwidth asks for the factors that the paper measured, in hundredths; B:1,L:2 has no share, and asks for its "
              "own numbers.")
    return made
