"""Sections that measure several things, one of which may fail: parts, each of which prints its tables as soon as they are made and of which
`--part` runs some; and programs, whose results share tables."""
import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from measure import Problem
from progress import Progress, in_words
from table import Table
from tools import Tools

# By name, in the order in which they run.
Parts = dict[str, Callable[[Tools, argparse.Namespace, str, Progress], Iterator[Table]]]
Item, Result = TypeVar("Item"), TypeVar("Result")


def tables_of_each(items: Iterable[Item], measure: Callable[[Item], Result], tables: Callable[[list[Result]], list[Table]]) -> list[Table]:
    """Measures each item, and makes the tables of the results. One that fails ends neither the others nor the tables."""
    results, problems = [], []
    for item in items:
        try:
            results.append(measure(item))
        except Problem as problem:
            problems.append(str(problem))
    found = tables(results) if results else []
    if problems:
        raise Problem("; ".join(problems), found)
    return found


def of_section(parts: Parts, options) -> list[str]:
    """The names of --part that are parts of this section."""
    return [part for part in options.part or [] if part in parts]


def run_parts(section: str, parts: Parts, chosen: list[str], tools: Tools, options, folder: str, say) -> Iterator[Table]:
    """Runs the chosen parts. One that fails ends neither the others nor their tables."""
    problems = []
    for part in chosen:
        begin = time.monotonic()
        try:
            yield from parts[part](tools, options, folder, Progress(say, part))
        except Problem as problem:
            yield from problem.tables
            problems.append(f"{part}: {problem}")
        say("")
        print(f"bench: {section}, {part}: {in_words(time.monotonic() - begin)}", file=sys.stderr, flush=True)
    if problems:
        raise Problem("; ".join(problems))
