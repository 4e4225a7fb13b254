"""Sections that have parts: each prints its tables as soon as they are made, and `--part` runs some of them."""
import argparse
import sys
import time
from collections.abc import Callable, Iterator

from measure import Problem
from progress import Progress, in_words
from table import Table
from tools import Tools

# By name, in the order in which they run.
Parts = dict[str, Callable[[Tools, argparse.Namespace, str, Progress], Iterator[Table]]]


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
