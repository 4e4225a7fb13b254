"""CoMerge's question: who gets the fast memory (section 4). Pairs and triples of sensitive programs, each policy, predicted and run.

    profiles --> colocate: plans of each policy --> colocate --run: alone with all data fast, alone by plan, together
                 (policies with the same plans share their runs)
"""
import dataclasses
import itertools
import json
import os
import statistics

from comerge_programs import TIERS, program
from measure import Contender, Problem, geometric_mean, run_once
from programs import ONE_THREAD
from table import Table
from tools import Tools, must

# Sensitive programs of all three kinds of the paper, short enough that a set of them runs often.
PROGRAMS = {"lookup": ["--lookups", "200000"], "zones": ["--cycles", "12"], "stream": ["--iterations", "6"], "jacobi-2d": ["--steps", "15"],
            "fdtd-2d": ["--steps", "10"]}
OURS, PUBLISHED = "least-slowdown", "comerge"
EQUAL = "equal-split"
# As `--policy` and `--share` name them: the paper's as they were published.
POLICIES = {EQUAL: "sites", "proportional-split": "sites", "fair-merge": "sites", "blind-merge": "sites", PUBLISHED: "sites", OURS: "chunks"}
# Fast memory: the paper's cases have from 40 to 80 % of what their programs need together.
FAST = "40%"
# The goals: ours over CoMerge on the geometric mean, and each program under ours over the same under equal split.
BETTER, WORST = 0.95, 1.25


@dataclasses.dataclass
class Outcome:
    """A policy for a set of programs."""

    used: float
    predicted: float
    # By round: the slow-down of each program.
    rounds: list[dict[str, float]] = dataclasses.field(default_factory=list)

    def sums(self) -> list[float]:
        return [sum(slowdowns.values()) for slowdowns in self.rounds]

    def median(self) -> float:
        return statistics.median(self.sums())

    def of_program(self, name: str) -> float:
        return statistics.median(slowdowns[name] for slowdowns in self.rounds)

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

    def gain(self) -> float:
        return self.outcomes[OURS].median() / self.outcomes[PUBLISHED].median()

    def least_fair(self) -> tuple[float, str]:
        """The program that loses most by ours over what equal split gives it."""
        ours, equal = self.outcomes[OURS], self.outcomes[EQUAL]
        return max((ours.of_program(name) / equal.of_program(name), name) for name in self.names)


def colocate(tools: Tools, profiles: list[str], policy: str, folder: str, limit: float, *more: str) -> dict:
    command = [tools.isotherm, "--quiet", "colocate", *profiles, "--tiers", TIERS, "--fast", FAST, "--policy", policy,
               "--share", POLICIES[policy], "--json", "-o", folder, *more]
    return json.loads(must(command, f"sharing by {policy}", timeout=limit, env=dict(os.environ, **ONE_THREAD)))


def placements(folder: str, names: tuple[str, ...]) -> tuple:
    """What the plans place where, without reasons and values."""
    lines = []
    for name in names:
        with open(os.path.join(folder, f"{name}.plan"), encoding="utf-8") as file:
            words = [line.split() for line in file]
        lines += [(name, *words[:6 if words[0] == "part" else 3]) for words in words if words and words[0] in ("site", "part")]
    return tuple(lines)


def evaluate(tools: Tools, names: tuple[str, ...], folder: str, options, say) -> Shared:
    """All policies for one set of programs, in turn."""
    profiles = [os.path.join(folder, f"{name}.iso") for name in names]
    outcomes, runs = {}, {}
    for policy in POLICIES:
        printed = colocate(tools, profiles, policy, folder, options.limit)
        row = next(row for row in printed["policies"] if (row["policy"], row["shares"]) == (policy, POLICIES[policy]))
        outcomes[policy] = Outcome(row["utility"], sum(row["slowdowns"]))
        runs.setdefault(placements(folder, names), []).append(policy)
    for number in range(options.rounds):
        for same in runs.values():
            say(f"{' + '.join(names)}: round {number + 1} of {options.rounds}: {', '.join(same)}")
            printed = colocate(tools, profiles, same[0], folder, options.limit * 2 * len(names), "--run")
            slowdowns = {times["program"]: times["together_seconds"] / times["all_fast_seconds"] for times in printed["runs"]["programs"]}
            for policy in same:
                outcomes[policy].rounds.append(slowdowns)
    return Shared(names, outcomes)


def record(tools: Tools, folder: str, options, say) -> None:
    for name, words in PROGRAMS.items():
        say(f"{name}: record")
        made = program(tools, name, words)
        run_once(made, Contender("record", tools.record(os.path.join(folder, f"{name}.iso"))), options.limit)


def tables(tools: Tools, options, folder: str, say) -> list[Table]:
    record(tools, folder, options, say)
    sets = [names for size in (2, 3) for names in itertools.combinations(PROGRAMS, size)]
    shared, problems = [], []
    for names in sets[::7] if options.quick else sets:
        try:
            shared.append(evaluate(tools, names, folder, options, say))
        except Problem as problem:
            problems.append(str(problem))
    made = [used(shared), summed(shared)] if shared else []
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
                  ["programs", *POLICIES, "ours / CoMerge", "ours predicted", "worst-off, over equal split"])
    for each in shared:
        factor, name = each.least_fair()
        table.row(each.title(), *[each.outcomes[policy].median() for policy in POLICIES], each.gain(), each.outcomes[OURS].predicted,
                  f"{factor:.2f} ({name})")
    for policy in POLICIES:
        if policy != PUBLISHED:
            mean = geometric_mean([each.outcomes[PUBLISHED].median() / each.outcomes[policy].median() for each in shared])
            table.note(f"CoMerge over {policy}, geometric mean of the sums: {mean:.3f}.")
    add_goals(table, shared)
    table.note("Ours: least-slowdown by chunks; the paper's policies share whole sites. Two programs have a processor each on a machine of two, three do not. "
               "Predictions are of each program alone.")
    return table


def add_goals(table: Table, shared: list[Shared]) -> None:
    def goal(text: str, missed: list[Shared]) -> None:
        table.note(f"{text}: {'not reached by ' + '; '.join(each.title() for each in missed) if missed else 'reached'}.")

    for policy in (EQUAL, "proportional-split", "blind-merge"):
        goal(f"Goal: CoMerge no slower than {policy}, beyond the ranges of both",
             [each for each in shared if each.outcomes[PUBLISHED].is_above(each.outcomes[policy])])
    goal("Goal: ours no slower than CoMerge, beyond the ranges of both",
         [each for each in shared if each.outcomes[OURS].is_above(each.outcomes[PUBLISHED])])
    mean = geometric_mean([each.gain() for each in shared])
    table.note(f"Goal: ours at most {BETTER} of CoMerge on the geometric mean; {mean:.3f}: {'reached' if mean <= BETTER else 'not reached'}.")
    goal(f"Goal: no program slowed more than {WORST} times what equal split gives it", [each for each in shared if each.least_fair()[0] > WORST])
