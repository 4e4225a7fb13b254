"""Section `emulated`: guided placement between first touch and all fast, on the emulated pair."""
import os

from measure import Contender, Program, geometric_mean, interleave, run_once
from table import Table
from tools import Tools, must, without_limit, without_sites

PLACEMENTS = ["all-slow", "first-touch", "thermos", "all-fast"]
FAST = "25%"


def programs(tools: Tools, quick: bool, graph_file: str | None) -> list[Program]:
    chosen = []
    if graph_file:
        chosen.append(Program("graph (web)", [*tools.workload("graph").command, "--input",
                                              os.path.abspath(graph_file), "--copies", "4"]))
    # 50 to 64 MiB each: the cost of the slow tier grows with the working set, and four times
    # the size takes sixteen times as long. About 2 s each with everything fast, half a second with --quick.
    work = 1 if quick else 4
    chosen += [
        tools.workload("graph", "--rmat", "17", "--iterations", str(250 * work)),
        tools.workload("triad", "--size", "64MiB", "--iterations", str(3000 * work)),
        tools.workload("gups", "--size", "64MiB", "--updates", str(60_000_000 * work)),
        tools.workload("stencil", "--size", "64MiB", "--iterations", str(1500 * work)),
    ]
    return chosen


def contenders(tools: Tools, program: Program, folder: str, seconds: float) -> tuple[list[Contender], str]:
    """One profile of a plain run and one plan from it; the bounds are that plan without its sites.

    First touch is then the default of the machine: memory is fast until the tier is full, in the
    order of the program's first touches.
    """
    stem = os.path.join(folder, program.name.replace(" ", "-"))
    run_once(program, Contender("record", tools.record(f"{stem}.iso")), seconds)
    guided = f"{stem}.thermos.plan"
    tools.plan(f"{stem}.iso", "thermos", FAST, guided)
    plans = {
        "all-slow": without_sites(guided, "slow"),
        "first-touch": without_sites(guided, "fast"),
        "thermos": guided,
        "all-fast": without_limit(without_sites(guided, "fast")),
    }
    return [Contender(name, tools.guided(plans[name])) for name in PLACEMENTS], share_of_bound(guided)


def share_of_bound(plan: str) -> str:
    """The plan's own figure: accesses that it serves fast over those of the fractional bound."""
    with open(plan, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if words[:1] == ["standing"]:
                values = dict(zip(words[1::2], (float(word) for word in words[2::2])))
                if values.get("bound"):
                    return f"{values['planned'] / values['bound']:.1%}"
    return "unknown"


def closed(first_touch: float, guided: float, all_fast: float) -> float:
    """Part of the gap between first touch and all fast."""
    gap = first_touch - all_fast
    return (first_touch - guided) / gap if gap > 0 else float("nan")


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    table = Table(f"Emulated pair, fast memory {FAST} of the footprint: seconds of the kernels (median)",
                  ["program", *PLACEMENTS, "spread", "gap closed", "plan / bound"])
    slowdowns: dict[str, list[float]] = {name: [] for name in PLACEMENTS}
    for program in programs(tools, options.quick, options.graph):
        ways, bound = contenders(tools, program, folder, options.limit)
        samples = interleave(program, ways, options.rounds, options.limit, say)
        medians = {way.name: samples.median(way.name, "kernel_seconds") for way in ways}
        for name in PLACEMENTS:
            slowdowns[name].append(samples.ratio(name, "all-fast", "kernel_seconds"))
        share = closed(medians["first-touch"], medians["thermos"], medians["all-fast"])
        spread = max(samples.spread(way.name, "kernel_seconds") for way in ways)
        table.row(program.name, *medians.values(), f"{spread:.1%}", f"{share:.0%}", bound)
    means = {name: geometric_mean(values) for name, values in slowdowns.items()}
    share = closed(means["first-touch"], means["thermos"], means["all-fast"])
    table.row("over all-fast, geometric mean", *means.values(), "", f"{share:.0%}", "")
    table.note("The slow tier is emulated: same memory, a thread is delayed at its own timer samples. Ratios between "
               "placements mean something, absolute times do not.")
    table.note("Promised: thermos closes at least half of the gap between first touch and all fast on the geometric "
               f"mean. Measured: {share:.0%}: {'reached' if share >= 0.5 else 'not reached'}.")
    table.note(must([tools.isotherm, "tiers", "--tiers", "emulated"], "asking for the tiers").split("\n\n")[0].strip())
    return [table]
