"""Builds the programs with named objects and runs them."""
import functools
import os
import subprocess
import unittest

from graph import BUILD, ROOT, must

HERE = ROOT / "tests" / "workloads"


@functools.cache
def built(name):
    must(["make", "-s", "-C", ROOT / "workloads", f"OUT={BUILD}", name])
    return BUILD / name


@functools.cache
def checked(name):
    """With checks of every access to memory and of all arithmetic."""
    out = BUILD / "sanitized"
    must(["make", "-s", "-C", HERE, f"OUT={out}", out / name])
    return out / name


class KernelTest(unittest.TestCase):
    program = ""

    def run_program(self, binary, *words, **environment):
        command = [str(word) for word in (binary, *words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})

    def result(self, *words, binary=None):
        """The lines that a run that succeeds prints on standard output."""
        done = self.run_program(binary or built(self.program), *words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def refusal(self, *words):
        """The one sentence of a run that is refused."""
        done = self.run_program(checked(self.program), *words, ASAN_OPTIONS="allocator_may_return_null=1")
        sentences = [line for line in done.stderr.splitlines() if line.startswith(f"{self.program}: ")]
        self.assertEqual((done.returncode, len(sentences), done.stdout), (2, 1, ""), done.stderr)
        return sentences[0]

    def named(self, *words):
        """The objects of a run where a runtime is loaded: lists of name, bytes and place of the call."""
        done = self.run_program(built(self.program), *words, LD_PRELOAD=str(checked("named_objects.so")))
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("named ")]

    def listed(self, *words):
        """The objects that `--objects` prints: lists of name and bytes."""
        return [line.split()[1:] for line in self.result("--objects", *words) if line.startswith("object ")]

    def assert_each_object_has_a_name_and_a_site(self, *words):
        named, listed = self.named(*words), self.listed(*words)
        self.assertEqual([words[:2] for words in named], listed)
        self.assertEqual(len({name for name, _ in listed}), len(listed), listed)
        self.assertEqual(len({site for _, _, site in named}), len(named), named)
