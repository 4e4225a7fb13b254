"""Section `emulated`: what a user gets from a plan: `isotherm record`, `plan` and `compare`, on the emulated pair.

    record --> plan, fast memory a quarter of the footprint --> compare: all slow, first touch, guided, all fast, in turn
"""
import dataclasses
import json
import os

from measure import Contender, Problem, Program, geometric_mean, run_once
from parts import tables_of_each
from programs import C, CPP, DEBIAN, FORTRAN, ONE_THREAD, build_ocean, kernel_source, named, variables
from table import Table
from tools import Tools, compiled, must

FAST = "25%"
# As `compare` names them in JSON.
ALL_SLOW, FIRST_TOUCH, GUIDED, ALL_FAST = PLACEMENTS = ["all_slow", "first_touch", "guided", "all_fast"]
# The goals: programs, the share of the gap on the geometric mean, and the error of each prediction.
PROGRAMS, CLOSED, PREDICTED = 12, 0.65, 0.10
# A plan that expects to save less than this of first touch has nothing to choose: all that is hot is one site.
CHOICE = 0.02
# Scripts whose program cannot run twice in one run of the script: redis-server's clients come once, sqlite3's file is made once.
WHOLE = {"redis", "sqlite"}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What `compare` printed of a program, and what its plan says of itself."""

    name: str
    printed: dict
    bound: str

    def least(self, placement: str) -> float:
        return self.printed["min_seconds"][placement]

    def most(self, placement: str) -> float:
        return self.printed["max_seconds"][placement]

    def ratio(self, placement: str) -> float:
        return self.least(placement) / self.least(ALL_FAST)

    def spread(self) -> float:
        """The range of the runs over the fastest, the larger of guided's and first touch's."""
        return max((self.most(way) - self.least(way)) / self.least(way) for way in (GUIDED, FIRST_TOUCH))

    def closed(self) -> float | None:
        """Part of the gap between first touch and all fast; None where it is no larger than the noise."""
        return None if self.printed["first_touch_within_noise_of_all_fast"] else self.printed["gap_closed"]

    def is_slower(self) -> bool:
        """Whether guided runs took longer than those by first touch, by more than noise."""
        return self.printed["guided_within_noise_of_first_touch"] is False and self.least(GUIDED) > self.least(FIRST_TOUCH)

    def predicted(self, placement: str) -> float | None:
        """What the plan expects of a placement, over all fast."""
        return (self.printed["expected_over_all_fast"] or {}).get(placement)

    def error(self) -> float | None:
        """The prediction of guided over all fast, over the measured one, less one."""
        return self.printed["prediction_error"]

    def is_predicted(self) -> bool:
        error = self.error()
        return error is not None and abs(error) <= PREDICTED

    def has_choice(self) -> bool:
        first, guided = self.predicted(FIRST_TOUCH), self.predicted(GUIDED)
        return first is None or guided is None or guided < (1 - CHOICE) * first

    def goals(self) -> str:
        """`reached`, or what was missed."""
        misses = ["slower than first touch"] * self.is_slower()
        misses += ["prediction missed" if self.error() is not None else "no prediction"] * (not self.is_predicted())
        return ", ".join(misses) or "reached"

    def row(self) -> list[object]:
        def shown(value: float | None, form: str, otherwise: str) -> str:
            return otherwise if value is None else format(value, form)

        return [self.name, *(self.least(way) for way in PLACEMENTS), f"{self.spread():.1%}", shown(self.closed(), ".0%", "no gap"),
                shown(self.predicted(GUIDED), ".3f", "none"), shown(self.error(), "+.1%", ""), self.bound, self.goals()]


def kernel(name: str, words: list[str], folder: str) -> Program:
    return Program(name, [compiled(kernel_source(name), folder, "-g"), *words], environment=ONE_THREAD)


def workload(tools: Tools, name: str, words: list[str]) -> Program:
    return dataclasses.replace(tools.workload(name, *words), environment=ONE_THREAD)


def script(tools: Tools, name: str, words: list[str]) -> Program:
    program = tools.script(name, **ONE_THREAD, **variables(words))
    return dataclasses.replace(program, is_script=name not in WHOLE)


def makers(tools: Tools, options, folder: str) -> dict:
    """How each program is built, by name."""
    made = {}
    for name, given in C.items():
        made[name] = lambda name=name, words=given.timed_words(options.quick): kernel(name, words, folder)
    for name, given in CPP.items():
        made[name] = lambda name=name, words=given.timed_words(options.quick): workload(tools, name, words)
    for name, given in FORTRAN.items():
        made[name] = lambda name=name, words=given.timed_words(options.quick): Program(
            name, [build_ocean(folder), *words], environment=ONE_THREAD)
    for name, given in DEBIAN.items():
        made[name] = lambda name=name, words=given.timed_words(options.quick): script(tools, name, words)
    made = named(made, options.program)
    if options.graph:
        words = ["--input", os.path.abspath(options.graph), "--copies", "4", "--threads", "1"]
        made["graph (web)"] = lambda: dataclasses.replace(workload(tools, "graph", words), name="graph (web)")
    return made


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


def compare(tools: Tools, program: Program, folder: str, options, say) -> Comparison:
    """One profile of a plain run, one plan from it, and the placements in turn."""
    stem = os.path.join(folder, program.name.replace(" ", "-"))
    profile, plan = f"{stem}.iso", f"{stem}.plan"
    say(f"{program.name}: record")
    run_once(program, Contender("record", tools.record(profile)), options.limit)
    tools.plan(profile, "thermos", FAST, plan)
    say(f"{program.name}: compare, {options.rounds} rounds")
    prefix = tools.compare(plan, options.rounds)
    printed = run_once(program, Contender("compare", prefix), options.limit * options.rounds * len(PLACEMENTS)).out.decode()
    try:
        # A script may print more behind it.
        comparison, _ = json.JSONDecoder().raw_decode(printed)
    except ValueError as error:
        raise Problem(f"{program.name}: compare printed no JSON: {error}: {printed[:200]!r}") from None
    return Comparison(program.name, comparison, share_of_bound(plan))


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    if options.rounds < 3:
        raise Problem(f"--rounds {options.rounds}: only three rounds and more tell a difference from noise")
    tiers = must([tools.isotherm, "tiers", "--tiers", "emulated"], "asking for the tiers").split("\n\n")[0].strip()
    return tables_of_each(makers(tools, options, folder).values(), lambda make: compare(tools, make(), folder, options, say),
                          lambda results: [summary(results, tiers)])


def closed_by(means: dict[str, float]) -> float:
    """Part of the gap between the geometric means of first touch and all fast."""
    gap = means[FIRST_TOUCH] - means[ALL_FAST]
    return (means[FIRST_TOUCH] - means[GUIDED]) / gap if gap > 0 else float("nan")


def mean_row(table: Table, name: str, results: list[Comparison]) -> float:
    """Adds a row of geometric means over all fast; returns the part of the gap that they close."""
    means = {way: geometric_mean([result.ratio(way) for result in results]) for way in PLACEMENTS}
    share = closed_by(means)
    table.row(name, *means.values(), "", f"{share:.0%}", *[""] * 4)
    return share


def summary(results: list[Comparison], tiers: str) -> Table:
    table = Table(f"Emulated pair, fast memory {FAST} of the footprint: seconds of whole runs (fastest)",
                  ["program", *(way.replace("_", " ") for way in PLACEMENTS), "spread", "gap closed", "predicted",
                   "prediction error", "plan / bound", "goals"])
    for result in results:
        table.row(*result.row())
    with_gap = [result for result in results if result.closed() is not None]
    mean_row(table, f"over all fast, geometric mean of {len(results)}", results)
    closed = mean_row(table, f"the same of the {len(with_gap)} with a gap", with_gap) if with_gap else float("nan")
    add_goals(table, results, len(with_gap), closed)
    add_bound(table, with_gap)
    table.note("Seconds are those of `isotherm compare`, from the start of a program to its end; of redis and sqlite the script "
               "counts, with the clients of redis, and of the other scripts the program alone. All have one thread where they can. "
               "Spread: the range of the runs over the fastest, the larger of guided's and first touch's. Predicted: guided over "
               "all fast by the plan. No gap: first touch and all fast differ by no more than noise, or first touch is no slower.")
    table.note("The slow tier is emulated: same memory, a thread is delayed at its own timer samples. Ratios between "
               "placements mean something, absolute times do not.")
    table.note(tiers)
    return table


def add_bound(table: Table, with_gap: list[Comparison]) -> None:
    """What the best placement could close: no policy serves more than the fractional bound."""
    bounds = [bound for bound in (result.predicted("bound") for result in with_gap) if bound is not None]
    if not with_gap or len(bounds) < len(with_gap):
        return
    first = geometric_mean([result.ratio(FIRST_TOUCH) for result in with_gap])
    share = (first - geometric_mean(bounds)) / (first - 1) if first > 1 else float("nan")
    table.note(f"A placement at the fractional bound of each program would close {share:.2f} of the same gap, by the plans' predictions; none can close more.")


def add_goals(table: Table, results: list[Comparison], with_gap: int, closed: float) -> None:
    def listed(names: list[str]) -> str:
        return f" ({', '.join(names)})" if names else ""

    slower = [result.name for result in results if result.is_slower()]
    missed = [result.name for result in results if not result.is_predicted()]
    table.goal(f"Goal: at least {PROGRAMS} programs. Measured: {len(results)}", len(results) >= PROGRAMS)
    table.goal(f"Goal: no program slower than by first touch beyond the noise. Slower: {len(slower)}{listed(slower)}", not slower)
    table.goal(f"Goal: of the gap between first touch and all fast at least {CLOSED} is closed, on the geometric means of programs with a "
               f"gap. Measured: {f'{closed:.2f}' if with_gap else 'no gap'}, {with_gap} programs", closed >= CLOSED)
    largest = max((result for result in results if result.error() is not None), key=lambda result: abs(result.error()), default=None)
    error = f", largest error {largest.error():+.1%} ({largest.name})" if largest else ""
    table.goal(f"Goal: predictions within {PREDICTED:.0%}. Measured: {len(results) - len(missed)} of {len(results)} are{error}", not missed)
    same = [result.name for result in results if not result.has_choice()]
    if same:
        table.note(f"Where the plan expects to save less than {CHOICE:.0%} of first touch's time, which counts all the same: {', '.join(same)}.")
