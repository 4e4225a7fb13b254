"""The graph program through Isotherm's interface: `--optimize` profiles the first repetition and has the data moved."""
import os
import unittest

from graph import KERNELS, GraphTest, program, sanitized

MEASURES = {"profile_start_seconds", "profile_stop_seconds", "optimize_seconds", "select_seconds", "move_seconds", "samples", "selected_bytes",
            "placed_bytes", "promoted_bytes", "demoted_bytes", "failed_bytes"}


def isotherm():
    """The command line to test with, as `run --isotherm` says."""
    path = os.environ.get("ISOTHERM")
    if not path:
        raise unittest.SkipTest("run was not told a command line (--isotherm)")
    return path


def measures(text):
    """The lines `name value` of standard error."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].replace(".", "", 1).isdigit()}


class Optimize(GraphTest):
    def succeed(self, *command):
        done = self.run_program(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_each_kernel_has_the_same_output_by_the_interface_without_a_runtime(self):
        for kernel in KERNELS:
            with self.subTest(kernel=kernel):
                words = ["--rmat", 10, "--kernel", kernel, "--iterations", 10, "--roots", 4, "--repeat", 2]
                by_interface = self.succeed(sanitized("graph"), *words, "--optimize")
                self.assertEqual(by_interface.stdout, self.result(*words))
                self.assertEqual(by_interface.stderr.count("graph: isotherm_profile_start: Isotherm's runtime is not loaded"), 1)
                self.assertEqual(by_interface.stderr.count("graph: "), 1)

    def test_a_graph_from_a_file_has_the_same_output_by_the_interface(self):
        path = self.write("graph.el", "0 1\n1 2\n3 4\n5 5\n")
        words = ["--input", path, "--copies", 3, "--kernel", "all", "--repeat", 2]
        self.assertEqual(self.succeed(sanitized("graph"), *words, "--optimize").stdout, self.result(*words))

    def test_the_first_repetition_and_the_later_ones_have_times_of_their_own(self):
        words = ["--rmat", 10, "--kernel", "pagerank"]
        once, thrice = (measures(self.succeed(program(), *words, "--repeat", count).stderr) for count in (1, 3))
        self.assertFalse({"first_seconds", "later_seconds"} & once.keys())
        self.assertFalse(MEASURES & thrice.keys())
        self.assertAlmostEqual(thrice["first_seconds"] + 2 * thrice["later_seconds"], thrice["kernel_seconds"], delta=4e-6)
        moved = measures(self.succeed(program(), *words, "--repeat", 3, "--optimize").stderr)
        self.assertEqual(moved.keys() - thrice.keys(), MEASURES)

    def test_one_repetition_leaves_nothing_to_optimize(self):
        for words in ([], ["--repeat", 1]):
            self.assertIn("--optimize needs --repeat 2 or more", self.refusal("--rmat", 4, "--optimize", *words))

    def test_the_runtime_moves_the_hot_arrays_after_the_first_repetition(self):
        words = ["--rmat", 19, "--threads", 1, "--kernel", "pagerank", "--iterations", 20, "--repeat", 2]
        # No move but the requested one: the run would decide by itself only after an hour.
        # All samples count: the ranks fit in a large third cache.
        run = [isotherm(), "run", "--optimize-after", "1h", "--cache", "0B", "--tiers", "emulated:cxl", "--fast", "8MiB", "--"]
        done = self.succeed(*run, program(), *words, "--optimize")
        self.assertEqual(done.stdout, self.result(*words))
        moved = measures(done.stderr)
        self.assertGreater(moved["promoted_bytes"], 0, done.stderr)
        self.assertLessEqual(moved["promoted_bytes"], 8 << 20)
        self.assertEqual(moved["failed_bytes"], 0, done.stderr)
        self.assertNotIn("graph: isotherm_", done.stderr)

    def test_a_run_that_serves_no_requests_is_reported_once(self):
        words = ["--rmat", 10, "--kernel", "pagerank", "--repeat", 2]
        done = self.succeed(isotherm(), "record", "-o", self.folder / "graph.iso", "--", program(), *words, "--optimize")
        self.assertEqual(done.stdout, self.result(*words))
        self.assertEqual(done.stderr.count("graph: isotherm_profile_start: no process observes this one"), 1, done.stderr)
