"""`python -m isotherm`: the command line, with Python scripts as programs.

    python -m isotherm record -o app.iso script.py data.csv

A script stands where the program does, without `--`; it runs under this interpreter. Everything else is the command line's own.
"""
import os
import sys

from ._command import ABSENT, command


def with_interpreter(words):
    """The arguments of the command line; the first script among them, and what follows, is a program of this interpreter."""
    if "--" in words:
        return words
    for at, word in enumerate(words):
        if at > 0 and word.endswith(".py") and os.path.isfile(word):
            return [*words[:at], "--", sys.executable, *words[at:]]
    return words


def main():
    program = command()
    if program is None:
        sys.exit(ABSENT)
    # The script of pip has the same name, and this process is replaced, so signals reach the command line itself.
    os.execv(program, [program, *with_interpreter(sys.argv[1:])])


if __name__ == "__main__":
    main()
