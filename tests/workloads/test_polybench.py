"""The kernels of PolyBench: their results are those of their equations."""
import polybench_equations
from kernels import KernelTest, checked

NAMES = list(polybench_equations.KERNELS)


def sizes(name, **values):
    """The words of the sizes that a kernel has."""
    return [word for size, value in values.items() if size in SIZES_OF.get(name, ["n"]) for word in (f"--{size}", value)]


# Of kernels that have more than n.
WITH_M = ["gemm", "2mm", "3mm", "symm", "syrk", "syr2k", "trmm", "doitgen", "gramschmidt", "correlation", "covariance"]
WITH_STEPS = ["dynprog", "adi", "fdtd-2d", "fdtd-apml", "jacobi-1d", "jacobi-2d", "seidel-2d"]
SIZES_OF = {name: ["n", "m"] for name in WITH_M} | {name: ["n", "steps"] for name in WITH_STEPS} | {"reg_detect": ["n", "m", "steps"]}


class PolyBench(KernelTest):
    program = "polybench"

    def checksum(self, name, *words):
        return float(self.result("--kernel", name, *words)[0].split()[-1])

    def test_every_kernel_computes_its_equations(self):
        for name in NAMES:
            for given in ({"n": 13, "m": 17, "steps": 2}, {"n": 2, "m": 3, "steps": 1}, polybench_equations.SIZES):
                with self.subTest(kernel=name, sizes=given):
                    wanted = polybench_equations.result(name, **given)
                    self.assertAlmostEqual(self.checksum(name, *sizes(name, **given)) / wanted, 1, delta=1e-9)

    def test_the_program_checks_itself_and_stays_within_its_objects(self):
        lines = self.result("--kernel", "all", "--check", binary=checked("polybench"))
        self.assertEqual(lines, [f"{name}: agrees with the second implementation" for name in NAMES])

    def test_a_repeated_kernel_begins_with_the_same_values(self):
        for name in NAMES:
            words = ["--kernel", name, *sizes(name, n=9, m=11, steps=2)]
            with self.subTest(kernel=name):
                self.assertEqual(self.result(*words, "--repeat", 1), self.result(*words, "--repeat", 3))

    def test_each_object_has_a_name_and_a_site(self):
        for name in NAMES:
            with self.subTest(kernel=name):
                self.assert_each_object_has_a_name_and_a_site("--kernel", name, *sizes(name, n=9, m=11, steps=2))

    def test_objects_are_those_of_the_equations(self):
        names = [name for name, _ in self.listed("--kernel", "3mm", "--n", 10, "--m", 4)]
        self.assertEqual(names, list("ABCDEFG"))
        self.assertEqual(self.listed("--kernel", "doitgen", "--n", 10, "--m", 4), [["A", "3200"], ["sum", "3200"], ["C4", "128"]])

    def test_the_list_names_every_kernel(self):
        self.assertEqual([line.split()[0] for line in self.result("--list")], NAMES)

    def test_sizes_that_a_kernel_has_not_are_refused(self):
        self.assertIn("atax has no --m", self.refusal("--kernel", "atax", "--m", 5))
        self.assertIn("gemm has no --steps", self.refusal("--kernel", "gemm", "--steps", 5))
        self.assertIn("--n of lu wants at most 1048576", self.refusal("--kernel", "lu", "--n", 2000000))
        self.assertIn("--m of gramschmidt wants at least --n", self.refusal("--kernel", "gramschmidt", "--n", 10, "--m", 9))
        self.assertIn("--n wants a whole number from 2", self.refusal("--n", 1))
        self.assertIn("--kernel wants one of all|gemm|", self.refusal("--kernel", "gemma"))

    def test_sizes_that_do_not_fit_are_refused(self):
        self.assertIn("needs more memory than there is", self.refusal("--kernel", "doitgen", "--n", 16384, "--m", 1048576))
