"""A heap whose classes get their colours by call stacks, which the virtual machine samples without stopping a thread."""
import json
import re

# Not its classes by name: they would be tests of this file, too.
import test_heap


class Stacks(test_heap.Heap):
    """The virtual machine finds the cold class by the call stacks of running threads."""

    def stacks(self, *options, passes=2000):
        table, summary = self.path / "stacks.table", self.path / "stacks.json"
        tiers = ["--tiers", "emulated:cxl", "--fast", "64MiB", "--cache", "0B"]
        heap = ["-Xmx256m", "-XX:G1HeapRegionSize=1m", f"-XX:IsothermHeapTable={table}"]
        program = ["java", *heap, "-cp", self.path, "HeapOnline", table, test_heap.Online.COUNT, passes]
        words = ["--java", "--java-home", test_heap.JDK, *options, *tiers, "--summary", summary, "--", *program]
        done = test_heap.isotherm("run", *words)
        found = json.loads(summary.read_text())
        if not found["placed"] or "page trap" in done.stderr:
            self.skipTest(f"no machine is emulated by time here: {done.stderr}")
        return done, found

    def objects(self, done, kind, colour):
        rows = re.findall(rf"^end {kind} {colour} -?\d+ (\d+)$", done.stdout, re.MULTILINE)
        return sum(int(objects) for objects in rows)

    def test_objects_of_the_class_that_no_running_method_accesses_become_cold(self):
        done, found = self.stacks("--java-stacks")
        self.assertGreater(self.objects(done, "cold", 1), 0.9 * test_heap.Online.COUNT, (done.stdout, done.stderr))
        self.assertGreater(self.objects(done, "hot", 0), 0.9 * test_heap.Online.COUNT, (done.stdout, done.stderr))
        heap = found["java_heap"]
        self.assertEqual(heap["cooling_ms"], 100)
        self.assertGreater(heap["stack_samples"], 1000)
        self.assertLess(heap["hot_classes"], heap["loaded_classes"])
        self.assertRegex(done.stderr, r"classes hot in the last collection; [\d,]+ samples of call stacks a second, by .* of a processor")

    def test_a_profile_of_the_run_has_its_java_sites(self):
        profile = self.path / "stacks.iso"
        self.stacks("--java-stacks", "-o", profile, passes=50)
        self.assertIn("HeapOnline.java:", test_heap.isotherm("report", "--text", profile).stdout)

    def test_a_class_that_has_not_cooled_stays_hot(self):
        # Longer than the run: the cold objects were accessed when they were made.
        done, _ = self.stacks("--java-stacks=1000s", passes=50)
        self.assertEqual(self.objects(done, "cold", 1), 0, (done.stdout, done.stderr))

    def test_stacks_are_sampled_while_threads_classes_and_deep_calls_come_and_go(self):
        flags = ["-XX:+UseG1GC", "-XX:IsothermHeapColors=2", "-XX:IsothermStackCooling=10", "-Xlog:class+unload,gc+heap+exit"]
        done = self.run_java(*flags, "-Xmx128m", "-cp", self.path, "HeapThreads", 5000)
        loaders, threads, collections = map(int, re.search(r"^done (\d+) (\d+) (\d+)$", done.stdout, re.MULTILINE).groups())
        self.assertGreater(min(loaders, threads, collections), 10, done.stdout[-2000:])
        self.assertIn("unloading class HeapThreads$Loaded", done.stdout)
        self.assertRegex(done.stdout, r"stacks: [1-9]\d* samples in ")

    def test_without_colours_the_time_to_cool_does_nothing_and_says_so(self):
        done = self.run_java("-XX:IsothermStackCooling=100", "-XX:+UseG1GC", "-version")
        self.assertIn("IsothermStackCooling need IsothermHeapColors of 2 or more", done.stdout + done.stderr)

    def test_a_guide_and_sampled_stacks_exclude_each_other(self):
        flags = ["-XX:+UseG1GC", "-XX:IsothermHeapColors=2", "-XX:IsothermStackCooling=100", f"-XX:IsothermHeapGuide={self.guide}"]
        done = self.run_java(*flags, "-version", status=1)
        self.assertIn("IsothermHeapGuide and IsothermStackCooling exclude each other", done.stdout + done.stderr)

    def test_classes_are_unloaded_by_markings_while_stacks_are_sampled(self):
        flags = ["-XX:+UseG1GC", "-XX:IsothermHeapColors=2", "-XX:IsothermStackCooling=10", "-XX:+ExplicitGCInvokesConcurrent"]
        done = self.run_java(*flags, "-Xmx128m", "-Xmn4m", "-Xlog:class+unload", "-cp", self.path, "HeapThreads", 3000)
        loaders = int(re.search(r"^done (\d+) ", done.stdout, re.MULTILINE)[1])
        self.assertGreater(done.stdout.count("unloading class HeapThreads$Loaded"), loaders // 4, done.stdout[-2000:])

    def test_runs_that_another_part_decides_are_refused(self):
        program = ["--", "java", "-version"]
        for words in [["--plan", "app.plan"], ["--remap", "bandwidth.toml"], ["--dry-run"]]:
            with self.subTest(words[0]):
                done = test_heap.isotherm("run", "--java", "--java-stacks", *words, *program, status=2)
                self.assertIn("cannot be used with", done.stderr)
        self.assertIn("50 ms", test_heap.isotherm("run", "--java", "--java-stacks=49ms", *program, status=2).stderr)
        self.assertIn("--java", test_heap.isotherm("run", "--java-stacks", *program, status=2).stderr)
