"""Whole programs whose calling contexts the link distinguishes; `run` beside this file runs these with the others."""
import json
import os
import re

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


def json_of_contexts(bench: Bench, name: str) -> list[dict]:
    document = json.loads(bench.run(bench.isotherm, "sites", "--contexts", "--json", name).stdout)
    expect("the version of the JSON", document["schema_version"], 1)
    return document["contexts"]


def each_lands_in_its_tier(bench: Bench, what: str, file: str, by_name: dict[str, str]) -> None:
    """Runs ./app once for each context, with a plan that names it: its block must be in another chunk."""
    contexts = contexts_of(bench, file)
    expect(f"contexts, {what}", set(contexts), set(by_name.values()))
    for name, calls in by_name.items():
        path = plan_of_all(bench, "slow", f"site {contexts[calls]} fast value 1 weight 4KiB\n")
        done = bench.run(bench.isotherm, "-q", "run", "--plan", path, "--", "./app")
        chunks = dict(line.split() for line in done.stdout.splitlines())
        apart = [other for other in chunks if list(chunks.values()).count(chunks[other]) == 1]
        expect(f"what lies apart with {name} in the plan, {what}", apart, [name])


def each_context_lands_in_its_tier(bench: Bench) -> None:
    """One call of malloc that three functions lead to: the plan names one of the three. The names are the same
    for both ways to distinguish them, so that one plan fits both."""
    wanted = {name: f"make < {name} < main" for name in "abc"}
    names = []
    for way in ("argument", "clone"):
        bench.compile(AS_WRITTEN, f"--isotherm-context={way}", "--isotherm-growth=900%",
                      os.path.join(PROGRAMS, "figure3.c"), "-o", "app")
        names.append(contexts_of(bench, "app"))
        listed = {" < ".join(call["function"] for call in context["calls"]): context for context in json_of_contexts(bench, "app")}
        expect("names in the JSON", {calls: context["context"] for calls, context in listed.items()}, names[-1])
        expect("their sites", {context["site"] for context in listed.values()}, {bench.sites("app")["make"]})
        each_lands_in_its_tier(bench, way, "app", wanted)
    expect("names in both ways", names[0], names[1])


def contexts_lead_through_virtual_calls_that_few_functions_may_answer(bench: Bench) -> None:
    """The calls of the right place only; where there are too many functions, the report has their number."""
    for way in ("argument", "clone"):
        for options in ([], ["-O0"]):
            bench.compile(AS_WRITTEN, f"--isotherm-context={way}", "--isotherm-growth=900%", "--isotherm-report=report", *options,
                          os.path.join(PROGRAMS, "virtual.cpp"), "-o", "app", compiler="isotherm-c++")
            made = {f"{name}::make(unsigned long)": set() for name in ("small", "large")}
            for calls in contexts_of(bench, "app"):
                first, *others = calls.split(" < ")
                if first in made:
                    made[first].add(others[0] if others else "")
            # Any function of the type may be called from unknown code.
            wanted = {"", "first(maker&)", "second(maker&)"}
            expect(f"what calls each, {way}, {options}", made, dict.fromkeys(made, wanted))
            with open(os.path.join(bench.folder, "report"), encoding="utf-8") as file:
                expect_in(f"the report, {way}, {options}", "stops at polygon<3>::outline(unsigned long, int): it is called through pointers "
                          "that may lead to 4 functions of its type at its place in tables of virtual functions\n", file.read())
            contexts = contexts_of(bench, "app")
            for name in ("small-first", "small-second", "large-first", "large-second"):
                function, caller = name.split("-")
                context = contexts[f"{function}::make(unsigned long) < {caller}(maker&) < main"]
                path = plan_of_all(bench, "slow", f"site {context} fast value 1 weight 4KiB\n")
                done = bench.run(bench.isotherm, "-q", "run", "--plan", path, "--", "./app")
                chunks = dict(line.split() for line in done.stdout.splitlines())
                apart = [other for other in chunks if list(chunks.values()).count(chunks[other]) == 1]
                expect(f"what lies apart with {name} in the plan, {way}, {options}", apart, [name])


def contexts_of_fortran_land_in_their_tiers(bench: Bench) -> None:
    """Compiled and linked in one step, and in two."""
    compiler, source = os.path.join(bench.build, "isotherm-fc"), os.path.join(PROGRAMS, "figure3.f90")
    wanted = {name: f"make < {name} < main < main" for name in "abc"}
    for way in ("argument", "clone"):
        words = [f"--isotherm-root={PROGRAMS}", f"--isotherm-context={way}", "--isotherm-growth=900%", "-O2"]
        bench.run(compiler, *words, source, "-o", "app")
        each_lands_in_its_tier(bench, f"Fortran, {way}", "app", wanted)
        done = bench.run(compiler, *words, "-c", source, "-o", "app.o")
        expect("what the compiler says", done.stderr, "")
        done = bench.run(compiler, *words, "app.o", "-o", "app")
        expect("what the link says", done.stderr, "")
        each_lands_in_its_tier(bench, f"Fortran, {way}, two steps", "app", wanted)


def a_profile_of_contexts_says_which_copies_are_worth_their_growth(bench: Bench) -> None:
    source = os.path.join(PROGRAMS, "hot_contexts.c")
    bench.compile(AS_WRITTEN, "--isotherm-context=argument", source, "-o", "argument")
    bench.run(bench.isotherm, "-q", "record", "--force", "-o", "hot.iso", "--epoch", "100ms", "--", "./argument")
    bench.run(bench.isotherm, "-q", "plan", "hot.iso", "--tiers", "emulated", "--fast", "6MiB", "-o", "hot.plan")
    with open(os.path.join(bench.folder, "hot.plan"), encoding="utf-8") as file:
        tiers = {found[2]: found[1] for line in file if (found := re.search(r"^site \w+ (\w+) .* < (\w+) .* < main", line))}
    expect("the plan", tiers, {"hot": "fast", "cold": "slow", "colder": "slow"})
    text = bench.run(bench.isotherm, "sites", "--contexts", "hot.iso").stdout
    expect_in("the profile's contexts", "make (hot_contexts.c:12) < hot", text)
    listed = [f"{context['context']} {context['accesses_moved']}" for context in json_of_contexts(bench, "hot.iso")]
    expect("the same in the JSON", listed, [" ".join(line.split()[:2]) for line in text.splitlines()[1:]])
    with open(os.path.join(bench.folder, "list"), "w", encoding="utf-8") as file:
        file.write(text)
    # Room for one of the three: by size alone each would fit.
    bench.compile(AS_WRITTEN, "--isotherm-context=clone", "--isotherm-growth=5%", "--isotherm-profile=list",
                  "--isotherm-report=report", source, "-o", "clone")
    with open(os.path.join(bench.folder, "report"), encoding="utf-8") as file:
        expect_in("the report", "copies 1\n", file.read())
    bench.run(bench.isotherm, "-q", "record", "--force", "-o", "clone.iso", "--epoch", "100ms", "--", "./clone")
    labels = bench.run(bench.isotherm, "sites", "--contexts", "clone.iso").stdout
    expect_in("what the clone tells apart", "< hot", labels)
    expect("other contexts of the clone", "< cold" in labels, False)
    # The plan of the other way, and all copies.
    bench.compile(AS_WRITTEN, "--isotherm-context=clone", "--isotherm-growth=900%", source, "-o", "clone")
    done = bench.run(bench.isotherm, "run", "--plan", "hot.plan", "--", "./clone")
    expect_in("what the guided run made", "3 of the plan's 3 sites were made by this run", done.stderr)
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


def contexts_lead_across_files_and_libraries(bench: Bench) -> None:
    """The allocation and its callers in two files, in an archive, in a library, and stripped. Objects of another compiler take
    no part: a function that they call begins a context."""
    def source(name: str) -> str:
        return os.path.join(PROGRAMS, f"across_{name}.c")

    for name in ("main", "plain"):
        bench.run("clang-19", "-O2", "-fPIC", "-c", source(name), "-o", f"{name}.o")
    for way in ("argument", "clone"):
        words = [AS_WRITTEN, f"--isotherm-context={way}", "--isotherm-growth=900%"]
        for name in ("callers", "make"):
            bench.compile(*words, "-fPIC", "-c", source(name), "-o", f"{name}.o")
        outside = {"a": "make < a", "b": "make < b", "plain": "make"}
        bench.compile(*words, "-shared", "callers.o", "make.o", "-o", "across.so")
        bench.run("clang-19", "main.o", "plain.o", "./across.so", "-o", "app")
        each_lands_in_its_tier(bench, f"{way}, a library", "across.so", outside)
        bench.run("llvm-ar-19", "crs", "across.a", "callers.o", "make.o")
        bench.compile(*words, "-s", "main.o", "plain.o", "across.a", "-o", "app")
        each_lands_in_its_tier(bench, f"{way}, an archive", "app", outside)
        bench.compile(*words, source("main"), "callers.o", "make.o", "plain.o", "-o", "app")
        inside = {"a": "make < a < main", "b": "make < b < main", "plain": "make"}
        each_lands_in_its_tier(bench, f"{way}, files", "app", inside)


def every_kind_of_link_tells_contexts_apart(bench: Bench) -> None:
    source = os.path.join(PROGRAMS, "figure3.c")
    wanted = {f"make < {name} < main" for name in "abc"}
    for options in ("-static", "-fPIE -static-pie", "-fno-pie -no-pie", "-g -pthread", "-O0", "-Wl,--gc-sections -s"):
        bench.compile(AS_WRITTEN, "--isotherm-context", "-Wno-unused-command-line-argument", *options.split(), source, "-o", "app")
        expect(f"contexts, {options}", set(contexts_of(bench, "app")), wanted)
        expect(f"lines, {options}", len(bench.run("./app").stdout.splitlines()), 3)
    # An object that was linked from others is linked again: it has sites, and its contexts begin at the second link.
    bench.compile(AS_WRITTEN, "--isotherm-context", "-c", source, "-o", "figure3.o")
    bench.compile(AS_WRITTEN, "--isotherm-context", "-r", "-nostdlib", "figure3.o", "-o", "partial.o")
    bench.compile(AS_WRITTEN, "--isotherm-context", "partial.o", "-o", "app")
    expect("sites after a partial link", set(bench.sites("app")), {"make"})
    expect("lines after a partial link", len(bench.run("./app").stdout.splitlines()), 3)


def contexts_keep_their_names_when_other_functions_change(bench: Bench) -> None:
    with open(os.path.join(PROGRAMS, "figure3.c"), encoding="utf-8") as file:
        text = file.read()
    root = os.path.join(bench.folder, "project")
    os.makedirs(root)
    source = os.path.join(root, "figure3.c")

    def build(content: str, *options: str) -> dict[str, str]:
        with open(source, "w", encoding="utf-8") as file:
            file.write(content)
        bench.compile(AS_WRITTEN, *options, source, "-o", "app", root=root)
        return contexts_of(bench, "app")

    first = build(text, "--isotherm-context")
    unrelated = "void *unrelated(int n) {\n    return n > 3 ? malloc(n) : NULL;\n}\n\n"
    edited = text.replace("APART static void *a(", f"{unrelated}APART static void *a(", 1)
    expect("the edit", edited.count("unrelated"), 1)
    for way in ("argument", "clone"):
        second = build(edited, f"--isotherm-context={way}", "--isotherm-growth=900%")
        expect(f"names after an edit elsewhere, {way}", {calls: second.get(calls) for calls in first}, first)
        context = first["make < b < main"]
        path = plan_of_all(bench, "slow", f"site {context} fast value 1 weight 4KiB\n")
        done = bench.run(bench.isotherm, "-q", "run", "--plan", path, "--", "./app")
        chunks = dict(line.split() for line in done.stdout.splitlines())
        expect(f"the plan of the build before, {way}", (chunks["a"] == chunks["c"], chunks["a"] == chunks["b"]), (True, False))


def what_contexts_cannot_be_told_of_is_refused(bench: Bench) -> None:
    source = os.path.join(PROGRAMS, "figure3.c")
    for words, sentence in ((["--isotherm-context=what"], 'there is no way "what" to tell contexts apart'),
                            (["--isotherm-context", "-flto=thin"], "leave out -flto=thin"),
                            (["--isotherm-context", "-fuse-ld=bfd"], "leave out -fuse-ld=bfd")):
        expect_in(f"what {words} says", sentence, bench.compile(*words, source, "-o", "app", status=2).stderr)
    for words, sentence in ((["--isotherm-depth=8"], 'the depth of contexts is "8"; it is a number from 1 to 7'),
                            (["--isotherm-growth=much"], "must be a whole number of per cent")):
        done = bench.compile("--isotherm-context=clone", *words, source, "-o", "app", status=1)
        expect_in(f"what {words} says", sentence, done.stderr)


TESTS = [
    each_context_lands_in_its_tier,
    contexts_lead_through_virtual_calls_that_few_functions_may_answer,
    contexts_of_fortran_land_in_their_tiers,
    contexts_lead_across_files_and_libraries,
    every_kind_of_link_tells_contexts_apart,
    contexts_keep_their_names_when_other_functions_change,
    contexts_change_nothing_that_a_program_does,
    a_profile_of_contexts_says_which_copies_are_worth_their_growth,
    what_contexts_cannot_be_told_of_is_refused,
]
