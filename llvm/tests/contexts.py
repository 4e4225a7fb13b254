"""Whole programs whose calling contexts the link told apart; `run` beside this file runs these with the others."""
import os

from harness import PROGRAMS, Bench, expect, expect_in, plan_of_all


# Functions that only allocate for their callers are the contexts here, not wrappers whose calls are sites.
AS_WRITTEN = "--isotherm-find-wrappers=no"


def contexts_of(bench: Bench, name: str) -> dict[str, str]:
    """The contexts of a program, by the functions that they lead through, from the inside out."""
    contexts = {}
    for line in bench.run(bench.isotherm, "sites", "--contexts", name).stdout.splitlines():
        context, calls = line.split(" ", 1)
        contexts[" < ".join(call.split(" (")[0] for call in calls.split(" < "))] = context
    return contexts


def each_context_lands_in_its_tier(bench: Bench) -> None:
    """One call of malloc that three functions lead to: the plan names one of the three. The names are the same
    whichever way they are told apart, so that one plan fits both."""
    wanted = {f"make < {name} < main" for name in "abc"}
    names = []
    for way in ("argument", "clone"):
        bench.compile(AS_WRITTEN, f"--isotherm-context={way}", "--isotherm-growth=900%",
                      os.path.join(PROGRAMS, "figure3.c"), "-o", way)
        contexts = contexts_of(bench, way)
        expect(f"contexts, {way}", set(contexts), wanted)
        names.append(contexts)
        for name in "abc":
            site = contexts[f"make < {name} < main"]
            path = plan_of_all(bench, "slow", f"site {site} fast value 1 weight 4KiB\n")
            done = bench.run(bench.isotherm, "-q", "run", "--plan", path, "--", f"./{way}")
            chunks = dict(line.split() for line in done.stdout.splitlines())
            others = {chunk for other, chunk in chunks.items() if other != name}
            expect(f"chunks of what is not {name}, {way}", len(others), 1)
            expect(f"{name} shares the chunk of the others, {way}", chunks[name] in others, False)
    expect("names in both ways", names[0], names[1])


def a_profile_of_contexts_says_which_copies_are_worth_their_growth(bench: Bench) -> None:
    source = os.path.join(PROGRAMS, "hot_contexts.c")
    bench.compile(AS_WRITTEN, "--isotherm-context=argument", source, "-o", "argument")
    bench.run(bench.isotherm, "-q", "record", "--force", "-o", "hot.iso", "--epoch", "100ms", "--", "./argument")
    text = bench.run(bench.isotherm, "sites", "--contexts", "hot.iso").stdout
    expect_in("the profile's contexts", "make (hot_contexts.c:12) < hot", text)
    with open(os.path.join(bench.folder, "list"), "w", encoding="utf-8") as file:
        file.write(text)
    # Room for one of the three: by size alone each would do.
    bench.compile(AS_WRITTEN, "--isotherm-context=clone", "--isotherm-growth=10%", "--isotherm-profile=list",
                  "--isotherm-report=report", source, "-o", "clone")
    with open(os.path.join(bench.folder, "report"), encoding="utf-8") as file:
        expect_in("the report", "copies 1\n", file.read())
    bench.run(bench.isotherm, "-q", "record", "--force", "-o", "clone.iso", "--epoch", "100ms", "--", "./clone")
    labels = bench.run(bench.isotherm, "sites", "--contexts", "clone.iso").stdout
    expect_in("what the clone tells apart", "< hot", labels)
    expect("other contexts of the clone", "< cold" in labels, False)
    done = bench.compile("--isotherm-context=clone", "--isotherm-profile=absent", source, "-o", "clone", status=1)
    expect_in("a list that is not there", "the profile absent cannot be read", done.stderr)


def contexts_change_nothing_that_a_program_does(bench: Bench) -> None:
    program, library = (os.path.join(PROGRAMS, name) for name in ("contexts.cpp", "contexts_library.c"))
    bench.run("clang-19", "-O2", "-shared", "-fPIC", library, "-o", "plain.so")
    bench.run("clang++-19", "-O2", "-pthread", program, "-o", "plain")
    wanted = bench.run("./plain", "./plain.so").stdout
    expect("lines of the plain program", len(wanted.splitlines()), 13)
    for way in ("argument", "clone"):
        words = [f"--isotherm-context={way}", "--isotherm-growth=1000%"]
        bench.compile(*words, "-shared", "-fPIC", library, "-o", f"{way}.so")
        for options in (["-O2"], ["-O0", "-g"]):
            bench.compile(*words, *options, "-pthread", program, "-o", way, compiler="isotherm-c++")
            what = f"{way}, {options}"
            expect(what, bench.run(f"./{way}", f"./{way}.so").stdout, wanted)
            for mode in (["record", "--force", "-o", "all.iso"], ["run", "--plan", plan_of_all(bench)]):
                done = bench.run(bench.isotherm, "-q", *mode, "--", f"./{way}", f"./{way}.so")
                expect(f"{mode[0]}, {what}", done.stdout, wanted)


TESTS = [
    each_context_lands_in_its_tier,
    contexts_change_nothing_that_a_program_does,
    a_profile_of_contexts_says_which_copies_are_worth_their_growth,
]
