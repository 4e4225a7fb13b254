"""Section `profile-build`: the slow-down of a program that counts its own loads and stores (isotherm-cc --profile)."""
import os

from measure import Contender, Program, interleave
from table import Table
from tools import HERE, ROOT, Tools, must, wrapper

SECONDS = "kernel_seconds"
PROMISED = 1.25
PERIOD = 1024
FILTER = "32KiB"


def build(name: str, folder: str) -> tuple[str, str]:
    """A workload as clang builds it and as a profile build, both of one thread."""
    source = os.path.join(ROOT, "workloads", name, f"{name}.cpp")
    plain, counting = (os.path.join(folder, f"{name}-{kind}") for kind in ("plain", "counting"))
    for compiler, output in ((["clang++-19"], plain), ([wrapper("isotherm-c++"), "--profile"], counting)):
        must([*compiler, "-O2", "-I", os.path.join(HERE, "serial"), "-o", output, source], f"building {output}")
    return plain, counting


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    table = Table("Profile build: seconds of the kernel, one thread (median; ratio to the plain build)",
                  ["program", "plain", "spread", "not recorded", "spread", "recorded", "spread", "filtered", "spread",
                   "ratio not recorded", "ratio recorded", "ratio filtered"])
    worst = 0.0
    for name, words in (("stencil", ["--iterations", "800"]), ("gups", ["--updates", "50000000"])):
        if options.quick:
            words[1] = str(int(words[1]) // 10)
        plain, counting = build(name, folder)
        record = [tools.isotherm, "--quiet", "record", "--force", "-o", os.path.join(folder, f"{name}.iso"),
                  "--source", "instrumented", "--period", str(PERIOD)]
        ways = [Contender("plain", [plain]), Contender("not recorded", [counting]),
                Contender("recorded", [*record, "--", counting]),
                Contender("filtered", [*record, "--cache-filter", FILTER, "--", counting])]
        program = Program(name, ["--threads", "1", *words], environment={})
        samples = interleave(program, ways, options.rounds, options.limit, say)
        cells = [cell for way in ways for cell in (f"{samples.median(way.name, SECONDS):.2f}",
                                                   f"{samples.spread(way.name, SECONDS):.1%}")]
        ratios = [samples.ratio(way.name, "plain", SECONDS) for way in ways[1:]]
        # A filter processes every access, and there is no promise for it.
        worst = max(worst, *ratios[:2])
        table.row(name, *cells, *ratios)
    table.note(f"Filtered: one in {PERIOD} of the accesses that miss a cache filter of {FILTER}.")
    table.goal(f"Promised: at most {PROMISED} at one access in {PERIOD}, unfiltered. Worst: {worst:.3f}", worst <= PROMISED)
    return [table]
