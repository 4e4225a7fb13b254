"""Compiles programs that use the interface, and runs them without a runtime, under the stand-in and under `isotherm run`."""
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "interface"
PROGRAMS = ROOT / "docs" / "interface"
INCLUDE = ROOT / "include"
MODULE = INCLUDE / "fortran" / "isotherm.f90"
BUILD = ROOT / "build" / "interface"
VERSION = re.search(r"#define ISOTHERM_HEADER_VERSION (\d+)", (INCLUDE / "isotherm.h").read_text()).group(1)
# The compilers of a language: the command, its package, and the options that every file here passes.
CHECKS = ["-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{INCLUDE}"]
C = {"gcc": "gcc", "clang-19": "clang-19"}
CXX = {"g++": "g++", "clang++-19": "clang-19"}
FORTRAN = {"gfortran": "gfortran", "flang-new-19": "flang-19"}
LIMIT_SECONDS = 300


def must(command, **environment):
    """Runs a command that must succeed; returns its standard output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_SECONDS,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with status {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return done.stdout


def need(command, package):
    if not shutil.which(command):
        raise unittest.SkipTest(f"{command} is not installed (apt-get install {package})")


def isotherm():
    """The command line to test with, as `run --isotherm` says."""
    path = os.environ.get("ISOTHERM")
    if not path:
        raise unittest.SkipTest("run was not told a command line (--isotherm)")
    return path


@functools.cache
def python():
    """The interpreter with NumPy of setup/python, or this one if it has NumPy."""
    for each in (os.environ.get("ISOTHERM_PYTHON"), ROOT / "build/python/bin/python3", sys.executable):
        if each and os.path.exists(each) and subprocess.run([each, "-c", "import numpy"], capture_output=True).returncode == 0:
            return str(each)
    raise unittest.SkipTest("there is no Python with NumPy (setup/python)")


@functools.cache
def compiled(source, compiler, *options):
    """The program of a source file."""
    source = pathlib.Path(source)
    need(compiler, {**C, **CXX, **FORTRAN}[compiler])
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "-".join([source.name, compiler, *(option.strip("-").replace("=", "-").replace(",", "-") for option in options)])
    if compiler in FORTRAN:
        with tempfile.TemporaryDirectory() as modules:
            own = ["-J", modules, "-std=f2018", "-Wall", "-Wextra", "-Werror"] if compiler == "gfortran" else ["-module-dir", modules]
            must([compiler, "-O2", *own, *options, MODULE, source, "-o", program])
    else:
        must([compiler, *(["-std=c++17"] if compiler in CXX else ["-std=c99"]), *CHECKS, *options, source, "-pthread", "-o", program])
    return program


@functools.cache
def double():
    """The stand-in for the runtime (double.c), as a library."""
    BUILD.mkdir(parents=True, exist_ok=True)
    library = BUILD / "double.so"
    must(["gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread", f"-I{INCLUDE}", HERE / "double.c", "-o", library])
    return library


def under_double(command, **environment):
    """Runs a command under the stand-in; returns its output and the lines of the stand-in's log."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "log"
        log.touch()
        output = must(command, LD_PRELOAD=str(double()), DOUBLE_LOG=str(log), DOUBLE_SLEEP_MS="300", **environment)
        return output, log.read_text(encoding="utf-8").splitlines()


def under_isotherm(command):
    """Runs a command in an online run, with fast memory that does not hold everything."""
    return must([isotherm(), "-q", "run", "--tiers", "emulated:cxl", "--fast", "8MiB", "--", *command], **PYTHON)


PYTHON = {"PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
