"""The sites of a profile as a table."""
from ._command import ABSENT, command

# Columns of the table: names of the report's JSON, which gives their units (docs/formats.md).
COLUMNS = ["location", "kind", "accesses", "accesses_share", "served_by_caches", "peak_rss_bytes", "accesses_per_mib", "allocations",
           "requested_bytes"]


def sites(profile):
    """A pandas DataFrame of a profile: a row for each allocation site, the hottest by the byte first, with the site's id as index.

        isotherm.sites("app.iso").nlargest(5, "accesses")

    Needs pandas and the command line `isotherm`. Raises RuntimeError with the command line's reason where the profile cannot be read.
    """
    import pandas

    rows = report(profile)["sites"]
    return pandas.DataFrame(rows, columns=["site", *COLUMNS]).set_index("site")


def report(profile):
    """What `isotherm report --json` says of a profile."""
    # Here, so that a program that only names its data does not load them.
    import json
    import os
    import subprocess

    program = command()
    if program is None:
        raise RuntimeError(ABSENT)
    done = subprocess.run([program, "report", "--json", "--", os.fspath(profile)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)
