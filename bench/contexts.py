"""Section `contexts`: what calling contexts cost that the link of a program tells apart."""
import os
import re

from measure import Contender, Problem, Program, interleave
from named_sites import PLAN
from table import Table
from tools import ROOT, Tools, must

SECONDS = "processor_seconds"
# Processor time, because other programs on the machine disturb it less than the clock.
TIMED = ["bash", "-c", 'TIMEFORMAT="processor_seconds %U"; time "$0" "$@"']
WAYS = {
    "plain": None,
    "sites": ["-flto=full", "-fuse-ld=lld"],
    "argument": ["--isotherm-context=argument"],
    "clones": ["--isotherm-context=clone"],
}
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
SELECT count(*), sum(length(group_concat)) FROM (SELECT group_concat(b) FROM t GROUP BY a % 97)
    AS g(group_concat);
SELECT count(DISTINCT substr(x.b, 3)) FROM t x JOIN t y ON x.b = y.b AND y.a < 1000;
"""


def lua(sources: str) -> tuple[list[str], list[str]]:
    folder = os.path.join(sources, "lua5.4", "src")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".c") and name != "luac.c")
    return [os.path.join(folder, name) for name in names], ["-DLUA_USE_POSIX", "-lm"]


def sqlite(sources: str) -> tuple[list[str], list[str]]:
    folder = os.path.join(sources, "sqlite3")
    files = [os.path.join(folder, name) for name in ("shell.c", "sqlite3.c")]
    return files, ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-lm"]


def context(_: str) -> tuple[list[str], list[str]]:
    return [os.path.join(ROOT, "workloads", "context", "context.cpp")], []


def text_bytes(path: str) -> int:
    """Bytes of code."""
    sections = must(["llvm-readelf-19", "-S", "-W", path], "measuring the code")
    return int(re.search(r" \.text +PROGBITS +\w+ +\w+ +(\w+)", sections)[1], 16)


def build(program: str, way: str, files: list[str], words: list[str], folder: str) -> str:
    """Builds a program one way; answers its path. The report of the link lies beside it."""
    plus = "++" if files[0].endswith(".cpp") else ""
    wrapper = os.path.join(ROOT, "build", "llvm", "isotherm-c" + (plus or "c"))
    path = os.path.join(folder, f"{program}-{way}")
    options = WAYS[way]
    if options is None:
        command = [f"clang{plus}-19", "-flto=full", "-fuse-ld=lld"]
    else:
        command = [wrapper, "--isotherm-root=/", f"--isotherm-report={path}.report", *options]
    must([*command, "-O2", "-w", *files, *words, "-o", path], f"building {path}")
    return path


def told(path: str) -> str:
    """Contexts that the link told apart."""
    if not os.path.exists(path + ".report"):
        return "-"
    with open(path + ".report", encoding="utf-8") as file:
        return re.search(r"^contexts (\d+)", file.read(), re.MULTILINE)[1]


def run(tools: Tools, options, folder: str, say) -> list[Table]:
    plan = os.path.join(folder, "all.plan")
    script, statements = os.path.join(folder, "work.lua"), os.path.join(folder, "work.sql")
    quick = 4 if options.quick else 1
    for path, text in ((plan, PLAN.format(sites="")), (script, LUA), (statements, SQL.format(rows=200_000 // quick))):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    cases = {"context": (context, ["--allocations", str(20_000_000 // quick)])}
    if options.sources:
        cases["lua"] = (lua, [script, str(200 // quick)])
        cases["sqlite3"] = (sqlite, [":memory:", f".read {statements}"])
    table = Table("Contexts of four calls, told apart at the link: code, and processor time of guided runs "
                  "(median; ratio to the sites alone, and to plain jemalloc)",
                  ["program", "way", "code", "contexts", "seconds", "spread", "to sites", "to jemalloc"])
    for name, (source, words) in cases.items():
        files, needed = source(options.sources)
        if absent := [file for file in files if not os.path.isfile(file)]:
            raise Problem(f"there is no {absent[0]}; see bench/README.md for --sources")
        contenders, paths = [], {}
        for way in WAYS:
            say(f"building {name}, {way}")
            paths[way] = build(name, way, files, needed, folder)
            start = ["env", f"LD_PRELOAD={tools.peer()}"] if way == "plain" else tools.guided(plan)
            contenders.append(Contender(way, [*start, *TIMED, paths[way], *words]))
        samples = interleave(Program(name, []), contenders, options.rounds, options.limit, say)
        code = text_bytes(paths["plain"])
        for way in WAYS:
            table.row(name, way, f"{text_bytes(paths[way]) / code:.3f}", told(paths[way]),
                      f"{samples.median(way, SECONDS):.2f}", f"{samples.spread(way, SECONDS):.1%}",
                      samples.ratio(way, "sites", SECONDS), samples.ratio(way, "plain", SECONDS))
    if not options.sources:
        table.note("lua and sqlite3 are left out: --sources names no folder with their sources.")
    return [table]
