"""Prints the heat of a profile by site and chunk, as JSON. Run by the Python that `setup/python` makes.

    build/python/bin/python3 bench/truth/chunks.py app.iso

Of the process with most heat: for each site the sizes of its extents in the order of their addresses, and the heat of its
chunks by their place in these extents, laid end to end. So equal data of two runs has equal names, whatever the addresses.
"""
import bisect
import glob
import json
import sys

import duckdb


def table(profile: str, name: str, columns: str) -> list[tuple]:
    # A table without rows has no file.
    if not glob.glob(f"{profile}/{name}.parquet"):
        return []
    return duckdb.sql(f"SELECT {columns} FROM '{profile}/{name}.parquet'").fetchall()


def main(profile: str) -> None:
    chunk = next(int(value) for key, value in table(profile, "meta", "key, value") if key == "chunk_bytes")
    heat = table(profile, "heat-*", "pid, image, site, address, accesses")
    by_process: dict[tuple, int] = {}
    for pid, image, _, _, accesses in heat:
        by_process[pid, image] = by_process.get((pid, image), 0) + accesses
    hottest = max(by_process, key=by_process.get, default=None)
    extents: dict[str, list[tuple[int, int]]] = {}
    for pid, image, site, address, size in table(profile, "extents", "pid, image, site, address, size_bytes"):
        if (pid, image) == hottest:
            extents.setdefault(site, []).append((address, size))
    # By site, for each extent: its first address, and the number of chunks before it.
    begins: dict[str, tuple[list[int], list[int]]] = {}
    for site, ranges in extents.items():
        ranges.sort()
        before, sum_before = [], 0
        for address, size in ranges:
            before.append(sum_before)
            sum_before += -(-(address % chunk + size) // chunk)
        begins[site] = ([address for address, _ in ranges], before)
    chunks: dict[str, dict[int, int]] = {}
    astray = 0
    for pid, image, site, address, accesses in heat:
        if (pid, image) != hottest or site == "unattributed":
            continue
        firsts, before = begins.get(site, ([], []))
        # The chunk of an extent's begin may begin before it.
        number = bisect.bisect_right(firsts, address + chunk - 1) - 1
        if number < 0 or address >= firsts[number] + extents[site][number][1]:
            astray += accesses
            continue
        place = before[number] + (address - firsts[number] // chunk * chunk) // chunk
        of_site = chunks.setdefault(site, {})
        of_site[place] = of_site.get(place, 0) + accesses
    sizes = {site: [size for _, size in ranges] for site, ranges in extents.items()}
    json.dump({"chunk_bytes": chunk, "extents": sizes, "chunks": chunks, "astray": astray}, sys.stdout)


main(sys.argv[1])
