"""Uses all of the package isotherm and misuses it: without a runtime, under the stand-in (double.c), under the runtime."""
import array
import gc
import mmap
import os
import threading
import unittest

import isotherm
from isotherm import Status

try:
    import numpy
except ImportError:
    numpy = None

ABSENT = isotherm.version() == 0
DONE = Status.ABSENT if ABSENT else Status.OK
# Whether the stand-in (double.c) serves this program and logs its calls.
LOGGED = "DOUBLE_LOG" in os.environ and not ABSENT
# Memory of the heap has the name of its allocation; the stand-in knows no heap.
OF_HEAP = DONE if ABSENT or "DOUBLE_LOG" in os.environ else Status.OVERLAP


def private(size):
    """Memory of the program's own that no allocator gave."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def resident():
    """Resident bytes of this process."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def logged():
    """Lines of the stand-in's log."""
    with open(os.environ["DOUBLE_LOG"], encoding="utf-8") as file:
        return file.read().splitlines()


class Registrations(unittest.TestCase):
    def test_an_array_is_registered_once(self):
        numbers = private(1 << 20)
        with isotherm.register(numbers, "numbers") as registration:
            self.assertEqual(registration.status, DONE)
            for part in (numbers, memoryview(numbers)[10:20]):
                with self.assertRaises(isotherm.Error) as refused:
                    isotherm.register(part, "again")
                self.assertEqual(refused.exception.status, Status.OVERLAP)
        registration.unregister()
        with isotherm.register(numbers, "numbers") as registration:
            self.assertEqual(registration.status, DONE)

    def test_memory_of_the_heap_has_a_name(self):
        with isotherm.register(array.array("d", bytes(8000)), "numbers") as registration:
            self.assertEqual(registration.status, OF_HEAP)

    def test_a_registration_ends_with_its_array(self):
        for _ in range(200):
            isotherm.register(array.array("d", bytes(8000)), "numbers")
            isotherm.register(private(1 << 16), "mapped")

    def test_an_object_without_weak_references_is_held(self):
        block = bytearray(8000)
        registration = isotherm.register(block, "block")
        with self.assertRaises(BufferError):
            block.append(1)
        registration.unregister()
        registration.unregister()
        block.append(1)
        del registration
        isotherm.register(block, "block")
        block.append(1)

    def test_registrations_of_threads(self):
        def work():
            for _ in range(100):
                isotherm.register(array.array("d", bytes(800)), "numbers")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def test_nothing_has_no_name(self):
        for action in (lambda: isotherm.register(bytearray(), "nothing"), lambda: isotherm.hint(b"", "hot")):
            with self.assertRaises(isotherm.Error) as refused:
                action()
            self.assertEqual(refused.exception.status, Status.INVALID)

    def test_memory_in_pieces_is_refused(self):
        with self.assertRaises(BufferError):
            isotherm.register(memoryview(bytearray(100))[::2], "pieces")

    def test_names_are_checked(self):
        for bad in ("", "x" * 64, "line\n", "a\0b", "ä" * 32):
            with self.assertRaises(ValueError, msg=bad):
                isotherm.register(bytearray(8), bad)
            with self.assertRaises(ValueError, msg=bad):
                isotherm.named(bad)
        with isotherm.named("ä" * 31), isotherm.register(bytearray(8), "x" * 63):
            pass


class Phases(unittest.TestCase):
    def test_a_profile_is_a_block(self):
        with self.assertRaises(KeyError), isotherm.profile():
            raise KeyError
        self.assertFalse(isotherm.statistics().profiling)
        with isotherm.profile() as profile:
            if profile.status == Status.OK:
                self.assertTrue(isotherm.statistics().profiling)
        self.assertEqual(profile.status == Status.ABSENT, ABSENT)
        self.assertFalse(isotherm.statistics().profiling)

    def test_an_optimization_says_what_it_did(self):
        done = isotherm.optimize(fast=1 << 20, share=0.5, policy="atmem")
        self.assertEqual(done.status == Status.ABSENT, ABSENT)
        self.assertEqual(len(done.stayed_bytes), len(isotherm.Reason))
        if LOGGED:
            self.assertEqual((done.capacity_bytes, done.stayed_bytes), (9, (10, 11, 12, 13, 14, 15, 16, 17)))
            self.assertEqual(done.frequency, 18)
        with self.assertRaises(ValueError):
            isotherm.optimize(policy="none of them")
        for wrong in ({"share": 7}, {"share": -0.1}, {"share": float("nan")}, {"fast": -1}):
            with self.assertRaises(isotherm.Error) as refused:
                isotherm.optimize(**wrong)
            self.assertEqual(refused.exception.status, Status.INVALID)

    def test_each_object_has_an_outcome(self):
        with isotherm.profile():
            pass
        done = isotherm.optimize()
        outcomes = isotherm.outcomes()
        self.assertTrue(outcomes == [] or done.status not in (Status.ABSENT, Status.NO_OBSERVER))
        if LOGGED:
            self.assertEqual([(outcome.name, outcome.bytes) for outcome in outcomes], [("ranks", 2), ("", 2)])
            self.assertEqual(outcomes[1].stayed_bytes, (10, 11, 12, 13, 14, 15, 16, 17))

    def test_a_profile_has_a_frequency(self):
        with isotherm.profile(frequency=2000) as profile:
            self.assertEqual(profile.status == Status.ABSENT, ABSENT)
        if LOGGED:
            self.assertIn("profile_start at 2000", logged())
        for wrong in (0, -1, 20_001):
            with self.assertRaises(isotherm.Error) as refused:
                isotherm.profile(frequency=wrong)
            self.assertEqual(refused.exception.status, Status.INVALID)

    def two_optimize(self):
        """How many of two threads were answered BUSY."""
        statuses = []
        threads = [threading.Thread(target=lambda: statuses.append(isotherm.optimize().status)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(statuses), 2)
        return statuses.count(Status.BUSY)

    def test_one_thread_optimizes(self):
        is_slow = "DOUBLE_SLEEP_MS" in os.environ and not ABSENT
        # On a busy machine the second thread may begin when the first has its answer.
        for _ in range(100):
            busy = self.two_optimize()
            self.assertLess(busy, 2)
            if busy or not is_slow:
                break
        self.assertTrue(busy or not is_slow)

    def test_hints(self):
        numbers = array.array("d", bytes(8000))
        for heat in ("hot", "cold", "streaming", "unknown"):
            self.assertEqual(isotherm.hint(numbers, heat), DONE)
        with self.assertRaises(ValueError):
            isotherm.hint(numbers, "warm")

    def test_a_status_is_a_sentence(self):
        self.assertTrue(all(len(str(status)) > 1 for status in Status))
        self.assertTrue(all(len(str(reason)) > 1 for reason in isotherm.Reason))
        self.assertEqual(isotherm.statistics().status, DONE)


@unittest.skipIf(numpy is None, "there is no NumPy")
class Arrays(unittest.TestCase):
    def test_arrays_of_a_block_have_its_name(self):
        with isotherm.named("grid"):
            grid = numpy.zeros(5000)
            with isotherm.named("inner"):
                inner = numpy.arange(3000)
            sums = grid + 1
        other = numpy.zeros(7000)
        self.assertEqual((grid.sum(), inner.sum(), sums.sum(), other.sum()), (0, 2999 * 1500, 5000, 0))
        if LOGGED:
            made = [line for line in logged() if line.startswith("alloc")]
            self.assertEqual([made.count(f"alloc {name}") for name in ("grid 40000", "inner 24000", "other 56000")], [2, 1, 0])

    def test_zeros_take_no_memory_until_they_are_touched(self):
        before = resident()
        with isotherm.named("zeros"):
            zeros = numpy.zeros(1 << 24)
        self.assertLess(resident() - before, zeros.nbytes // 2)
        self.assertFalse(zeros.any())

    def test_named_memory_grows_and_ends(self):
        with isotherm.named("growing"):
            numbers = numpy.ones(2000)
        for size in (100_000, 1000, 3):
            numbers.resize(size, refcheck=False)
            self.assertEqual(numbers[:2000].sum(), min(size, 2000))
        del numbers
        gc.collect()

    def test_other_threads_keep_their_handler(self):
        with isotherm.named("of this thread"):
            thread = threading.Thread(target=lambda: numpy.zeros(11111))
            thread.start()
            thread.join()
        if LOGGED:
            self.assertNotIn("alloc of this thread 88888", logged())

    def test_an_array_in_any_order_is_registered_whole(self):
        grid = numpy.asfortranarray(numpy.ones((50, 40)))
        isotherm.register(grid, "columns")
        isotherm.register(numpy.broadcast_to(numpy.ones(9), (1, 9)), "read only")
        if LOGGED:
            self.assertIn("register columns 16000", logged())

    def test_the_registration_of_a_view_lasts_as_long_as_the_memory(self):
        grid = numpy.ones(1000)
        isotherm.register(grid[10:900], "view")
        gc.collect()
        with self.assertRaises(isotherm.Error):
            isotherm.register(grid, "whole")


if __name__ == "__main__":
    unittest.main(verbosity=2)
