"""Section `contexts`: the cost of calling contexts that the link of a program distinguishes."""
import dataclasses
import os
import re

from measure import Contender, Problem, Program, geometric_mean, interleave, processor_seconds
from named_sites import PLAN
from table import Table
from tools import HERE, ROOT, Tools, must, wrapper

SECONDS = "processor_seconds"
# Processor time, because other programs on the machine disturb it less than the clock.
TIMED = ["bash", "-c", 'TIMEFORMAT="processor_seconds %U"; time "$0" "$@"']
LTO = ["-flto=full", "-fuse-ld=lld"]
WAYS = {
    "plain": None,
    "sites": LTO,
    "argument": ["--isotherm-context=argument"],
    "clones": ["--isotherm-context=clone"],
}
# The plain program as well; `bench/unwinding.c` is preloaded.
UNWINDING = "backtrace()"
CONTEXTS = ("argument", "clones")
LUA = """
local words, count = {}, ...
for round = 1, tonumber(count) do
    local tree = {}
    for i = 1, 2000 do
        tree[i] = { name = "node" .. i, values = { i, i + 1, tostring(i * round) } }
    end
    table.sort(tree, function(a, b) return a.name < b.name end)
    local text = {}
    for i, node in ipairs(tree) do text[#text + 1] = node.name:upper() .. table.concat(node.values, ",") end
    words[#words + 1] = #table.concat(text, ";")
end
print(table.concat(words, " "))
"""
SQL = """
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
    INSERT INTO t SELECT i, 'text ' || (i * 7919 % 10007), i / 3.0 FROM n;
CREATE INDEX b ON t(b);
SELECT b, count(*), round(avg(c), 3) FROM t GROUP BY b ORDER BY 2 DESC, 1 LIMIT 3;
SELECT count(*), sum(length(texts)) FROM (SELECT group_concat(b) AS texts FROM t GROUP BY a % 97);
SELECT count(DISTINCT substr(x.b, 3)) FROM t x JOIN t y ON x.b = y.b AND y.a < 1000;
"""


@dataclasses.dataclass(frozen=True)
class Case:
    """A program to build: its sources, the compiler options, and the arguments of its runs."""

    name: str
    files: list[str]
    options: list[str]
    words: list[str]


@dataclasses.dataclass(frozen=True)
class Built:
    """A program built one way, and the processor seconds that its link took."""

    path: str
    link_seconds: float

    def text_bytes(self) -> int:
        """Bytes of code."""
        sections = must(["llvm-readelf-19", "-S", "-W", self.path], "measuring the code")
        return int(re.search(r" \.text +PROGBITS +\w+ +\w+ +(\w+)", sections)[1], 16)

    def contexts(self) -> str:
        """Contexts that the link distinguished, by its report."""
        if not os.path.exists(self.path + ".report"):
            return "-"
        with open(self.path + ".report", encoding="utf-8") as file:
            return re.search(r"^contexts (\d+)", file.read(), re.MULTILINE)[1]


def cases(options, folder: str) -> list[Case]:
    quick = 4 if options.quick else 1
    script, statements = os.path.join(folder, "work.lua"), os.path.join(folder, "work.sql")
    for path, text in ((script, LUA), (statements, SQL.format(rows=1_500_000 // quick))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    context = os.path.join(ROOT, "workloads", "context", "context.cpp")
    found = [Case("context", [context], [], ["--allocations", str(20_000_000 // quick)])]
    if not options.sources:
        return found
    lua, sqlite = os.path.join(options.sources, "lua5.4", "src"), os.path.join(options.sources, "sqlite3")
    names = sorted(os.listdir(lua)) if os.path.isdir(lua) else ["lua.c"]
    names = [name for name in names if name.endswith(".c") and name != "luac.c"]
    found.append(Case("lua", [os.path.join(lua, name) for name in names], ["-DLUA_USE_POSIX", "-lm"],
                      [script, str(600 // quick)]))
    found.append(Case("sqlite3", [os.path.join(sqlite, name) for name in ("shell.c", "sqlite3.c")],
                      ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-lm"],
                      [":memory:", f".read {statements}"]))
    if absent := [file for case in found for file in case.files if not os.path.isfile(file)]:
        raise Problem(f"there is no {absent[0]}; see bench/README.md for --sources")
    return found


def build(case: Case, way: str, folder: str) -> Built:
    """Compiles file by file, then links; the report of the link is beside the program."""
    plus = case.files[0].endswith(".cpp")
    path = os.path.join(folder, f"{case.name}-{way}")
    options = WAYS[way]
    if options is None:
        compiler = ["clang++-19" if plus else "clang-19", *LTO]
    else:
        compiler = [wrapper("isotherm-c++" if plus else "isotherm-cc"), "--isotherm-root=/", f"--isotherm-report={path}.report", *options]
    compiler += ["-O2", "-w"]
    objects = []
    for file in case.files:
        objects.append(os.path.join(folder, f"{case.name}-{way}-{os.path.basename(file)}.o"))
        must([*compiler, "-Wno-unused-command-line-argument", *case.options, "-c", file, "-o", objects[-1]],
             f"compiling {file}")
    before = processor_seconds()
    must([*compiler, *objects, *case.options, "-o", path], f"linking {path}")
    return Built(path, processor_seconds() - before)


def allocated(tools: Tools, built: Built, words: list[str]) -> dict[str, tuple[int, int]]:
    """Allocations and bytes of each site that the compiler named, of one profile."""
    profile = built.path + ".iso"
    must([*tools.record(profile), built.path, *words], f"profiling {built.path}")
    return {site["site"]: (site["allocations"], site["requested_bytes"]) for site in tools.report(profile)["sites"]
            if site["kind"] == "described"}


def share_told(ours: dict[str, tuple[int, int]], unbounded: dict[str, tuple[int, int]]) -> float:
    """Share of the bytes whose context has the same name as where all are distinguished."""
    total = sum(size for _, size in unbounded.values())
    return sum(min(size, ours[name][1]) for name, (_, size) in unbounded.items() if name in ours) / total


def contenders(tools: Tools, case: Case, built: dict[str, Built], plan: str, unwinding: str) -> list[Contender]:
    ways = []
    for way, program in built.items():
        start = ["env", f"LD_PRELOAD={tools.peer()}"] if way == "plain" else tools.guided(plan)
        ways.append(Contender(way, [*start, *TIMED, program.path, *case.words]))
    preloaded = f"LD_PRELOAD={unwinding} {tools.peer()}"
    return [*ways, Contender(UNWINDING, [*TIMED, "env", preloaded, built["plain"].path, *case.words])]


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    plan, unwinding = os.path.join(folder, "all.plan"), os.path.join(folder, "unwinding.so")
    with open(plan, "w", encoding="utf-8") as file:
        file.write(PLAN.format(sites=""))
    must(["cc", "-O2", "-shared", "-fPIC", os.path.join(HERE, "unwinding.c"), "-o", unwinding, "-ldl"],
         f"building {unwinding}")
    table = Table("Contexts of four calls, distinguished at the link: processor seconds of the link, code to the sites alone, "
                  "bytes distinguished, and processor time of guided runs (median; ratio to the sites alone, to plain jemalloc)",
                  ["program", "way", "link", "code", "contexts", "bytes", "seconds", "spread", "to sites", "to jemalloc"])
    ratios = {way: [] for way in (*CONTEXTS, UNWINDING)}
    for case in cases(options, folder):
        built = {}
        for way in WAYS:
            say(f"building {case.name}, {way}")
            built[way] = build(case, way, folder)
        say(f"profiling {case.name}")
        told = {way: allocated(tools, built[way], case.words) for way in CONTEXTS}
        ways = contenders(tools, case, built, plan, unwinding)
        samples = interleave(Program(case.name, []), ways, options.rounds, options.limit, say)
        code = built["sites"].text_bytes()
        for way in (*WAYS, UNWINDING):
            made = built.get(way)
            to_sites, to_plain = (samples.ratio(way, base, SECONDS) for base in ("sites", "plain"))
            if way in ratios:
                ratios[way].append(to_plain if way == UNWINDING else to_sites)
            table.row(case.name, way, f"{made.link_seconds:.1f}" if made else "-",
                      f"{made.text_bytes() / code:.3f}" if made else "-", made.contexts() if made else "-",
                      f"{share_told(told[way], told['argument']):.1%}" if way in told else "-",
                      f"{samples.median(way, SECONDS):.2f}", f"{samples.spread(way, SECONDS):.1%}", to_sites, to_plain)
        count = sum(allocations for allocations, _ in told["argument"].values())
        table.note(f"{case.name}: {count / samples.median('plain', SECONDS) / 1e6:.2f} million allocations a second on plain jemalloc.")
    means = ", ".join(f"{way} {geometric_mean(values):.3f}" for way, values in ratios.items())
    table.note(f"Geometric means, contexts to sites alone, backtrace() to plain: {means}.")
    table.note("Promised: at most 1.02 times the sites alone, at most 1.25 times the code, 95 % of the bytes, twice the link.")
    if not options.sources:
        table.note("lua and sqlite3 are left out: --sources names no folder with their sources.")
    return [table]
