"""Cold arrays made first, then a hot working set: filters, gathers and sums.

Prints integers, which do not depend on the order of additions or on the alignment of memory.
"""
import sys
import time

import numpy


def make_archive(count: int, seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).integers(0, 1 << 30, count, dtype=numpy.int64)


def make_working_set(count: int) -> numpy.ndarray:
    return numpy.arange(count, dtype=numpy.int64)


def make_index(count: int) -> numpy.ndarray:
    return numpy.random.default_rng(99).integers(0, count, count, dtype=numpy.int32)


def step(working: numpy.ndarray, index: numpy.ndarray, out: numpy.ndarray) -> None:
    numpy.take(working, index, out=out)
    numpy.multiply(out, 31, out=out)
    numpy.add(working, out, out=working)
    numpy.bitwise_and(working, (1 << 40) - 1, out=working)


def main() -> None:
    megabytes = int(sys.argv[1])
    cold_count = megabytes * 1024 * 1024 * 8 // 10 // 4 // 8
    hot_count = megabytes * 1024 * 1024 * 2 // 10 // 20
    archives = [make_archive(cold_count, seed) for seed in range(4)]
    working = make_working_set(hot_count)
    index = make_index(hot_count)
    out = numpy.empty(hot_count, dtype=numpy.int64)
    begin = time.monotonic()
    visited = 0
    for turn in range(80):
        step(working, index, out)
        if turn % 20 == 0:
            visited += int(archives[turn // 20 % 4][:65536].sum())
    seconds = time.monotonic() - begin
    print("numpy: sum", int(working.sum()), "visited", visited)
    print(f"kernel_seconds {seconds:.6f}", file=sys.stderr)


main()
