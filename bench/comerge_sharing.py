"""CoMerge's question: who gets the fast memory (section 4). Pairs and triples of sensitive programs, each policy, predicted and run.

    profiles --> colocate: plans of each policy --> colocate --run: alone with all data fast, alone by plan, together
                 (policies with the same plans share their runs)

Ours is measured in two forms: as it is, with the bound of fairness, and without (`--fairness none`). Where CoMerge's plan is unfair, no plan within
the bound may reach its sum, so that one form alone could not reach both goals.
"""
import dataclasses
import itertools
import os
import statistics
from collections.abc import Iterator

from comerge_programs import SHORT, TIERS, record, short
from measure import Problem, geometric_mean
from programs import ONE_THREAD
from table import Table
from tools import Tools

OURS, PUBLISHED = "least-slowdown by chunks", "comerge"
UNBOUNDED = "ours without fairness"
EQUAL = "equal-split"


@dataclasses.dataclass(frozen=True)
class Way:
    """A policy, what it shares, and its bound of fairness, as `--policy`, `--share` and `--fairness` name them."""

    policy: str
    share: str = "sites"
    fairness: str | None = None

    def flags(self) -> list[str]:
        return ["--policy", self.policy, "--share", self.share, *(["--fairness", self.fairness] if self.fairness else [])]


# The paper's policies share whole sites, as they were published. Beside ours the two between, which tell the policy's part of a gain from that of the chunks.
POLICIES = {EQUAL: Way(EQUAL), "proportional-split": Way("proportional-split"), "fair-merge": Way("fair-merge"), "blind-merge": Way("blind-merge"),
            PUBLISHED: Way("comerge"), "comerge-printed": Way("comerge-printed"), "comerge by chunks": Way("comerge", "chunks"), "least-slowdown": Way("least-slowdown"),
            OURS: Way("least-slowdown", "chunks"), UNBOUNDED: Way("least-slowdown", "chunks", "none")}
# Whose plans say which program is worst off.
WORST_OFF = [OURS, UNBOUNDED, PUBLISHED]
# What the paper's policies used of the fast memory in table 4 (XSBench, CLOMP, STREAM), and the slow-downs up to which figures 3 and 4 show.
TABLE_4 = {EQUAL: (0.59, 7.0), "proportional-split": (0.45, 6.0), "fair-merge": (0.87, 2.7), "blind-merge": (0.96, 2.6), PUBLISHED: (0.96, 2.6)}
# Fast memory: the paper's cases have from 40 to 80 % of what their programs need together.
FAST = "40%"
# The goals: ours over CoMerge on the geometric mean, and each program under ours over the same under equal split.
BETTER, WORST = 0.95, 1.25
# Rounds: each runs every program of every set some twenty times.
MAX_ROUNDS = 3
# With --quick.
QUICK_SETS = [("lookup", "stream")]
# Rounds from which ranges can tell one policy from another.
ENOUGH_ROUNDS = 3


@dataclasses.dataclass
class Outcome:
    """A policy for a set of programs."""

    used: float
    predicted: float
    # By round: the processor time of each program together with the others, in seconds.
    times: list[dict[str, float]] = dataclasses.field(default_factory=list)
    # By round: the same of each program alone by its plan.
    alone_times: list[dict[str, float]] = dataclasses.field(default_factory=list)
    # By round: the slow-down of each program, together and alone, once all times are known.
    rounds: list[dict[str, float]] = dataclasses.field(default_factory=list)
    alone: list[dict[str, float]] = dataclasses.field(default_factory=list)

    def compare(self, all_fast: dict[str, float]) -> None:
        """Takes the times over those alone with all data fast."""
        def over_all_fast(rounds: list[dict[str, float]]) -> list[dict[str, float]]:
            return [{name: seconds / all_fast[name] for name, seconds in times.items()} for times in rounds]

        self.rounds, self.alone = over_all_fast(self.times), over_all_fast(self.alone_times)

    def sums(self) -> list[float]:
        return [sum(slowdowns.values()) for slowdowns in self.rounds]

    def median(self) -> float:
        return statistics.median(self.sums())

    def of_program(self, name: str) -> float:
        return statistics.median(slowdowns[name] for slowdowns in self.rounds)

    def alone_of(self, name: str) -> float:
        return statistics.median(slowdowns[name] for slowdowns in self.alone)

    def is_above(self, other: "Outcome") -> bool:
        """Whether each round has a higher sum than each of the other's."""
        return min(self.sums()) > max(other.sums())


@dataclasses.dataclass(frozen=True)
class Shared:
    """A set of programs, with the outcome of each policy."""

    names: tuple[str, ...]
    outcomes: dict[str, Outcome]

    def title(self) -> str:
        return " + ".join(self.names)

    def over_published(self, policy: str) -> float:
        return self.outcomes[policy].median() / self.outcomes[PUBLISHED].median()

    def least_fair(self, policy: str = OURS) -> tuple[float, str]:
        """The program that loses most by a policy over what equal split gives it."""
        one, equal = self.outcomes[policy], self.outcomes[EQUAL]
        return max((one.of_program(name) / equal.of_program(name), name) for name in self.names)

    def worst(self, policy: str) -> tuple[float, str]:
        """The program that is slowed most."""
        return max((self.outcomes[policy].of_program(name), name) for name in self.names)


def colocate(tools: Tools, profiles: list[str], way: Way, fast: str, folder: str, limit: float, *more: str) -> dict:
    words = ["colocate", *profiles, "--tiers", TIERS, "--fast", fast, *way.flags(), "-o", folder, *more]
    return tools.json(words, f"sharing by {way.policy}", timeout=limit, env=dict(os.environ, **ONE_THREAD))


# Words of a plan's line that say what is placed where, without reasons and values.
PLACED = {"tier": None, "default": None, "site": 3, "part": 6}


def placements(folder: str, names: tuple[str, ...]) -> tuple:
    """What the plans place where, and in how much fast memory."""
    lines = []
    for name in names:
        with open(os.path.join(folder, f"{name}.plan"), encoding="utf-8") as file:
            words = [line.split() for line in file]
        lines += [(name, *words[:PLACED[words[0]]]) for words in words if words and words[0] in PLACED]
    return tuple(lines)


def evaluate(tools: Tools, names: tuple[str, ...], policies: list[str], fast: str, folder: str, options, say) -> Shared:
    """These policies for one set of programs, in turn."""
    profiles = [record(tools, short(tools, name, options), folder, options, say) for name in names]
    outcomes, runs = {}, {}
    for policy in policies:
        way = POLICIES[policy]
        printed = colocate(tools, profiles, way, fast, folder, options.limit)
        row = next(row for row in printed["policies"] if (row["policy"], row["shares"]) == (way.policy, way.share))
        outcomes[policy] = Outcome(row["utility"], sum(row["slowdowns"]))
        runs.setdefault(placements(folder, names), []).append(policy)
    all_fast = {name: [] for name in names}
    rounds = min(options.rounds, MAX_ROUNDS)
    for number in range(rounds):
        for place, same in enumerate(runs.values()):
            say(f"{' + '.join(names)}: round {number + 1} of {rounds}, plan {place + 1} of {len(runs)}: {', '.join(same)}")
            printed = colocate(tools, profiles, POLICIES[same[0]], fast, folder, options.limit * 4 * len(names), "--run", "--time-limit",
                               f"{options.limit:g}s")
            times = {times["program"]: times for times in printed["runs"]["programs"]}
            for name in names:
                all_fast[name].append(times[name]["all_fast_processor_seconds"])
            for policy in same:
                outcomes[policy].times.append({name: times[name]["together_processor_seconds"] for name in names})
                outcomes[policy].alone_times.append({name: times[name]["alone_processor_seconds"] for name in names})
    for outcome in outcomes.values():
        outcome.compare({name: statistics.median(seconds) for name, seconds in all_fast.items()})
    return Shared(names, outcomes)


def tables(tools: Tools, options, folder: str, say) -> Iterator[Table]:
    """A table for each set as soon as it was measured, then those of all sets."""
    sets = QUICK_SETS if options.quick else [names for size in (2, 3) for names in itertools.combinations(SHORT, size)]
    shared, problems = [], []
    for names in say.steps(sets):
        try:
            shared.append(evaluate(tools, names, list(POLICIES), FAST, folder, options, say))
        except Problem as problem:
            problems.append(str(problem))
        else:
            yield of_set(shared[-1])
    if shared:
        yield used(shared)
        yield summed(shared)
    if problems:
        raise Problem("; ".join(problems))


def used(shared: list[Shared]) -> Table:
    table = Table(f"Used share of the fast memory, {FAST} of all data (table 4)", ["programs", *POLICIES])
    for each in shared:
        table.row(each.title(), *[f"{each.outcomes[policy].used:.2f}" for policy in POLICIES])
    return table


def summed(shared: list[Shared]) -> Table:
    table = Table(f"Summed slow-down of programs that run together on {TIERS}, over each alone with all data fast (figures 3 and 4)",
                  ["programs", *POLICIES, "ours / CoMerge", "without fairness / CoMerge", "ours predicted",
                   *(f"worst-off by {policy}, over equal split" for policy in WORST_OFF)])
    for each in shared:
        table.row(each.title(), *[each.outcomes[policy].median() for policy in POLICIES], each.over_published(OURS), each.over_published(UNBOUNDED),
                  each.outcomes[OURS].predicted, *(in_words(each.least_fair(policy)) for policy in WORST_OFF))
    for policy in POLICIES:
        if policy not in (PUBLISHED, UNBOUNDED):
            in_paper = f" (the paper's worst slow-downs: {TABLE_4[policy][1]} over {TABLE_4[PUBLISHED][1]})" if policy in TABLE_4 else ""
            mean = geometric_mean([each.outcomes[PUBLISHED].median() / each.outcomes[policy].median() for each in shared])
            table.note(f"CoMerge over {policy}, geometric mean of the sums: {mean:.3f}{in_paper}.")
    add_goals(table, shared)
    for policy in ("comerge by chunks", "least-slowdown"):
        mean = geometric_mean([each.over_published(policy) for each in shared])
        table.note(f"{policy} over CoMerge, geometric mean: {mean:.3f}; ours is both, {OURS}.")
    table.note("Slow-downs of processor time, because there may be more programs than processors. Predictions are of each program alone. "
               "Times alone with all data fast are the median of all of a set.")
    return table


def cells(shared: Shared, policy: str) -> list[str]:
    """Slow-downs by a policy: the sum alone and together, and the worst-off program by two measures."""
    outcome = shared.outcomes[policy]
    return [f"{sum(outcome.alone_of(name) for name in shared.names):.2f}", f"{outcome.median():.2f}", in_words(shared.worst(policy)),
            in_words(shared.least_fair(policy))]


def in_words(worst: tuple[float, str]) -> str:
    factor, name = worst
    return f"{factor:.2f} ({name})"


CELLS = ["sum alone", "sum together", "worst-off", "worst-off over equal split"]


def of_set(shared: Shared) -> Table:
    rounds = len(shared.outcomes[OURS].rounds)
    table = Table(f"{shared.title()}: slow-downs by plan, alone (tiering) and together (figures 3 and 4), rounds: {rounds}",
                  ["policy", "used", *CELLS, "predicted sum"])
    for policy, outcome in shared.outcomes.items():
        table.row(policy, f"{outcome.used:.2f}", *cells(shared, policy), f"{outcome.predicted:.2f}")
    return table


def add_goals(table: Table, shared: list[Shared]) -> None:
    def goal(text: str, missed: list[Shared]) -> None:
        table.note(f"{text}: {'not reached by ' + '; '.join(each.title() for each in missed) if missed else 'reached'}.")

    def no_slower(better: str, other: str) -> None:
        text = f"Goal: {better} no slower than {other}, beyond the ranges of both"
        if min(len(each.outcomes[better].rounds) for each in shared) < ENOUGH_ROUNDS:
            medians = sum(each.outcomes[better].median() <= each.outcomes[other].median() for each in shared)
            table.note(f"{text}: fewer than {ENOUGH_ROUNDS} rounds tell no range; {medians} of {len(shared)} sets are not above it.")
        else:
            goal(text, [each for each in shared if each.outcomes[better].is_above(each.outcomes[other])])

    for policy in (EQUAL, "proportional-split", "blind-merge"):
        no_slower(PUBLISHED, policy)
    for policy in (OURS, UNBOUNDED):
        no_slower(policy, PUBLISHED)
        mean = geometric_mean([each.over_published(policy) for each in shared])
        table.goal(f"Goal: {policy}, at most {BETTER} of CoMerge on the geometric mean; {mean:.3f}", mean <= BETTER)
    def unfair(policy: str) -> list[Shared]:
        return [each for each in shared if each.least_fair(policy)[0] > WORST]

    goal(f"Goal: {OURS}, no program slowed more than {WORST} times what equal split gives it", unfair(OURS))
    for policy in (UNBOUNDED, PUBLISHED):
        if unfair(policy):
            table.note(f"No goal: {policy} slows a program more than {WORST} times what equal split gives it in {'; '.join(each.title() for each in unfair(policy))}.")
    if unfair(PUBLISHED):
        table.note(f"Where {PUBLISHED} does that, the bound may keep ours above its sum: each goal can then be reached only by a form of its own, the sum by {UNBOUNDED}.")
