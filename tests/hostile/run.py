"""The hostile programs, plain against preloaded. See README.md."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from compare import Case, arguments, run_all  # noqa: E402


def read_cases(build: str) -> list[Case]:
    cases = []
    with open(os.path.join(HERE, "cases.txt"), encoding="utf-8") as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                cases.append(Case(words[0], [os.path.join(build, words[1]), *words[2:]], seconds=30))
    return cases


def main() -> int:
    parser = arguments("Compares hostile programs, plain against preloaded.")
    parser.add_argument("--build", default=os.path.join(HERE, "build"), help="where the programs are built")
    options = parser.parse_args()
    build = os.path.abspath(options.build)
    make = subprocess.run(["make", "-s", "-j2", "-C", HERE, f"OUT={build}"], check=False)
    if make.returncode != 0:
        print("hostile: the programs could not be built", file=sys.stderr)
        return 1
    return run_all("hostile", read_cases(build), options)


sys.exit(main())
