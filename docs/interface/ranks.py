"""Ranks of a graph whose low vertices have most links: arrays by name, one iteration profiled, then the hot parts moved."""
import sys

import numpy

import isotherm

LINKS, ITERATIONS, PRIME = 8, 10, 1000000007


def iterate(links, ranks, following):
    following[:] = numpy.arange(len(ranks))
    for k in range(LINKS):
        following += ranks[links[:, k]]
    following %= PRIME


n = 1 << int(sys.argv[1] if len(sys.argv) > 1 else 20)
x = numpy.arange(n * LINKS) * 2654435761 % 4294967296 * n // 4294967296
with isotherm.named("links"):
    links = (x * x // n).astype(numpy.int32).reshape(n, LINKS)
with isotherm.named("ranks"):
    ranks = numpy.ones(n, numpy.int64)
with isotherm.named("next"):
    following = numpy.empty(n, numpy.int64)

iterate(links, ranks, following)
with isotherm.profile():
    iterate(links, following, ranks)
moved = isotherm.optimize()
print(f"moved {moved.promoted_bytes} bytes to fast memory: {moved.status}")
for _ in range(2, ITERATIONS, 2):
    iterate(links, ranks, following)
    iterate(links, following, ranks)
print("checksum", int(ranks.sum() % PRIME))
