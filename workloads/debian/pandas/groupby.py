"""Imports pandas, and groups rows by two columns unless there are none to group."""
import sys
import time

try:
    import numpy
    import pandas
except ImportError as missing:
    print(f"pandas/run.sh: {sys.executable}: {missing}; run setup/python", file=sys.stderr)
    sys.exit(3)

rows = int(sys.argv[1])
begun = time.perf_counter()
random = numpy.random.default_rng(1)
frame = pandas.DataFrame({
    "key": random.integers(0, 100_000, rows),
    "word": random.integers(0, 50, rows).astype(str),
    "value": random.integers(0, 1_000, rows),
})
groups = frame.groupby(["key", "word"]).value.sum()
print(f"kernel_seconds {time.perf_counter() - begun:.3f}", file=sys.stderr)
print(len(groups), int(groups.sum()))
