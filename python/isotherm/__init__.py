"""Isotherm's interface for Python programs: names for arrays, profiles of phases, placement on request.

    import isotherm, numpy

    with isotherm.named("ranks"):
        ranks = numpy.zeros(1 << 24)
    with isotherm.profile():
        ranks = iterate(ranks)
    print(isotherm.optimize(share=0.2))

The functions are those of isotherm.h, called by ctypes. Without Isotherm's runtime (`isotherm run`) everything runs and every
status is Status.ABSENT. Mistakes raise Error, with and without the runtime: an array that is registered twice, a share above 1.

`isotherm.sites("app.iso")` is a profile's table of sites; in a notebook, `%load_ext isotherm` makes `%%isotherm` record a cell.
"""
from ._interface import (
    Outcome,
    Registration,
    Result,
    Statistics,
    hint,
    named,
    optimize,
    outcomes,
    profile,
    register,
    statistics,
    version,
)
from ._sites import sites
from ._status import Error, Reason, Status

__version__ = "0.1.0"

__all__ = [
    "Error",
    "Outcome",
    "Reason",
    "Registration",
    "Result",
    "Statistics",
    "Status",
    "hint",
    "load_ipython_extension",
    "named",
    "optimize",
    "outcomes",
    "profile",
    "register",
    "sites",
    "statistics",
    "version",
]


def load_ipython_extension(shell):
    """`%load_ext isotherm` in IPython and Jupyter: `%%isotherm` records a cell."""
    from ._notebook import record_cell

    shell.register_magic_function(record_cell, "cell", "isotherm")
