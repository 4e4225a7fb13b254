"""Profiles of Java programs, recorded by the release build."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ISOTHERM = os.environ.get("ISOTHERM", "isotherm")
MIB = 1 << 20
HOT, COLD = 8, 64


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
    return done


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("javac"):
            raise unittest.SkipTest("no JDK is installed")
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.directory.name)
        sources = [HERE.parent.parent / "workloads/java/MemBench.java", HERE / "Ranks.java"]
        run("javac", "-g", "-d", cls.path, *sources)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def record(self, name, flags, words):
        """The report of a recorded run of java, and the run."""
        profile = self.path / f"{name}.iso"
        done = run(ISOTHERM, "record", "--force", "-o", profile, *flags, "--", "java", "-cp", self.path, *words)
        return json.loads(run(ISOTHERM, "report", "--json", profile).stdout), done

    def membench(self, name, machine=(), flags=(), passes=1000):
        words = ["-Xms256m", "-Xmx256m", *machine, "MemBench", "--hot", HOT, "--cold", COLD, "--passes", passes]
        return self.record(name, ["--cache", "0B", "--allocation-interval", "64KiB", *flags], words)


def site(report, klass):
    """The site that allocates a class of the program."""
    java = [it for it in report["sites"] if it["kind"] == "java"]
    found = [it for it in java if it["location"].endswith(f"new {klass}")]
    assert len(found) == 1, (klass, [it["location"] for it in java if "Ranks" in it["location"] or "MemBench" in it["location"]])
    return found[0]


class MemBench(Recorded):
    def check_heat(self, report):
        hot, cold = site(report, "MemBench$HotObject"), site(report, "MemBench$ColdObject")
        self.assertEqual(hot["kind"], "java")
        self.assertGreater(hot["accesses"], 20 * cold["accesses"] + 100)
        # Objects are sampled each 64 KiB: of 128 and 1,024 samples these are more than four standard deviations.
        self.assertTrue(0.6 * HOT * MIB < hot["peak_rss_bytes"] < 1.4 * HOT * MIB, hot["peak_rss_bytes"])
        self.assertTrue(0.85 * COLD * MIB < cold["peak_rss_bytes"] < 1.15 * COLD * MIB, cold["peak_rss_bytes"])
        return hot, cold

    def test_hot_and_cold_objects_of_one_array_are_sites_of_their_own(self):
        report, done = self.membench("g1")
        hot, _ = self.check_heat(report)
        self.assertIn("MemBench.java:", hot["location"])
        self.assertIn("MemBench.makeHot", hot["callers"][0]["function"])
        java = report["java"]
        self.assertGreater(java["allocation_sites"], 2)
        self.assertGreater(java["types"], 2)
        self.assertGreater(java["hot_methods"], 10)
        self.assertGreater(java["samples_per_second"], 0)
        self.assertGreaterEqual(java["allocated_bytes"], (HOT + COLD) * MIB * 0.85)
        plain = run("java", "-cp", self.path, "MemBench", "--hot", HOT, "--cold", COLD, "--passes", 1000)
        self.assertEqual(done.stdout, plain.stdout)

    def test_the_text_report_has_the_columns_of_table_3(self):
        self.membench("text", passes=10)
        text = run(ISOTHERM, "report", "--text", self.path / "text.iso").stdout
        for column in ["allocation sites", "sites per method", "hot methods", "types", "samples of Java code/s"]:
            self.assertIn(column, text)

    def test_other_collectors_and_object_headers_give_the_same_sites(self):
        for name, machine in {
            "parallel": ["-XX:+UseParallelGC"],
            "serial": ["-XX:+UseSerialGC"],
            "wide": ["-XX:-UseCompressedOops"],
            "widest": ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"],
        }.items():
            with self.subTest(name):
                report, _ = self.record(
                    name,
                    ["--cache", "0B", "--allocation-interval", "64KiB"],
                    ["-Xmx1g", *machine, "MemBench", "--hot", HOT, "--cold", COLD, "--passes", 1000],
                )
                hot, cold = site(report, "MemBench$HotObject"), site(report, "MemBench$ColdObject")
                self.assertGreater(hot["accesses"], 20 * cold["accesses"] + 50)

    def test_a_collector_with_other_references_is_said_and_does_no_harm(self):
        report, done = self.membench("z", ["-XX:+UseZGC"], passes=10)
        site(report, "MemBench$ColdObject")
        self.assertIn("sum ", done.stdout)
        agent = next(source for source in report["sources"] if source["name"] == "java-heap")
        self.assertIn("G1, Parallel and Serial", agent["warning"])
        self.assertIn("G1, Parallel and Serial", done.stderr)

    def test_a_plan_keeps_hot_objects_fast_and_cold_ones_cold(self):
        report, _ = self.membench("planned", passes=1000)
        hot, cold = (site(report, f"MemBench${klass}")["site"] for klass in ["HotObject", "ColdObject"])
        policies = [(policy, "40MiB") for policy in ["thermos", "knapsack"]]
        policies += [(f"cold-set={share}%", "50%") for share in [1, 2, 5, 10, 20]]
        for policy, fast in policies:
            with self.subTest(policy):
                tiers = self.tiers(policy, fast)
                self.assertEqual(tiers[hot], "fast")
                # Making the cold objects may take more than one sample in a hundred.
                if policy != "cold-set=1%":
                    self.assertEqual(tiers[cold], "slow")

    def test_a_run_by_a_plan_says_that_java_sites_guide_nothing(self):
        _, recorded = self.membench("guided", passes=10)
        plan = self.path / "guided.plan"
        run(ISOTHERM, "plan", self.path / "guided.iso", "--tiers", "emulated", "--fast", "40MiB", "-o", plan)
        words = ["java", "-Xmx256m", "-cp", self.path, "MemBench", "--hot", HOT, "--cold", COLD, "--passes", 10]
        done = run(ISOTHERM, "run", "--plan", plan, "--", *words)
        self.assertEqual(done.stdout, recorded.stdout)
        self.assertRegex(done.stderr, "[0-9]+ Java sites of the plan guide nothing: .*`isotherm run --java` does")

    def tiers(self, policy, fast):
        """The tier of each site in a plan by a policy."""
        plan = self.path / "planned.plan"
        flags = ["--policy", policy, "--tiers", "emulated", "--fast", fast]
        run(ISOTHERM, "plan", self.path / "planned.iso", *flags, "-o", plan)
        lines = [line.split() for line in plan.read_text().splitlines()]
        return {words[1]: words[2] for words in lines if words[:1] == ["site"]}

    def test_sites_of_two_runs_have_the_same_names(self):
        names = []
        for run_number in range(2):
            report, _ = self.membench(f"again{run_number}", passes=10)
            names.append({site(report, f"MemBench${klass}")["site"] for klass in ["HotObject", "ColdObject"]})
        self.assertEqual(*names)


class Exact(Recorded):
    CLASSES = ["One", "Two", "Four", "Eight", "Sixteen", "ThirtyTwo"]

    def accesses(self, name, flags, words):
        report, _ = self.record(name, flags, words)
        return [site(report, f"Ranks${klass}")["accesses"] for klass in self.CLASSES]

    def test_samples_rank_sites_as_exact_counts_do(self):
        flags = ["--source", "java-counts"]
        exact = self.accesses("exact", flags, ["Ranks", 2000, 20])
        # Each turn reads the field twice and writes it once.
        self.assertEqual(exact, [3 * 20 * (2000 << kind >> 5) for kind in range(6)])
        flags = ["--cache", "0B", "--allocation-interval", "16KiB"]
        sampled = self.accesses("sampled", flags, ["-Xmx512m", "Ranks", 500000, 150])
        self.assertGreater(sum(sampled), 200)
        self.assertGreaterEqual(spearman(exact, sampled), 0.9, (exact, sampled))

    def test_exact_counts_of_another_program_are_refused(self):
        done = subprocess.run([ISOTHERM, "record", "--source", "java-counts", "--", "true"], capture_output=True, text=True, cwd=self.path)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("Java", done.stderr)


def spearman(left, right):
    """The rank correlation of two lists without equal values."""
    def ranks(values):
        return [sorted(values).index(value) for value in values]
    squares = sum((a - b) ** 2 for a, b in zip(ranks(left), ranks(right)))
    return 1 - 6 * squares / (len(left) * (len(left) ** 2 - 1))
