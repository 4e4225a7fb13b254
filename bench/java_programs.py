"""The Java programs of the section `java`, their inputs, and how they are built: javac, and jars from Maven Central."""
import dataclasses
import functools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from typing import TypeVar

from java_machines import Machines
from measure import Problem, Program
from parts import tables_of_each
from programs import named
from table import Table
from tools import HERE, ROOT, Tools, must

SOURCES = os.path.join(HERE, "java")
MEMBENCH = os.path.join(ROOT, "workloads", "java", "MemBench.java")
# Fixed versions, so that a program stays the same. All run on Java 17.
H2 = ("com.h2database:h2:2.2.224",)
LUCENE = ("org.apache.lucene:lucene-core:9.12.3", "org.apache.lucene:lucene-analysis-common:9.12.3")
XALAN = ("xalan:xalan:2.7.3", "xalan:serializer:2.7.3")
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
# Seconds for one jar, with what Maven itself needs.
FETCH_LIMIT = 180
Result = TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Load:
    """A class, the words after it with {} for the amount of work, which is less with `--quick`, the heap in MiB, and jars."""

    main: str
    words: str
    quick: int
    amount: int
    heap: int
    jars: tuple[str, ...] = ()


# Some 5 s of the measured phase, one with --quick. The paper's MemBench has 200 MB of hot and 2 GB of cold objects: a tenth of each.
LOADS = {
    "membench": Load("MemBench", "--hot 20 --cold 200 --passes {}", 40, 250, 512),
    "cache": Load("CacheServer", "120000 {}", 800_000, 5_000_000, 256),
    "analytics": Load("Analytics", "300000 {}", 24, 150, 256),
    "fft": Load("SciMark", "fft 1048576 {}", 3, 12, 256),
    "sor": Load("SciMark", "sor 1500 {}", 4, 20, 128),
    "montecarlo": Load("SciMark", "montecarlo 10000000 {}", 2, 10, 128),
    "sparse": Load("SciMark", "sparse 100000 {}", 8, 50, 128),
    "lu": Load("SciMark", "lu 1000 {}", 4, 20, 128),
    "h2": Load("H2Load", "300 5000 {}", 2_000, 15_000, 256, H2),
    "lucene-index": Load("LuceneLoad", "index {} 0", 2_500, 15_000, 256, LUCENE),
    "lucene-search": Load("LuceneLoad", "search 4000 {}", 700, 6_000, 256, LUCENE),
    "xalan": Load("XalanLoad", "1000 {}", 30, 300, 256, XALAN),
}


def jar_file(directory: str, artifact: str) -> str:
    _, name, version = artifact.split(":")
    return os.path.join(directory, f"{name}-{version}.jar")


@functools.cache
def why_missing(directory: str, artifact: str) -> str:
    """Fetches a jar from Maven Central unless it is there; says why it cannot be had, or nothing."""
    if os.path.isfile(jar_file(directory, artifact)):
        return ""
    if not shutil.which("mvn"):
        return f"{artifact}: Maven is not installed (apt-get install maven)"
    command = ["mvn", "--quiet", "--batch-mode", "--strict-checksums", COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={directory}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_LIMIT, check=False, cwd=directory)
    except subprocess.TimeoutExpired:
        return f"{artifact}: Maven has not ended after {FETCH_LIMIT} s"
    if done.returncode == 0 and os.path.isfile(jar_file(directory, artifact)):
        return ""
    errors = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")]
    return f"{artifact}: Maven ended with status {done.returncode}: {errors[0] if errors else done.stderr.strip()[-200:]}"


def compile_java(main: str, path: list[str], classes: str) -> None:
    """Compiles a program, with line numbers and names."""
    if os.path.isfile(os.path.join(classes, f"{main}.class")):
        return
    if not shutil.which("javac"):
        raise Problem("javac is not installed (apt-get install openjdk-17-jdk-headless)")
    source = MEMBENCH if main == "MemBench" else os.path.join(SOURCES, f"{main}.java")
    must(["javac", "-g", "-d", classes, "-cp", ":".join(path), "-sourcepath", SOURCES, source], f"compiling {main}")


def build(tools: Tools, options, folder: str, name: str) -> Program:
    """The words after `java` and its flags. Raises Problem where a jar cannot be had."""
    load = LOADS[name]
    jars, classes = os.path.join(tools.build, "jars"), os.path.join(folder, "classes")
    os.makedirs(jars, exist_ok=True)
    os.makedirs(classes, exist_ok=True)
    missing = [reason for reason in (why_missing(jars, artifact) for artifact in load.jars) if reason]
    if missing:
        raise Problem(f"{name} is left out: {missing[0]}")
    path = [classes, *(jar_file(jars, artifact) for artifact in load.jars)]
    compile_java(load.main, path, classes)
    words = load.words.format(load.quick if options.quick else load.amount).split()
    heap = [f"-Xms{load.heap}m", f"-Xmx{load.heap}m"]
    return Program(name, [*heap, "-XX:+UseG1GC", "-cp", ":".join(path), load.main, *words])


def programs(tools: Tools, options, folder: str, say) -> tuple[list[Program], list[str]]:
    """The programs that `--program` names, or all, and for each one that cannot be built the reason."""
    built, reasons = [], []
    for name, make in named({name: functools.partial(build, tools, options, folder, name) for name in LOADS}, options.program).items():
        say(f"{name}: building")
        try:
            built.append(make())
        except Problem as problem:
            reasons.append(f"{problem}.")
    if not built:
        raise Problem(" ".join(reasons))
    return built, reasons


def noted(table: Table, notes: list[str]) -> Table:
    for note in notes:
        table.note(note)
    return table


def tables_of_programs(tools: Tools, options, folder: str, say, measure: Callable[[Program], Result],
                       tables: Callable[[list[Result]], list[Table]]) -> Iterator[Table]:
    """Measures each program and makes the tables. One that fails, or that cannot be built, is named and has no row."""
    built, reasons = programs(tools, options, folder, say)

    def measured(program: Program) -> Result:
        say(program.name)
        return measure(program)

    yield from tables_of_each(say.steps(built), measured, lambda results: [noted(table, reasons) for table in tables(results)])


def tables_of_coloured(tools: Tools, options, folder: str, say, measure: Callable[..., Result], summary: Callable[[list[Result]], Table]) -> Iterator[Table]:
    """The same of programs on the virtual machine whose heap has colours."""
    # Before minutes of recording, so that a missing one is named at once.
    machines = Machines(options)
    machines.check_coloured()

    def measured(program: Program) -> Result:
        return measure(tools, options, folder, program, say)

    yield from tables_of_programs(tools, options, folder, say, measured, lambda results: [noted(summary(results), [machines.note()])])


def check_agent(tools: Tools) -> None:
    """`isotherm record` adds the agent to Java programs, and records them without it where it is missing."""
    directory = os.path.dirname(tools.isotherm)
    if not os.path.isfile(os.path.join(directory, "libisotherm-java.so")):
        raise Problem(f"there is no libisotherm-java.so in {directory}: `java/build {directory}` builds it")
