"""Says which step of a part of a section runs, and how long the others take at the speed of those before."""
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class Progress:
    """A part of a section; called with what runs now."""

    def __init__(self, say: Callable[[str], None], part: str):
        self.say, self.part = say, part
        self.done = self.total = 0
        self.begin = time.monotonic()

    def steps(self, items: Sequence[Item]) -> Iterator[Item]:
        """These items, each of which is a step. Steps of one part take about the same time."""
        self.done, self.total, self.begin = 0, len(items), time.monotonic()
        for item in items:
            yield item
            self.done += 1

    def took(self) -> str:
        return in_words(time.monotonic() - self.begin)

    def left(self) -> str:
        if not self.done:
            return ""
        return f", some {in_words((time.monotonic() - self.begin) / self.done * (self.total - self.done))} left"

    def __call__(self, text: str) -> None:
        self.say(f"{self.part}: {self.done + 1} of {self.total}{self.left()}: {text}" if self.total else f"{self.part}: {text}")
