"""A control group with a limit of memory, of version 1 or 2, for one program. Needs root."""
import dataclasses
import itertools
import os
import sys
import time

from measure import TO_END, Problem
from tools import HERE

ROOT = "/sys/fs/cgroup"
ENTER = os.path.join(HERE, "compressed", "enter-group")
NUMBERS = itertools.count()


def own_path(controller: str) -> str | None:
    """This process's group in the hierarchy of a controller of version 1; that of version 2 has no name."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controller in controllers.split(",") or controller == controllers == "":
                return path
    return None


def remove(path: str) -> None:
    """Removes a group and those below it, once no program is in them: one that a signal ends takes a moment for that."""
    until = time.monotonic() + TO_END
    while True:
        try:
            for folder, _, _ in os.walk(path, topdown=False):
                os.rmdir(folder)
            return
        except OSError as error:
            if time.monotonic() > until:
                print(f"bench: the control group {path} stays: {error}", file=sys.stderr, flush=True)
                return
        time.sleep(0.05)


class MemoryGroup:
    """A new group, which is removed at the end, when its programs have ended."""

    def __init__(self, limit: float | None):
        self.limit = limit
        path = own_path("memory")
        self.is_old = path is not None
        # Whether `isotherm run` is in the group itself.
        self.has_tool = False
        name = f"isotherm-bench-{os.getpid()}-{next(NUMBERS)}"
        # Groups of version 2 have programs or groups below them, so that the new one is below the root.
        above = os.path.join(ROOT, "memory", path.lstrip("/")) if self.is_old else ROOT
        self.above, self.path = above, os.path.join(above, name)

    def __enter__(self) -> "MemoryGroup":
        try:
            if not self.is_old:
                self.write(os.path.join(self.above, "cgroup.subtree_control"), "+memory")
            os.mkdir(self.path)
            if self.limit is not None:
                self.write(os.path.join(self.path, "memory.limit_in_bytes" if self.is_old else "memory.high"), str(int(self.limit)))
        except OSError as error:
            remove(self.path)
            raise Problem(f"a control group with a limit of memory needs root: {error}") from None
        return self

    def __exit__(self, *_problem) -> None:
        remove(self.path)

    @staticmethod
    def write(path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def enter(self) -> list[str]:
        """Words before a program, which put it into the group."""
        return [ENTER, self.path]

    def look(self) -> "GroupLook | None":
        """Its programs' private memory, and the pages that they waited for because they were in swap. None while it has no program.

        `isotherm run` in a group of version 1 that is to have the kernel reclaim makes a group below it for its program; what is above is its own.
        """
        paths = self.below() if self.has_tool else [self.path]
        try:
            found = [statistics(path) for path in paths]
        except OSError:
            return None
        private = "rss" if self.is_old else "anon"
        return None if not found else GroupLook(sum(each[private] for each in found), sum(each["pgmajfault"] for each in found))

    def below(self) -> list[str]:
        with os.scandir(self.path) as entries:
            return [entry.path for entry in entries if entry.is_dir()]


@dataclasses.dataclass(frozen=True)
class GroupLook:
    """A group's programs at one time."""

    private: int
    refaults: int


def statistics(path: str) -> dict[str, int]:
    with open(os.path.join(path, "memory.stat"), encoding="utf-8") as file:
        return {name: int(value) for name, value in (line.split() for line in file)}
