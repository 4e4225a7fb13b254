"""The profile build's counts against an emulator's trace of the plainly built program."""
import os
import re
import shutil

import profile_build
from harness import PROGRAMS, Bench, Failed, Skipped, expect

# The limit that SPECIFICATION.md promises.
PROMISED = 0.01
LINE_BYTES = 64
PAGE_BYTES = 4096


def code_range(bench: Bench, program: str) -> tuple[int, int]:
    """First and last address of the program's own code."""
    text = bench.run("llvm-readelf-19", "-lW", program).stdout
    found = re.search(r"LOAD\s+0x\w+\s+(0x\w+)\s+0x\w+\s+0x\w+\s+(0x\w+)\s+R E", text)
    if not found:
        raise Failed(f"{program} has no code: {text}")
    start = int(found[1], 16)
    return start, start + int(found[2], 16)


def traced(bench: Bench) -> tuple[dict[str, tuple[int, float]], str]:
    """By the function that allocates: accesses by the program's own code, and lines that libraries accessed; and what the
    program printed."""
    bench.run("clang-19", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", os.path.join(PROGRAMS, "tracer.c"), "-o",
              "tracer.so")
    # Not position-independent: the tracer must know the code before it is loaded.
    bench.run("clang-19", "-O2", "-fno-pie", "-no-pie", os.path.join(PROGRAMS, "traced.c"), "-o", "plain")
    start, end = code_range(bench, "plain")
    done = bench.run("qemu-x86_64", "-plugin", f"./tracer.so,from={start},to={end},out=pages", "./plain")
    with open(os.path.join(bench.folder, "pages"), encoding="utf-8") as file:
        pages = {int(first): (int(own), int(library)) for first, own, library in map(str.split, file)}
    found = {}
    for name, address, size in re.findall(r"place (\w+) (\d+) (\d+)", done.stdout):
        inside = [pages.get(page, (0, 0)) for page in range(int(address) // PAGE_BYTES * PAGE_BYTES, int(address) + int(size),
                                                            PAGE_BYTES)]
        found[name] = (sum(own for own, _ in inside), sum(library for _, library in inside) / LINE_BYTES)
    return found, done.stdout.splitlines()[-1]


def counted(bench: Bench) -> tuple[dict[str, int], str]:
    """The same by the profile build itself, at N = 1."""
    bench.compile("--profile", os.path.join(PROGRAMS, "traced.c"), "-fno-pie", "-no-pie", "-o", "counted")
    sites = bench.sites("counted")
    accesses, source, printed = profile_build.record(bench)
    expect("samples that found no room", source["lost_samples"], 0)
    return {name: accesses.get(site, 0) for name, site in sites.items()}, printed.splitlines()[-1]


def the_counts_are_those_of_an_emulators_trace(bench: Bench) -> str:
    """Both use the same units: an instruction of the program that loads or stores is an access, and the work of the C
    library for memset, memcpy and calloc is counted by lines. The zeroing by calloc is no access of the program: such
    memory is fresh from the kernel and already zero."""
    if not shutil.which("qemu-x86_64"):
        raise Skipped("qemu-x86_64 is missing; apt-get install qemu-user")
    wanted, wanted_line = traced(bench)
    found, found_line = counted(bench)
    expect("what the program computes", found_line, wanted_line)
    rows, worst = [], 0.0
    for name, (own, lines) in sorted(wanted.items()):
        off = found.get(name, 0) / max(own + lines, 1) - 1
        worst = max(worst, abs(off))
        rows.append(f"  {name:16} {found.get(name, 0):12,} {own:12,} {lines:14,.0f} {off:+10.3%}")
    table = "\n".join([f"  {'site':16} {'counted':>12} {'traced':>12} {'library lines':>14} {'difference':>10}", *rows])
    if worst > PROMISED:
        raise Failed(f"counts are off by up to {worst:.2%}; {PROMISED:.0%} is promised\n{table}")
    return f"{worst:.3%} at most\n{table}"


TESTS = [the_counts_are_those_of_an_emulators_trace]
