"""Reads the profile ./app.iso with the module named in argv[1] and prints three sums.

The three must be what the Rust test computed from the same profile: accesses of the hottest site,
with its name and label; most resident bytes in one epoch; number of callers with a source line.
Then the query that docs/formats.md shows for this module is run as it stands there, and must agree.
"""
import glob
import pathlib
import re
import sys


def with_duckdb(path):
    import duckdb

    heat, sites, resident, frames = (
        f"'{path}/{name}'" for name in ("heat-*.parquet", "sites.parquet", "resident-*.parquet", "frames-*.parquet")
    )
    hottest = duckdb.sql(
        f"SELECT site, sum(accesses) AS accesses, any_value(label) FROM {heat} JOIN {sites} USING (site)"
        " GROUP BY site ORDER BY accesses DESC, site LIMIT 1"
    ).fetchall()[0]
    peak = duckdb.sql(f"SELECT max(b) FROM (SELECT sum(resident_bytes) AS b FROM {resident} GROUP BY epoch)").fetchall()[0]
    lines = duckdb.sql(f"SELECT count(line) FROM {frames}").fetchall()[0]
    return hottest, peak[0], lines[0]


def with_polars(path):
    import polars as pl

    heat = pl.scan_parquet(f"{path}/heat-*.parquet").group_by("site").agg(pl.col("accesses").sum())
    sites = pl.scan_parquet(f"{path}/sites.parquet")
    hottest = heat.join(sites, on="site").sort(["accesses", "site"], descending=[True, False]).collect()
    resident = pl.scan_parquet(f"{path}/resident-*.parquet")
    peak = resident.group_by("epoch").agg(pl.col("resident_bytes").sum()).collect()["resident_bytes"].max()
    lines = pl.scan_parquet(f"{path}/frames-*.parquet").select(pl.col("line").count()).collect().item()
    return hottest.select("site", "accesses", "label").row(0), peak, lines


def with_pandas(path):
    import pandas as pd

    def table(name):
        return pd.concat(map(pd.read_parquet, sorted(glob.glob(f"{path}/{name}"))))

    heat = table("heat-*.parquet").groupby("site", as_index=False)["accesses"].sum()
    sites = table("sites.parquet")
    hottest = heat.merge(sites, on="site").sort_values(["accesses", "site"], ascending=[False, True]).iloc[0]
    peak = table("resident-*.parquet").groupby("epoch")["resident_bytes"].sum().max()
    lines = table("frames-*.parquet")["line"].count()
    return (hottest["site"], hottest["accesses"], hottest["label"]), peak, lines


def documented(module):
    """The code block of docs/formats.md that uses this module."""
    page = pathlib.Path(__file__).resolve().parents[3] / "docs/formats.md"
    blocks = re.findall(r"```(?:sql|python)\n(.*?)```", page.read_text(), re.S)
    mark = {"duckdb": "SELECT", "polars": "import polars", "pandas": "import pandas"}[module]
    return next(block for block in blocks if mark in block)


def check_documentation(module, hottest, peak):
    block = documented(module)
    if module == "duckdb":
        import duckdb

        first = duckdb.sql(block).fetchall()[0]
        assert first[:3] == hottest, f"{first} is not {hottest}"
        return
    scope = {}
    exec(block, scope)
    answer = scope["answer"]
    if module == "polars":
        assert answer["resident_bytes"].max() == peak, answer
    else:
        heat = scope["table"]("app.iso/heat-*.parquet")
        sites = scope["callers"]["site"]
        assert answer.sum() == heat[heat["site"].isin(sites)]["accesses"].sum(), answer


READERS = {"duckdb": with_duckdb, "polars": with_polars, "pandas": with_pandas}

module = sys.argv[1]
try:
    __import__(module)
    if module == "pandas":
        __import__("pyarrow")
except ImportError as error:
    print(f"absent: {error}")
    sys.exit(0)
(site, accesses, label), peak, lines = READERS[module]("app.iso")
check_documentation(module, (site, accesses, label), peak)
print(f"{site}|{int(accesses)}|{label}|{int(peak)}|{int(lines)}")
