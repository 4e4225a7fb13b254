"""The example of docs/interface in four languages: one result, wherever its data is."""
import re
import unittest

from support import FORTRAN, PROGRAMS, PYTHON, compiled, isotherm, must, python, under_double, under_isotherm

SCALE = 14
LONGEST = 40


def result():
    """The example's last line, by a plain program."""
    vertices, prime = 1 << SCALE, 1000000007
    spread = [i * 2654435761 % 2**32 * vertices // 2**32 for i in range(8 * vertices)]
    links = [x * x // vertices for x in spread]
    ranks = [1] * vertices
    for _ in range(10):
        ranks = [(v + sum(ranks[link] for link in links[8 * v:8 * v + 8])) % prime for v in range(vertices)]
    return f"checksum {sum(ranks) % prime}"


def commands():
    """The example's commands, by language."""
    yield "C", [compiled(PROGRAMS / "ranks.c", "gcc")]
    yield "C++", [compiled(PROGRAMS / "ranks.cpp", "g++")]
    for compiler in FORTRAN:
        yield compiler, [compiled(PROGRAMS / "ranks.f90", compiler)]
    yield "Python", [python(), PROGRAMS / "ranks.py"]


class Example(unittest.TestCase):
    def results(self, run):
        wanted = result()
        for language, command in commands():
            with self.subTest(language):
                lines = run([*command, str(SCALE)]).splitlines()
                self.assertEqual(lines[1:], [wanted])
                self.assertRegex(lines[0], r"^moved \d+ bytes to fast memory: .+$")
                yield language, lines[0]

    def test_without_a_runtime_the_program_runs_and_moves_nothing(self):
        sentences = {line for _, line in self.results(lambda command: must(command, **PYTHON))}
        self.assertEqual(len(sentences), 1, sentences)
        self.assertTrue(sentences.pop().startswith("moved 0 bytes"))

    def test_each_language_makes_the_same_calls(self):
        logs = {}

        def run(command):
            output, log = under_double(command, **PYTHON)
            logs[str(command)] = sorted({re.sub(r" policy.*", "", line) for line in log if re.match("alloc|profile|optimize", line)})
            return output

        for language, line in self.results(run):
            self.assertTrue(line.startswith("moved 1 bytes"), language)
        vertices = 1 << SCALE
        wanted = [f"alloc {name} {vertices * bytes_each}" for name, bytes_each in (("links", 32), ("next", 8), ("ranks", 8))]
        for command, log in logs.items():
            self.assertLessEqual({*wanted, "profile_start", "profile_stop"}, set(log), command)

    def test_under_the_runtime_the_result_is_the_same(self):
        isotherm()
        for _ in self.results(under_isotherm):
            pass

    def test_the_programs_are_short(self):
        for path in PROGRAMS.glob("ranks.*"):
            self.assertLessEqual(len(path.read_text().splitlines()), LONGEST, path)
