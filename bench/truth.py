"""Section `truth`: each source's heat beside the misses of a cache model, for the same program and the same input.

    program in the emulator --> misses by page  --> profile: the truth    \
                                                                            > what share of the misses does the choice capture?
    program on the machine  --> samples, counts --> profile of each source /
"""
import dataclasses
import json
import os

import cache_model
from measure import Contender, Problem, Program, geometric_mean, run_once
from parts import tables_of_each
from table import Table
from tools import HERE, ROOT, Tools, must
from truth_programs import Built, programs

# The first cache of the model; the last one has `--cache` MiB.
FIRST = cache_model.Cache(48 << 10, 12)
LAST_WAYS = 16
# The profile build's own filter is direct-mapped, and this large at most.
FILTER = "1MiB"
# Samples of the timer a second, so that a run of a second has some thousand.
FREQUENCY = 8000
# One access in this many is sampled by the profile build: of all accesses, and of those that miss its filter.
PERIOD, FILTERED_PERIOD = 1024, 64
# Fast memory is the footprint divided by each of these.
PARTS = [4, 8, 16]
TRUTH = "truth"
TIMER, NO_ESTIMATE, INSTRUMENTED, FILTERED = "timer", "timer, no estimate", "instrumented", "filtered"
SOURCES = [TIMER, NO_ESTIMATE, INSTRUMENTED, FILTERED]
EACH, MEAN = 0.90, {TIMER: 0.95, INSTRUMENTED: 0.97, FILTERED: 0.97}
# Chunks are compared where sites with this share of the misses have the same memory in both runs.
JOINED = 0.9
READER = os.path.join(ROOT, "build", "python", "bin", "python3")


@dataclasses.dataclass
class Heat:
    """What a profile says."""

    # By site: heat, and most bytes resident.
    sites: dict[str, tuple[int, int]]
    footprint: int
    everywhere: int
    usable: int
    # By site: the sizes of its extents, and heat by the number of the chunk in them.
    extents: dict[str, list[int]]
    chunks: dict[str, dict[int, int]]
    chunk_bytes: int


def read(tools: Tools, profile: str) -> Heat:
    report = tools.report(profile)
    if not os.path.isfile(READER):
        raise Problem(f"there is no {READER}; run setup/python")
    chunks = json.loads(must([READER, os.path.join(HERE, "truth", "chunks.py"), profile], "reading the chunks of a profile"))
    totals = report["totals"]
    return Heat(
        sites={site["site"]: (site["accesses"], site["peak_rss_bytes"]) for site in report["sites"]},
        footprint=totals["footprint_bytes"],
        everywhere=totals["accesses"] + totals["unattributed_accesses"],
        usable=sum(source["usable_samples"] for source in report["sources"] if source["name"] in ("timer", "instrumented")),
        extents=chunks["extents"],
        chunks={site: {int(place): heat for place, heat in of_site.items()} for site, of_site in chunks["chunks"].items()},
        chunk_bytes=chunks["chunk_bytes"],
    )


def captured(misses: dict, sizes: dict, heat: dict, capacity: int) -> float:
    """Misses in the items that are chosen by heat per byte until the capacity is full.

    The last item is chosen in part, and of equally hot items each has an equal part: what a choice at random among them
    captures on average.
    """
    by_density: dict[float, list] = {}
    for item, size in sizes.items():
        by_density.setdefault(heat.get(item, 0) / size, []).append(item)
    sum_misses = 0.0
    for density in sorted(by_density, reverse=True):
        size = sum(sizes[item] for item in by_density[density])
        part = min(1.0, capacity / size)
        sum_misses += part * sum(misses.get(item, 0) for item in by_density[density])
        capacity -= part * size
        if part < 1.0:
            break
    return sum_misses


def shares(misses: dict, sizes: dict, heat: dict, footprint: int) -> list[float]:
    """For each capacity, what the choice by heat captures of what the choice by misses does."""
    return [captured(misses, sizes, heat, footprint // part) / captured(misses, sizes, misses, footprint // part)
            for part in PARTS]


def by_site(truth: Heat, source: Heat) -> list[float]:
    misses = {site: heat for site, (heat, _) in truth.sites.items()}
    sizes = {site: max(size, 4096) for site, (_, size) in truth.sites.items()}
    return shares(misses, sizes, {site: heat for site, (heat, _) in source.sites.items()}, truth.footprint)


def joined_sites(truth: Heat, source: Heat) -> set[str]:
    """The sites whose memory has the same shape in both runs: chunks of equal place are the same data."""
    return {site for site, sizes in truth.extents.items() if source.extents.get(site) == sizes}


def by_chunk(truth: Heat, source: Heat) -> tuple[list[float] | None, float]:
    """The shares, and the part of the misses at sites that both runs have in the same shape."""
    joined = joined_sites(truth, source)

    def items(heat: Heat) -> dict:
        return {(site, place): count for site in joined for place, count in heat.chunks.get(site, {}).items()}

    misses, heat = items(truth), items(source)
    everywhere = sum(sum(of_site.values()) for of_site in truth.chunks.values())
    part = sum(misses.values()) / max(everywhere, 1)
    if part < JOINED:
        return None, part
    sizes = dict.fromkeys(misses.keys() | heat.keys(), truth.chunk_bytes)
    return shares(misses, sizes, heat, len(sizes) * truth.chunk_bytes), part


@dataclasses.dataclass
class Result:
    """The truth of a program, and the heat of each source that it was recorded with."""

    truth: Heat
    sources: dict[str, Heat]


def ways(tools: Tools, built: Built, last: cache_model.Cache, folder: str, prefetches: bool) -> list[tuple[str, Program, list[str]]]:
    """The runs: their names, the program, and the options of `isotherm record`. The first one is the truth."""
    timer = ["--source", "timer", "--frequency", str(FREQUENCY), "--cache"]
    counting = ["--source", "instrumented", "--period"]
    plugin = os.path.join(folder, cache_model.PLUGIN)
    emulated = cache_model.command(plugin, last, FIRST, preload=tools.library, prefetches=prefetches)
    made = [
        (TRUTH, built.program, [*cache_model.RECORDED, "--", *emulated]),
        (TIMER, built.program, [*timer, f"{last.bytes}B", "--"]),
        (NO_ESTIMATE, built.program, [*timer, "0B", "--"]),
    ]
    if built.counting:
        made += [(INSTRUMENTED, built.counting, [*counting, str(PERIOD), "--"]),
                 (FILTERED, built.counting, [*counting, str(FILTERED_PERIOD), "--cache-filter", FILTER, "--"])]
    return made


def profile_of(folder: str, program: Program, way: str) -> str:
    return os.path.join(folder, f"{program.name}-{way}.iso".replace(", ", "-").replace(" ", "-"))


def observe(tools: Tools, built: Built, last: cache_model.Cache, folder: str, options, say) -> Result:
    """Runs a program in the emulator and by each source. All runs must print the same."""
    heats, printed = {}, None
    for way, program, words in ways(tools, built, last, folder, options.prefetch):
        say(f"{program.name}: {way}")
        profile = profile_of(folder, program, way)
        run = run_once(program, Contender(way, [*tools.record(profile)[:-1], *words]), options.limit)
        printed = printed or run.out
        if run.out != printed:
            raise Problem(f"{program.name}, {way}: printed {run.out[:200]!r}, and in the emulator {printed[:200]!r}")
        heats[way] = read(tools, profile)
    truth = heats.pop(TRUTH)
    if not any(misses for misses, _ in truth.sites.values()):
        raise Problem(f"{built.program.name}: no site has a miss in the emulator")
    return Result(truth, heats)


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    cache_model.build(folder)
    last = cache_model.Cache(options.cache << 20, LAST_WAYS)
    def tables(observed: list[tuple[str, Result]]) -> list[Table]:
        results = dict(observed)
        return [overview(results, last, options.prefetch), sites_table(results), chunks_table(results)]

    return tables_of_each(programs(tools, folder, options.program),
                          lambda built: (built.program.name, observe(tools, built, last, folder, options, say)), tables)


def overview(results: dict[str, Result], last: cache_model.Cache, prefetches: bool) -> Table:
    prefetcher = ", with a stream prefetcher" if prefetches else ""
    made = Table(f"The programs: misses of a last cache of {last.bytes >> 20} MiB, {last.ways} ways, behind a first one of "
                 f"{FIRST.bytes >> 10} KiB, {FIRST.ways} ways{prefetcher}",
                 ["program", "footprint MiB", "million misses", "at sites", *(f"samples, {source}" for source in SOURCES)])
    for name, result in results.items():
        truth = result.truth
        at_sites = sum(misses for misses, _ in truth.sites.values())
        samples = [f"{result.sources[source].usable}" if source in result.sources else "" for source in SOURCES]
        made.row(name, f"{truth.footprint / 2**20:.1f}", f"{truth.everywhere / 1e6:.2f}", f"{at_sites / truth.everywhere:.0%}", *samples)
    made.note("At sites: the share of the misses that fall on data which a plan can place; the others are at stacks, program data and "
              "libraries. Samples: those with a data address.")
    return made


def scored(title: str, results: dict[str, Result], score, columns: list[str]) -> Table:
    """A row a program, with what each source's choice captures, the means, and the promises."""
    made = Table(title, ["program", *columns, *(f"{source} 1/{part}" if part == PARTS[0] else f"1/{part}"
                                              for source in SOURCES for part in PARTS)])
    by_source: dict[str, list[list[float]]] = {source: [] for source in SOURCES}
    below = []
    for name, result in results.items():
        cells, others = [], []
        for source in SOURCES:
            captures, others = score(result, source) if source in result.sources else (None, others)
            cells += [f"{share:.2f}" for share in captures] if captures else [""] * len(PARTS)
            if captures:
                by_source[source].append(captures)
                if source == TIMER and captures[0] < EACH:
                    below.append(f"{name} {captures[0]:.2f}")
        made.row(name, *others, *cells)
    means = {source: [geometric_mean([max(row[n], 1e-3) for row in rows]) for n in range(len(PARTS))]
             for source, rows in by_source.items() if rows}
    made.row("geometric mean", *[""] * len(columns), *(f"{share:.2f}" for source in SOURCES
                                                        for share in means.get(source, [])))
    made.goal(f"Promised: {TIMER}, at 1/{PARTS[0]}, at least {EACH:.2f} of each program. Below: {', '.join(below) or 'none'}", not below)
    for source, promised in MEAN.items():
        if source in means:
            mean = means[source][0]
            made.goal(f"Promised: {source}, at 1/{PARTS[0]}, {promised:.2f} on the geometric mean. Measured: {mean:.3f}", mean >= promised)
    return made


def sites_table(results: dict[str, Result]) -> Table:
    made = scored("By site: misses captured by the choice of each source, of those that the best choice captures", results,
                  lambda result, source: (by_site(result.truth, result.sources[source]), []), [])
    made.note("A fourth, an eighth or a sixteenth of the footprint is fast; sites are taken by heat per resident byte, the last one in part.")
    return made


def chunks_table(results: dict[str, Result]) -> Table:
    def score(result: Result, source: str) -> tuple[list[float] | None, list[str]]:
        captures, joined = by_chunk(result.truth, result.sources[source])
        return captures, [f"{joined:.0%}"]

    made = scored("By chunk of 64 KiB: the same", results, score, ["joined"])
    made.note(f"Joined: the share of the misses at sites that have extents of the same sizes in both runs, in the order of addresses. Where it is below "
              f"{JOINED:.0%} chunks of the two runs cannot be compared, and the row is empty.")
    return made
