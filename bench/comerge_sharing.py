"""CoMerge's question: who gets the fast memory (section 4). Pairs and triples of sensitive programs, each policy, predicted and run.

    profiles --> colocate: plans of each policy --> colocate --run: alone with all data fast, alone by plan, together
                 (policies with the same plans share their runs)
"""
import dataclasses
import itertools
import json
import os
import statistics

from comerge_programs import SHORT, TIERS, program
from measure import Contender, Problem, geometric_mean, run_once
from programs import ONE_THREAD
from table import Table
from tools import Tools, must

OURS, PUBLISHED = "least-slowdown by chunks", "comerge"
EQUAL = "equal-split"


@dataclasses.dataclass(frozen=True)
class Way:
    """A policy and what it shares, as `--policy` and `--share` name them."""

    policy: str
    share: str = "sites"


# The paper's policies share whole sites, as they were published. Beside ours the two between, which tell the policy's part of a gain from that of the chunks.
POLICIES = {EQUAL: Way(EQUAL), "proportional-split": Way("proportional-split"), "fair-merge": Way("fair-merge"), "blind-merge": Way("blind-merge"),
            PUBLISHED: Way("comerge"), "comerge-printed": Way("comerge-printed"), "comerge by chunks": Way("comerge", "chunks"), "least-slowdown": Way("least-slowdown"),
            OURS: Way("least-slowdown", "chunks")}
# What the paper's policies used of the fast memory in table 4 (XSBench, CLOMP, STREAM), and the slow-downs up to which figures 3 and 4 show.
TABLE_4 = {EQUAL: (0.59, 7.0), "proportional-split": (0.45, 6.0), "fair-merge": (0.87, 2.7), "blind-merge": (0.96, 2.6), PUBLISHED: (0.96, 2.6)}
# The cases of sections 4.1 and 4.2: the programs, their fast memory as a part of their data in the paper, and the used share by policy.
CASES = [(("lookup", "zones", "stream"), "73%", {policy: used for policy, (used, _) in TABLE_4.items()}),
         (("jacobi-2d", "fdtd-2d"), "80%", {EQUAL: 1.0, "proportional-split": 0.75}),
         (("doitgen", "fdtd-2d"), "80%", {EQUAL: 1.0, "proportional-split": 0.75}),
         (("jacobi-2d", "fdtd-2d"), "40%", {"fair-merge": 1.0, "blind-merge": 1.0}),
         (("jacobi-2d", "adi"), "40%", {"blind-merge": 1.0, PUBLISHED: 1.0})]
# Fast memory: the paper's cases have from 40 to 80 % of what their programs need together.
FAST = "40%"
# The goals: ours over CoMerge on the geometric mean, and each program under ours over the same under equal split.
BETTER, WORST = 0.95, 1.25
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
    command = [tools.isotherm, "--quiet", "colocate", *profiles, "--tiers", TIERS, "--fast", fast, "--policy", way.policy,
               "--share", way.share, "--json", "-o", folder, *more]
    return json.loads(must(command, f"sharing by {way.policy}", timeout=limit, env=dict(os.environ, **ONE_THREAD)))


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
    profiles = [os.path.join(folder, f"{name}.iso") for name in names]
    outcomes, runs = {}, {}
    for policy in policies:
        way = POLICIES[policy]
        printed = colocate(tools, profiles, way, fast, folder, options.limit)
        row = next(row for row in printed["policies"] if (row["policy"], row["shares"]) == (way.policy, way.share))
        outcomes[policy] = Outcome(row["utility"], sum(row["slowdowns"]))
        runs.setdefault(placements(folder, names), []).append(policy)
    all_fast = {name: [] for name in names}
    for number in range(options.rounds):
        for same in runs.values():
            say(f"{' + '.join(names)}: round {number + 1} of {options.rounds}: {', '.join(same)}")
            printed = colocate(tools, profiles, POLICIES[same[0]], fast, folder, options.limit * 2 * len(names), "--run")
            times = {times["program"]: times for times in printed["runs"]["programs"]}
            for name in names:
                all_fast[name].append(times[name]["all_fast_processor_seconds"])
            for policy in same:
                outcomes[policy].times.append({name: times[name]["together_processor_seconds"] for name in names})
                outcomes[policy].alone_times.append({name: times[name]["alone_processor_seconds"] for name in names})
    for outcome in outcomes.values():
        outcome.compare({name: statistics.median(seconds) for name, seconds in all_fast.items()})
    return Shared(names, outcomes)


def record(tools: Tools, folder: str, options, say) -> None:
    for name in dict.fromkeys([*SHORT, *(name for names, _, _ in CASES for name in names)]):
        say(f"{name}: record")
        made = program(tools, name, SHORT.get(name, []))
        run_once(made, Contender("record", tools.record(os.path.join(folder, f"{name}.iso"))), options.limit)


def tables(tools: Tools, options, folder: str, say) -> list[Table]:
    record(tools, folder, options, say)
    sets = [names for size in (2, 3) for names in itertools.combinations(SHORT, size)]
    shared, problems = [], []
    for names in sets[::7] if options.quick else sets:
        try:
            shared.append(evaluate(tools, names, list(POLICIES), FAST, folder, options, say))
        except Problem as problem:
            problems.append(str(problem))
    made = [used(shared), summed(shared), alone_and_together(shared)] if shared else []
    compared = []
    for names, fast, paper in CASES[::4] if options.quick else CASES:
        try:
            # Equal split first: the slow-downs of the others are divided by its own.
            wanted = list(dict.fromkeys([EQUAL, *paper, OURS]))
            compared.append((evaluate(tools, names, wanted, fast, folder, options, say), fast, paper))
        except Problem as problem:
            problems.append(str(problem))
    made += [cases(compared)] if compared else []
    if problems:
        raise Problem("; ".join(problems), made)
    return made


def used(shared: list[Shared]) -> Table:
    table = Table(f"Used share of the fast memory, {FAST} of all data (table 4)", ["programs", *POLICIES])
    for each in shared:
        table.row(each.title(), *[f"{each.outcomes[policy].used:.2f}" for policy in POLICIES])
    return table


def summed(shared: list[Shared]) -> Table:
    table = Table(f"Summed slow-down of programs that run together on {TIERS}, over each alone with all data fast (figures 3 and 4)",
                  ["programs", *POLICIES, "ours / CoMerge", "ours predicted", "worst-off by ours, over equal split"])
    for each in shared:
        factor, name = each.least_fair()
        table.row(each.title(), *[each.outcomes[policy].median() for policy in POLICIES], each.over_published(OURS), each.outcomes[OURS].predicted,
                  f"{factor:.2f} ({name})")
    for policy in POLICIES:
        if policy != PUBLISHED:
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
    (worst, slowest), (over, unfair) = shared.worst(policy), shared.least_fair(policy)
    return [f"{sum(outcome.alone_of(name) for name in shared.names):.2f}", f"{outcome.median():.2f}", f"{worst:.2f} ({slowest})",
            f"{over:.2f} ({unfair})"]


CELLS = ["sum alone", "sum together", "worst-off", "worst-off over equal split"]


def alone_and_together(shared: list[Shared]) -> Table:
    table = Table("Slow-downs by plan, alone (tiering) and together with the others (figures 3 and 4)", ["programs", "policy", *CELLS, "predicted sum"])
    for each in shared:
        for policy in POLICIES:
            table.row(each.title(), policy, *cells(each, policy), f"{each.outcomes[policy].predicted:.2f}")
    return table


def cases(compared: list[tuple[Shared, str, dict[str, float]]]) -> Table:
    table = Table("The cases of sections 4.1 and 4.2", ["programs", "fast", "policy", "used", "in the paper", *CELLS])
    for shared, fast, paper in compared:
        for policy, outcome in shared.outcomes.items():
            table.row(shared.title(), fast, policy, f"{outcome.used:.2f}", f"{paper[policy]:.2f}" if policy in paper else "", *cells(shared, policy))
    table.note("In the paper's figures 3 and 4 the three programs of the first case are slowed " +
               ", ".join(f"up to {most} by {policy}" for policy, (_, most) in TABLE_4.items()) + ".")
    table.note("Fast memory is the paper's part of the programs' data; objects have other sizes here, so another number of them fits.")
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
    no_slower(OURS, PUBLISHED)
    mean = geometric_mean([each.over_published(OURS) for each in shared])
    table.note(f"Goal: ours at most {BETTER} of CoMerge on the geometric mean; {mean:.3f}: {'reached' if mean <= BETTER else 'not reached'}.")
    goal(f"Goal: no program slowed more than {WORST} times what equal split gives it", [each for each in shared if each.least_fair()[0] > WORST])
