"""Every call of every language, and its misuse: without a runtime, under the stand-in, under the runtime."""
import unittest

from support import C, CXX, FORTRAN, HERE, PYTHON, VERSION, compiled, isotherm, must, python, under_double, under_isotherm

SANITIZED = ["-fsanitize=address,undefined", "-g"]


class Atmem(unittest.TestCase):
    """ATMem's five functions under its own names."""

    def test_without_a_runtime_all_memory_is_freed_once(self):
        for compiler in C:
            must([compiled(HERE / "atmem.c", compiler, *SANITIZED)])

    def test_every_call_reaches_the_runtime(self):
        for compiler in C:
            _, log = under_double([compiled(HERE / "atmem.c", compiler)])
            # Allocations are the program's own calls of malloc and free, which a site names: no function of the runtime is called.
            self.assertEqual(log, ["profile_start", "profile_stop", "optimize"])

    def test_under_the_runtime(self):
        isotherm()
        for compiler in C:
            under_isotherm([compiled(HERE / "atmem.c", compiler)])


class Refused(unittest.TestCase):
    """A runtime of another hundred of versions is one that is not there: it is asked whether it serves the program, and no more."""

    def asks_only(self, command, **environment):
        _, log = under_double(command, DOUBLE_REFUSES="1", **environment)
        self.assertEqual(set(log), {f"refuses {VERSION}"})

    def test_c(self):
        for compiler in C:
            self.asks_only([compiled(HERE / "atmem.c", compiler)])

    def test_cpp(self):
        self.asks_only([compiled(HERE / "calls.cpp", "g++")])

    def test_fortran(self):
        for compiler in FORTRAN:
            self.asks_only([compiled(HERE / "calls.f90", compiler)])

    def test_python(self):
        self.asks_only([python(), HERE / "calls.py"], **PYTHON)


class Cpp(unittest.TestCase):
    def test_without_a_runtime_all_memory_is_freed_once(self):
        for compiler in CXX:
            must([compiled(HERE / "calls.cpp", compiler, *SANITIZED)], ASAN_OPTIONS="allocator_may_return_null=1")

    def test_every_call_reaches_the_runtime(self):
        _, log = under_double([compiled(HERE / "calls.cpp", "g++")])
        kinds = [line.split()[0] for line in log]
        self.assertGreater(kinds.count("alloc"), 100)
        self.assertEqual(kinds.count("profile_start"), kinds.count("profile_stop"))
        self.assertIn("optimize policy 1 fast 0 share 0.5", log)

    def test_under_the_runtime(self):
        under_isotherm([compiled(HERE / "calls.cpp", "g++")])


class Fortran(unittest.TestCase):
    def test_without_a_runtime(self):
        for compiler in FORTRAN:
            must([compiled(HERE / "calls.f90", compiler)])

    def test_every_call_reaches_the_runtime(self):
        for compiler in FORTRAN:
            _, log = under_double([compiled(HERE / "calls.f90", compiler)])
            self.assertEqual([line.split()[0] for line in log].count("alloc"), 7)
            self.assertIn("register grid 8000000", log)

    def test_under_the_runtime(self):
        isotherm()
        for compiler in FORTRAN:
            under_isotherm([compiled(HERE / "calls.f90", compiler)])


class Python(unittest.TestCase):
    def test_without_a_runtime(self):
        must([python(), HERE / "calls.py"], **PYTHON)

    def test_every_call_reaches_the_runtime(self):
        _, log = under_double([python(), HERE / "calls.py"], **PYTHON)
        kinds = [line.split()[0] for line in log]
        self.assertGreater(kinds.count("register"), 200)
        self.assertLessEqual(kinds.count("register") - kinds.count("unregister"), 2)

    def test_under_the_runtime(self):
        under_isotherm([python(), HERE / "calls.py"])
