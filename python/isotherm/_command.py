"""The command line `isotherm` of this package."""
import pathlib
import shutil

# Of a wheel with programs; an installation of the modules alone uses the command on the path.
OWN = pathlib.Path(__file__).resolve().parent / "bin" / "isotherm"
ABSENT = "isotherm: the command line is neither in this package nor on the path; install a wheel with programs, or the .deb or .rpm"


def command():
    """The file of the command line; None without one."""
    return str(OWN) if OWN.is_file() else shutil.which("isotherm")
