"""The cell magic `%%isotherm` of IPython and Jupyter: a cell as a program of its own, recorded."""
import argparse
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

from ._command import ABSENT, command
from ._sites import sites

# Where the profile of a cell goes without -o.
PROFILE = "cell.iso"
# Status of the command line where an interrupt ended the program; the profile holds what it did until then.
INTERRUPTED = -signal.SIGINT


def record_cell(line, cell):
    """Records a cell: `%%isotherm [flags of isotherm record]`.

    The cell runs as a script of this interpreter in a process of its own, so that it has its own memory: it neither sees the notebook's variables
    nor changes them. Its output appears below the cell; the sites of the profile (`cell.iso`, or as -o says) are the cell's value.
    """
    program = command()
    if program is None:
        raise RuntimeError(ABSENT)
    profile, flags = arguments(line)
    with tempfile.TemporaryDirectory(prefix="isotherm-") as folder:
        script = pathlib.Path(folder, "cell.py")
        script.write_text(cell, encoding="utf-8")
        status = run([program, "record", *flags, "--", sys.executable, str(script)])
    if status not in (0, INTERRUPTED):
        raise RuntimeError(f"isotherm record ended with status {status}; its message is above")
    return sites(profile)


def arguments(line):
    """The file for the profile, and the flags of `isotherm record` that write it; the default file is replaced."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output")
    named, flags = parser.parse_known_args(shlex.split(line))
    own = [] if named.output else ["--force"]
    profile = named.output or PROFILE
    return profile, [*flags, *own, "--output", profile]


def run(words):
    """Runs a command and prints its output as it comes; returns its status.

    An interrupt reaches the recorded program as well, which has the notebook's process group; a second one ends it.
    """
    paths = [os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, errors="replace",
                          env=environment) as process:
        try:
            print_output(process)
        except KeyboardInterrupt:
            try:
                print_output(process)
            except KeyboardInterrupt:
                process.terminate()
                raise
        return process.wait()


def print_output(process):
    """Prints what a process writes, to its end."""
    for text in process.stdout:
        print(text, end="", flush=True)
