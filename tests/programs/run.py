"""Real programs, plain against preloaded. See README.md."""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from compare import Case, arguments, run_all  # noqa: E402

PYTHON_TESTS = ["test_capi", "test_gc", "test_threading"]
MORE_PYTHON_TESTS = ["test_subprocess", "test_multiprocessing_fork", "test_mmap", "test_io", "test_faulthandler", "test_ctypes",
                     "test_dict", "test_sqlite3", "test_signal", "test_posix", "test_os", "test_concurrent_futures"]
REDIS_TESTS = ["unit/type/hash", "unit/type/incr", "unit/keyspace", "unit/bitops"]
# Where each site has its own arena, the free memory of one is no room for another: this test requires less than 5 % of
# holes after others have left theirs, and has 12 % in a recorded run, where the plain one has 1 %.
REDIS_WITH_ARENAS = ["--skiptest", "Active defrag eval scripts"]
# The same port for all runs: they follow one another, and none is near the range for outgoing connections.
REDIS_PORT = "21111"


def python_summary(text: bytes) -> bytes:
    """The results per test, without order, times, seeds and the load of the machine."""
    lines = text.decode(errors="replace").splitlines()
    kept = [line for line in lines if re.match(r"(FAIL|ERROR|Tests result|\d+ tests? |    test_)", line)]
    kept += [re.sub(r" in [0-9.]+s", "", line) for line in lines if line.startswith("Ran ")]
    return "\n".join(sorted(kept)).encode()


def redis_summary(text: bytes) -> bytes:
    """The tests that passed, failed and were left out, without colours and times, sorted."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text.decode(errors="replace"))
    kept = []
    for line in plain.splitlines():
        line = re.sub(r" \([0-9]+ m?s(econds)?\)", "", line.strip())
        if re.match(r"(\[(ok|err|ignore|exception)\]|\*\*\*|!!!|\\o/)", line):
            # Figures inside names are measurements: "[ok]: ... used memory 1234".
            kept.append(re.sub(r"\d+", "N", line))
    return "\n".join(sorted(kept)).encode()


def redis_failures(text: bytes) -> bytes:
    """The tests that failed, and the result: which of the whole suite's tests run depends on the load of the
    machine, so that two plain runs differ in those that passed."""
    kept = [line for line in redis_summary(text).splitlines() if not re.match(rb"\[(ok|ignore)\]", line)]
    return b"\n".join(kept)


def nothing(_: bytes) -> bytes:
    return b""


def source(what: str, folder: str) -> str:
    """The folder of a fetched suite; ends the program where it cannot be fetched."""
    if subprocess.run([os.path.join(HERE, "fetch-source.sh"), what, folder], check=False).returncode != 0:
        sys.exit(f"programs: the sources of {what} could not be fetched, so its tests cannot run")
    return os.path.join(folder, what)


def python_case(name: str, tests: list[str], folder: str, settings: list[str]) -> Case:
    path = source("python", folder)
    command = ["env", f"PYTHONPATH={path}", *settings, "/usr/bin/python3", "-m", "test", "-v", *tests]
    return Case(name, command, python_summary, 300 + 60 * len(tests) // 4, clean_errors=nothing, must_succeed=True)


def redis_case(name: str, tests: list[str], folder: str) -> Case:
    path = source("redis", folder)
    command = ["env", "-C", path, "./runtest", "--clients", "2", "--baseport", REDIS_PORT]
    for test in tests:
        command += ["--single", test]
    if not tests:
        return Case(name, command, redis_failures, 3600, clean_errors=nothing, must_succeed=True,
                    in_mode={"record": REDIS_WITH_ARENAS, "online": REDIS_WITH_ARENAS})
    return Case(name, command, redis_summary, 300, clean_errors=nothing, must_succeed=True)


def cases(which: str, folder: str) -> list[Case]:
    def script(name: str) -> Case:
        return Case(name, ["/bin/bash", os.path.join(HERE, "scripts", f"{name}.sh")], must_succeed=True)

    if which == "redis":
        return [redis_case("redis-whole-suite", [], folder)]
    chosen = [
        script("coreutils"),
        script("git"),
        python_case("python", PYTHON_TESTS, folder, []),
        redis_case("redis", REDIS_TESTS, folder),
    ]
    if which == "long":
        # Small objects through malloc as well, instead of Python's own pools.
        chosen.append(python_case("python-malloc", PYTHON_TESTS, folder, ["PYTHONMALLOC=malloc"]))
        chosen.append(python_case("python-more", MORE_PYTHON_TESTS, folder, []))
        chosen += [workload(name) for name in ("redis", "graphicsmagick", "sqlite", "numpy")]
    return chosen


def workload(name: str) -> Case:
    """A script of workloads/debian; here the whole script runs preloaded."""
    path = os.path.join(os.path.dirname(os.path.dirname(HERE)), "workloads", "debian", name, "run.sh")
    return Case(f"workload-{name}", [path], clean_errors=nothing, must_succeed=True)


def main() -> int:
    parser = arguments("Compares real programs, plain against preloaded.")
    parser.add_argument("--set", choices=["short", "long", "redis"], default="short",
                        help="short: under three minutes a mode; long: more; redis: its whole test suite")
    parser.add_argument("--sources", default=os.path.join(HERE, "build"), help="where fetched sources are kept")
    parser.add_argument("--long", action="store_true", help="the long set and redis's whole suite")
    options = parser.parse_args()
    folder = os.path.abspath(options.sources)
    chosen = cases("long", folder) + cases("redis", folder) if options.long else cases(options.set, folder)
    return run_all("programs", chosen, options)


sys.exit(main())
