"""Profiles of LLVM's own instrumentation (clang's -fmemory-profile) as profiles of Isotherm."""
import glob
import json
import os
import re

from harness import PROGRAMS, Bench, Skipped, expect, expect_in

SOURCE = os.path.join(PROGRAMS, "memprof.cpp")
WORDS = 1 << 18
# The program's accesses, by the function that allocates.
ACCESSES = {"hot()": 20 * WORDS + 1, "cold()": 4 * WORDS // 1024, "inlined()": WORDS, "array()": WORDS,
            "short* instance<short>()": 2 * WORDS, "double* instance<double>()": WORDS}
INSTRUMENTED = ("-fmemory-profile", "-fdebug-info-for-profiling", "-gline-tables-only", "-mno-omit-leaf-frame-pointer",
                "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-Wl,--build-id")


def recorded(bench: Bench, *compiler: str, source: str = SOURCE, printed: str = "done 7\n") -> str:
    """Builds a program with MemProf's instrumentation and runs it; returns the profile's name."""
    runtime = bench.run("clang-19", "-print-file-name=libclang_rt.memprof-x86_64.a").stdout.strip()
    other = bench.run("clang-19", "-print-file-name=libclang_rt.memprof.a").stdout.strip()
    if not os.path.isfile(runtime) and not os.path.isfile(other):
        raise Skipped("MemProf's runtime is missing; apt-get install libclang-rt-19-dev")
    for old in glob.glob(os.path.join(bench.folder, "memprof.profraw.*")):
        os.remove(old)
    bench.run(*compiler, "-O2", *INSTRUMENTED, source, "-o", "counting")
    expect("the instrumented program", bench.run("./counting").stdout, printed)
    written = glob.glob(os.path.join(bench.folder, "memprof.profraw.*"))
    expect("profiles written", len(written), 1)
    return os.path.basename(written[0])


def by_function(bench: Bench) -> dict[str, dict]:
    """The rows of the imported profile's sites, by the function in their innermost frame."""
    report = json.loads(bench.run(bench.isotherm, "report", "--json", "app.iso").stdout)
    return {row["location"].split(" ", 1)[1]: row for row in report["sites"] if row["accesses"]}


def accesses(rows: dict[str, dict]) -> dict[str, int]:
    return {name: row["accesses"] for name, row in rows.items()}


def a_profile_of_memprof_plans_the_program_that_isotherm_cc_built(bench: Bench) -> None:
    profile = recorded(bench, "clang++-19")
    bench.compile("-s", SOURCE, "-o", "app", compiler="isotherm-c++")
    done = bench.run(bench.isotherm, "import", profile, "--program", "counting", "--sites", "app")
    expect_in("what is said of the sites", "6 of them, with 100 % of the accesses", done.stderr)
    rows = by_function(bench)
    expect("accesses", accesses(rows), ACCESSES)
    named = set(bench.run(bench.isotherm, "sites", "app").stdout.split())
    for name, row in rows.items():
        expect(f"{name} is a site of the program", row["site"] in named, True)
    bench.run(bench.isotherm, "-q", "plan", "app.iso", "--tiers", "emulated", "--fast", "1MiB", "-o", "app.plan")
    why = bench.run(bench.isotherm, "explain", "app.plan", rows["hot()"]["site"]).stdout
    expect_in("why it is there", "fast", why)
    done = bench.run(bench.isotherm, "run", "--plan", "app.plan", "--", "./app")
    expect("the guided run", done.stdout, "done 7\n")
    expect_in("what the guided run made", "6 of the plan's 8 sites were made by this run", done.stderr)


def a_build_with_both_needs_no_other_program(bench: Bench) -> None:
    profile = recorded(bench, os.path.join(bench.build, "isotherm-c++"), f"--isotherm-root={PROGRAMS}")
    bench.run(bench.isotherm, "-q", "import", profile, "--program", "counting")
    bench.compile(SOURCE, "-o", "app", compiler="isotherm-c++")
    expect("its sites are those of a build without", set(bench.sites("counting").items()), set(bench.sites("app").items()))
    expect("accesses", accesses(by_function(bench)), ACCESSES)


def contexts_of_memprof_are_those_of_the_link(bench: Bench) -> None:
    recorded(bench, "clang++-19")
    source = os.path.join(PROGRAMS, "hot_contexts.c")
    bench.run("clang-19", "-O1", "-g", *INSTRUMENTED, source, "-o", "counting")
    before = set(glob.glob(os.path.join(bench.folder, "memprof.profraw.*")))
    bench.run("./counting")
    profile, = set(glob.glob(os.path.join(bench.folder, "memprof.profraw.*"))) - before
    bench.compile("--isotherm-find-wrappers=no", "--isotherm-context", source, "-o", "app")
    bench.run(bench.isotherm, "-q", "import", profile, "--program", "counting", "--sites", "app")
    bench.run(bench.isotherm, "-q", "plan", "app.iso", "--tiers", "emulated", "--fast", "6MiB", "-o", "app.plan")
    with open(os.path.join(bench.folder, "app.plan"), encoding="utf-8") as file:
        tiers = {found[2]: found[1] for line in file if (found := re.search(r"^site \w+ (\w+) .* < (\w+) .* < main", line))}
    expect("the plan", tiers, {"hot": "fast", "cold": "slow", "colder": "slow"})
    done = bench.run(bench.isotherm, "run", "--plan", "app.plan", "--", "./app")
    expect_in("what the guided run made", "3 of the plan's 4 sites were made by this run", done.stderr)


def described(bench: Bench, profile: str) -> dict[str, str]:
    """The sites of a profile that the program names: their names in the source, by site name."""
    report = json.loads(bench.run(bench.isotherm, "report", "--json", profile).stdout)
    return {row["site"]: row["location"] for row in report["sites"] if row["kind"] == "described"}


def containers_of_memprof_are_the_sites_of_a_recorded_run(bench: Bench) -> None:
    """They allocate in headers, each through several functions; the sites are the program's calls of them."""
    source = os.path.join(PROGRAMS, "containers.cpp")
    for standard, strings in (("-std=c++20", True), ("-std=c++17", False)):
        bench.compile(standard, source, "-o", "app", compiler="isotherm-c++")
        printed = bench.run("./app").stdout
        profile = recorded(bench, "clang++-19", standard, source=source, printed=printed)
        bench.run(bench.isotherm, "-q", "import", "--force", profile, "--program", "counting", "--sites", "app")
        bench.run(bench.isotherm, "-q", "record", "--force", "-o", "run.iso", "--", "./app")
        found = described(bench, "app.iso")
        expect(f"sites of the import, {standard}", found, described(bench, "run.iso"))
        # A column follows where two sites of a line look alike.
        lines = {":".join(location.split(" ", 1)[0].split(":")[:2]) for location in found.values()}
        wanted = {f"containers.cpp:{line}" for line in (14, 18, 24, 29, 30, 31, 32, 36)}
        expect(f"their lines, {standard}", lines, wanted | ({"containers.cpp:21"} if strings else set()))
        # MemProf's stacks end in the library, which makes the texts of C++17.
        report = json.loads(bench.run(bench.isotherm, "report", "--json", "app.iso").stdout)
        others = [row["location"] for row in report["sites"] if row["accesses"] and row["site"] not in found]
        expect(f"whether other sites were accessed, {standard}", bool(others), not strings)
        bench.run(bench.isotherm, "-q", "plan", "app.iso", "--tiers", "emulated", "--fast", "1MiB", "-o", "app.plan")
        done = bench.run(bench.isotherm, "run", "--plan", "app.plan", "--", "./app")
        expect(f"the guided run, {standard}", done.stdout, printed)
        expect_in(f"what the guided run made, {standard}", f"{len(found)} of the plan's", done.stderr)


def what_does_not_fit_is_refused(bench: Bench) -> None:
    profile = recorded(bench, "clang++-19")
    bench.run("clang++-19", "-O2", "-Wl,--build-id", SOURCE, "-o", "other")
    for words, said in (((profile,), "name the program that wrote it with --program"),
                        ((profile, "--program", "other"), "is not the program"),
                        ((profile, "--program", "counting", "--sites", "other"), "compile it with isotherm-cc")):
        done = bench.run(bench.isotherm, "import", *words, status=1)
        expect_in(f"{words}", said, done.stderr)
    done = bench.run(bench.isotherm, "import", profile, "--program", "counting")
    expect_in("what is said where no site is known", "a plan of it guides no run", done.stderr)
    with open(os.path.join(bench.folder, profile), "rb") as file:
        content = file.read()
    with open(os.path.join(bench.folder, "cut"), "wb") as file:
        file.write(content[:-9])
    expect_in("a cut file", "the file ends before", bench.run(bench.isotherm, "import", "cut", status=1).stderr)


TESTS = [
    a_profile_of_memprof_plans_the_program_that_isotherm_cc_built,
    a_build_with_both_needs_no_other_program,
    contexts_of_memprof_are_those_of_the_link,
    containers_of_memprof_are_the_sites_of_a_recorded_run,
    what_does_not_fit_is_refused,
]
