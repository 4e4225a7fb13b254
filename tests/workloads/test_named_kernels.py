"""The look-up of cross-sections, the zones of parts, and STREAM's loops."""
from kernels import KernelTest, checked


class Lookup(KernelTest):
    program = "lookup"
    SMALL = ["--nuclides", 10, "--gridpoints", 300, "--lookups", 5000]

    def test_it_agrees_with_a_search_of_each_nuclide(self):
        for words in (self.SMALL, ["--nuclides", 1, "--gridpoints", 2, "--lookups", 100], ["--gridpoints", 50, "--lookups", 500]):
            with self.subTest(words=words):
                lines = self.result(*words, "--check", "--threads", 1, binary=checked("lookup"))
                self.assertIn("lookup: agrees with a search of each nuclide's grid", lines)

    def test_results_do_not_depend_on_the_number_of_threads(self):
        one, two, five = (self.result(*self.SMALL, "--threads", threads) for threads in (1, 2, 5))
        self.assertEqual(one, two)
        self.assertEqual(one, five)

    def test_each_object_has_a_name_and_a_site(self):
        self.assert_each_object_has_a_name_and_a_site(*self.SMALL)
        sizes = [["nuclide_grid", str(3000 * 48)], ["energy_grid", str(3000 * (8 + 4 * 10))]]
        self.assertEqual(self.listed(*self.SMALL), sizes)

    def test_sizes_that_do_not_fit_are_refused(self):
        self.assertIn("need more memory than there is", self.refusal("--nuclides", 65536, "--gridpoints", 16777216))


class Zones(KernelTest):
    program = "zones"
    SMALL = ["--parts", 50, "--zones", 30, "--cycles", 7]

    def test_it_agrees_with_the_zones_of_one_part(self):
        for words in (self.SMALL, ["--parts", 1, "--zones", 1], ["--parts", 7, "--zones", 100, "--repeat", 2]):
            with self.subTest(words=words):
                lines = self.result(*words, "--check", "--threads", 1, binary=checked("zones"))
                self.assertIn("zones: agrees with the zones of one part", lines)

    def test_results_depend_neither_on_threads_nor_on_the_schedule(self):
        one = self.result(*self.SMALL, "--threads", 1)
        for threads in (2, 5):
            for schedule in ("static", "dynamic", "guided"):
                self.assertEqual(one, self.result(*self.SMALL, "--threads", threads, "--schedule", schedule))

    def test_each_object_has_a_name_and_a_site(self):
        self.assert_each_object_has_a_name_and_a_site(*self.SMALL)
        self.assertEqual(self.listed(*self.SMALL), [["parts", str(50 * 4096)], ["zones", str(1500 * 32)]])

    def test_sizes_that_do_not_fit_are_refused(self):
        self.assertIn("need more memory than there is", self.refusal("--parts", 16777216, "--zones", 16777216))


class MemBench(KernelTest):
    program = "membench"
    SMALL = ["--hot", "64KiB", "--cold", "256KiB", "--passes", 3]

    def test_each_object_is_written_once_in_each_pass(self):
        for words in (self.SMALL, [*self.SMALL, "--delay", 50], ["--hot", "4KiB", "--cold", "0B", "--passes", 1]):
            with self.subTest(words=words):
                lines = self.result(*words, "--check", "--threads", 1, binary=checked(self.program))
                self.assertIn(f"{self.program}: each object was written once in each pass", lines)

    def test_results_do_not_depend_on_the_number_of_threads(self):
        one, two, five = (self.result(*self.SMALL, "--threads", threads) for threads in (1, 2, 5))
        self.assertEqual(one, two)
        self.assertEqual(one, five)

    def test_each_object_has_a_name_and_a_site(self):
        self.assert_each_object_has_a_name_and_a_site(*self.SMALL)
        self.assertEqual(self.listed(*self.SMALL), [["cold", str(256 << 10)], ["hot", str(64 << 10)]])

    def test_sizes_that_do_not_fit_are_refused(self):
        self.assertIn("are more memory than there is", self.refusal("--cold", "1024GiB", "--hot", "1024GiB"))


class NumaBench(MemBench):
    program = "numabench"
    SMALL = ["--hot", "64KiB", "--cold", "256KiB", "--passes", 3, "--remote", 25]

    def test_each_object_has_a_name_and_a_site(self):
        self.assert_each_object_has_a_name_and_a_site(*self.SMALL)
        self.assertEqual(self.listed(*self.SMALL), [["cold", str(256 << 10)], ["hot_local", str(48 << 10)], ["hot_remote", str(16 << 10)]])


class Stream(KernelTest):
    program = "stream"
    SMALL = ["--size", "240KiB", "--iterations", 5]

    def test_it_agrees_with_the_values_of_one_element(self):
        for words in ([], ["--static"], ["--repeat", 2]):
            with self.subTest(words=words):
                lines = self.result(*self.SMALL, *words, "--check", "--threads", 1, binary=checked("stream"))
                self.assertIn("stream: agrees with the values of one element", lines)

    def test_results_depend_neither_on_threads_nor_on_the_kind_of_storage(self):
        one = self.result(*self.SMALL, "--threads", 1)
        self.assertEqual(one, self.result(*self.SMALL, "--threads", 3))
        self.assertEqual(one, self.result(*self.SMALL, "--static"))

    def test_values_stay_as_large_as_they_are(self):
        few, many = (float(self.result("--size", "3KiB", "--iterations", count)[0].split()[-1]) for count in (5, 20001))
        self.assertAlmostEqual(many / few, 1, delta=1e-9)

    def test_each_object_has_a_name_and_a_site(self):
        self.assert_each_object_has_a_name_and_a_site(*self.SMALL)
        self.assertEqual([name for name, _ in self.listed(*self.SMALL)], ["a", "b", "c"])

    def test_more_than_the_static_arrays_hold_is_refused(self):
        self.assertIn("--static has arrays of 192MiB", self.refusal("--static", "--size", "193MiB"))

    def test_sizes_that_do_not_fit_are_refused(self):
        self.assertIn("1024GiB is more memory than there is", self.refusal("--size", "1024GiB"))
