"""The programs of the section `truth`: workloads, kernels in C, and programs from Debian, with inputs that the emulator can
run in a minute. All run with one thread where they can, so that two runs allocate in the same order."""
import dataclasses
import glob
import os

from measure import Problem, Program
from tools import HERE, ROOT, Tools, must

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
# Workloads and their inputs; those from `graph` to `patterns` are in C++.
WORKLOADS = {
    "graph": ["--rmat", "18", "--iterations", "30", "--roots", "2", "--threads", "1"],
    "triad": ["--size", "192MiB", "--iterations", "120", "--threads", "1"],
    "gups": ["--size", "192MiB", "--updates", "15000000", "--threads", "1"],
    "stencil": ["--size", "192MiB", "--iterations", "80", "--threads", "1"],
    "larson": ["--threads", "1", "--blocks", "150000", "--rounds", "4", "--replacements", "400000"],
    "xmalloc": ["--batch", "65536", "--batches", "40"],
    "context": ["--blocks", "1000000", "--allocations", "10000000"],
    "patterns": ["--size", "128MiB", "--mode", "scan", "--updates", "20000000", "--cache", "0B"],
}
FORTRAN = {"ocean": ["256", "70"]}
# Scripts of workloads/debian.
DEBIAN = {
    "numpy": {"MEGABYTES": "128"},
    "sqlite": {"ROWS": "200000"},
    "redis": {"KEYS": "120000", "REQUESTS": "120000"},
    "graphicsmagick": {"WIDTH": "2400", "HEIGHT": "1800"},
    "pandas": {"ROWS": "200000"},
}


@dataclasses.dataclass(frozen=True)
class Built:
    """A program as it runs plainly, and as it counts its own accesses, where it can be compiled so."""

    program: Program
    counting: Program | None = None


def wrapper(name: str) -> str:
    path = os.path.join(ROOT, "build", "llvm", name)
    if not os.path.isfile(path):
        raise Problem(f"there is no {path}; `make build` makes it where clang-19 is")
    return path


def compiled(name: str, compiler: str, options: list[str], sources: list[str], words: list[str], folder: str) -> Built:
    """Both builds have the same names of sites, which the compiler gives."""
    made = []
    for kind, more in (("plain", []), ("counting", ["--profile"])):
        output = os.path.join(folder, f"{name}-{kind}")
        must([wrapper(compiler), *more, "-O2", "-g", *options, "-o", output, *sources], f"building {output}")
        made.append(Program(name, [output, *words], environment=ONE_THREAD))
    return Built(*made)


def kernel(source: str, folder: str) -> Built:
    return compiled(os.path.basename(source).removesuffix(".c"), "isotherm-cc", [], [source], [], folder)


def workload(name: str, words: list[str], folder: str) -> Built:
    sources = glob.glob(os.path.join(ROOT, "workloads", name, "*.cpp"))
    return compiled(name, "isotherm-c++", ["-std=c++17", "-pthread", "-I", os.path.join(HERE, "serial")], sources, words, folder)


def ocean(words: list[str], folder: str) -> Built:
    """Built by gfortran, as flang need not be there: its sites are named by their callers."""
    output = os.path.join(folder, "ocean")
    must(["gfortran", "-O2", "-g", "-o", output, os.path.join(ROOT, "workloads", "ocean", "ocean.f90")], "building ocean")
    return Built(Program("ocean", [output, *words], environment=ONE_THREAD))


def programs(tools: Tools, folder: str, only: list[str] | None) -> list[Built]:
    makers = {}
    for source in sorted(glob.glob(os.path.join(HERE, "truth", "programs", "*.c"))):
        makers[os.path.basename(source).removesuffix(".c")] = lambda source=source: kernel(source, folder)
    for name, words in WORKLOADS.items():
        makers[name] = lambda name=name, words=words: workload(name, words, folder)
    for name, words in FORTRAN.items():
        makers[name] = lambda words=words: ocean(words, folder)
    for name, variables in DEBIAN.items():
        makers[name] = lambda name=name, variables=variables: Built(tools.script(name, **ONE_THREAD, **variables))
    unknown = [name for name in only or [] if name not in makers]
    if unknown:
        raise Problem(f"--program {unknown[0]}: there are {', '.join(makers)}")
    return [make() for name, make in makers.items() if not only or name in only]
