"""QEMU's user-mode emulation with the cache model of `truth/cache_plugin.c`: its command line and its output."""
import dataclasses
import os
import shutil

from measure import Problem
from tools import HERE, must

PLUGIN = "cache_plugin.so"
# Options of `isotherm record` that record the misses which the model adds to the session file.
RECORDED = ["--source", "instrumented", "--period", "1"]


@dataclasses.dataclass(frozen=True)
class Cache:
    """A set-associative cache with lines of 64 bytes."""

    bytes: int
    ways: int


def build(folder: str) -> None:
    """Compiles the plugin into a folder."""
    if not shutil.which("qemu-x86_64"):
        raise Problem("qemu-x86_64 is missing; apt-get install qemu-user")
    must(["cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", os.path.join(folder, PLUGIN),
          os.path.join(HERE, "truth", "cache_plugin.c")], "building the cache model")


def command(plugin: str, last: Cache, first: Cache | None = None, out: str | None = None, preload: str | None = None,
            prefetches: bool = False) -> list[str]:
    """Prefix that runs a program in the emulator; `preload` is a library for the program and not for the emulator."""
    words = f"{plugin},size={last.bytes},ways={last.ways}"
    if first:
        words += f",first={first.bytes},first_ways={first.ways}"
    if prefetches:
        words += ",prefetch=1"
    if out:
        words += f",out={out}"
    if preload:
        return [os.path.join(HERE, "truth", "emulate"), words, preload]
    return ["qemu-x86_64", "-plugin", words]


def read_misses(out: str) -> tuple[dict[int, int], dict[str, int]]:
    """The misses by the address of their page, and the totals."""
    by_page, totals = {}, {}
    with open(out, encoding="utf-8") as file:
        for words in map(str.split, file):
            if words[0] == "page":
                by_page[int(words[1])] = int(words[2])
            else:
                totals[words[0]] = int(words[1])
    return by_page, totals
