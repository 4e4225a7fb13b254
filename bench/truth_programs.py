"""The programs of the section `truth`, as their misses are counted in the emulator and as they are sampled on the machine."""
import dataclasses
import os

from measure import Program
from programs import C, CPP, DEBIAN, FORTRAN, ONE_THREAD, build_ocean, kernel_source, named, variables, workload_sources
from tools import HERE, Tools, must, wrapper


@dataclasses.dataclass(frozen=True)
class Built:
    """A program as it runs plainly, and as it counts its own accesses, where it can be compiled so."""

    program: Program
    counting: Program | None = None


def compiled(name: str, compiler: str, options: list[str], sources: list[str], words: list[str], folder: str) -> Built:
    """Both builds have the same names of sites, which the compiler gives."""
    made = []
    for kind, more in (("plain", []), ("counting", ["--profile"])):
        output = os.path.join(folder, f"{name}-{kind}")
        must([wrapper(compiler), *more, "-O2", "-g", *options, "-o", output, *sources], f"building {output}")
        made.append(Program(name, [output, *words], environment=ONE_THREAD))
    return Built(*made)


def kernel(name: str, words: list[str], folder: str) -> Built:
    return compiled(name, "isotherm-cc", [], [kernel_source(name)], words, folder)


def workload(name: str, words: list[str], folder: str) -> Built:
    options = ["-std=c++17", "-pthread", "-I", os.path.join(HERE, "serial")]
    return compiled(name, "isotherm-c++", options, workload_sources(name), words, folder)


def ocean(words: list[str], folder: str) -> Built:
    return Built(Program("ocean", [build_ocean(folder), *words], environment=ONE_THREAD))


def programs(tools: Tools, folder: str, only: list[str] | None) -> list[Built]:
    makers = {}
    for name, given in C.items():
        makers[name] = lambda name=name, given=given: kernel(name, given.truth_words(), folder)
    for name, given in CPP.items():
        makers[name] = lambda name=name, given=given: workload(name, given.truth_words(), folder)
    for name, given in FORTRAN.items():
        makers[name] = lambda given=given: ocean(given.truth_words(), folder)
    for name, given in DEBIAN.items():
        makers[name] = lambda name=name, given=given: Built(
            tools.script(name, **ONE_THREAD, **variables(given.truth_words())))
    return [make() for make in named(makers, only).values()]
