"""A table in memory as Python programs have it: rows of eight columns, of which the work reads two.

Usage: table.py ROWS ROUNDS. Prints sums, and the time of the work to standard error.
"""
import random
import sys
import time


def main() -> None:
    rows, rounds = int(sys.argv[1]), int(sys.argv[2])
    numbers = random.Random(1)
    columns = {"id": list(range(rows)), "group": [numbers.randrange(100) for _ in range(rows)],
               "amount": [numbers.random() for _ in range(rows)]}
    for name in ("name", "street", "town", "remark", "phone"):
        columns[name] = [f"{name} {row % 9973} of row {row}" for row in range(rows)]
    begin = time.monotonic()
    sums = [0.0] * 100
    for _ in range(rounds):
        for group, amount in zip(columns["group"], columns["amount"]):
            sums[group] += amount
    print(f"{sum(sums):.3f} {columns['remark'][rows // 2]}")
    print(f"kernel_seconds {time.monotonic() - begin:.6f}", file=sys.stderr)


main()
