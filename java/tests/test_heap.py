"""The heap with colours: the virtual machine that java/build-jvm makes."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ISOTHERM = os.environ.get("ISOTHERM", "isotherm")
JDK = os.environ.get("ISOTHERM_JDK", "build/java/jdk")
PROGRAM = "HeapColors"
HOT = ["hot-class", "hot-site", "hot-bytes", "hot-humongous"]
COLD_CLASSES = ["cold-class", "cold-class-array"]
COLD_SITES = ["cold-site", "cold-bytes", "cold-copy", "cold-array", "cold-matrix", "cold-humongous"]
GUIDE = """\
# classes, and sites by method
class HeapColors$Cold cold
class HeapColors$Cold[] 1
site HeapColors.coldSite@0 cold
site HeapColors.coldBytes(I)Ljava/lang/Object;@* cold
site HeapColors.coldCopy@* cold
site HeapColors.coldArray@* cold
site HeapColors.coldMatrix@* cold
site HeapColors.coldHumongous@* 1
site NoSuchClass.method@* cold
"""
LOOP_GUIDE = """\
class HeapLoop$Cold cold
class HeapLoop$Cold[] cold
site HeapLoop.coldSite@* cold
site HeapLoop.coldBytes@* cold
site HeapLoop.coldObjects@* cold
"""
RECOLOUR_SITE = "site HeapRecolor.site@* cold\n"
RECOLOUR_ITEMS = "class HeapRecolor$Item cold\nclass HeapRecolor$Item[] cold\n"


class Heap(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.java = pathlib.Path(JDK) / "bin" / "java"
        if not cls.java.exists():
            raise AssertionError(f"no JDK at {JDK}: `make java-heap` builds it")
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.directory.name)
        cls.guide = cls.path / "guide"
        cls.guide.write_text(GUIDE)
        programs = [PROGRAM, "HeapFill", "HeapLoop", "HeapRecolor", "HeapOnline", "HeapThreads"]
        sources = [*(HERE / f"{name}.java" for name in programs), HERE.parent.parent / "workloads/java/MemBench.java"]
        javac = [cls.java.parent / "javac", "-nowarn", "-d", cls.path, *sources]
        subprocess.run(javac, check=True, stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def run_java(self, *words, status=0):
        done = subprocess.run([str(word) for word in [self.java, *words]], capture_output=True, text=True, cwd=self.path)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def coloured(self, flags, count=20000, collections=("young", "young", "system", "young"), colours=2):
        """Runs the program with colours. The rows that it prints: {(moment, kind): {(colour, place): objects}}."""
        table = self.path / "table"
        flags_of_colours = [f"-XX:IsothermHeapColors={colours}", f"-XX:IsothermHeapGuide={self.guide}", f"-XX:IsothermHeapTable={table}"]
        heap = ["-Xmx512m", "-XX:G1HeapRegionSize=1m"]
        done = self.run_java("-XX:+UseG1GC", *heap, *flags_of_colours, *flags, "-cp", self.path, PROGRAM, table, count, *collections)
        rows = {}
        for line in done.stdout.splitlines():
            words = re.fullmatch(r"(start|young|system) ([a-z-]+) (-?\d+) (-?\d+) (\d+)", line)
            if words:
                kind = rows.setdefault((words[1], words[2]), {})
                key = (int(words[3]), int(words[4]))
                kind[key] = kind.get(key, 0) + int(words[5])
        self.assertEqual(len(rows), (1 + len(set(collections))) * (len(HOT) + len(COLD_CLASSES) + len(COLD_SITES)), done.stdout)
        return rows, done.stdout

    def check_colours(self, rows, cold=1):
        """Each object is in a region of its colour, at the start and after each collection."""
        for (when, kind), found in rows.items():
            colour = 0 if kind in HOT else cold
            self.assertEqual(set(found), {(colour, colour)}, (when, kind, rows))


class Colours(Heap):
    def test_compiled_and_interpreted_code_colour_objects_by_class_and_site(self):
        for name, flags, count in [
            ("tiered", [], 20000),
            ("interpreter", ["-Xint"], 3000),
            ("client compiler", ["-XX:TieredStopAtLevel=1"], 20000),
            ("server compiler", ["-XX:-TieredCompilation", "-Xbatch"], 40000),
            ("compiled at once", ["-Xcomp", "-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,HeapColors*::*"], 3000),
            ("wide references", ["-XX:-UseCompressedOops"], 20000),
            ("no archive of class data", ["-Xshare:off"], 3000),
            ("one collector thread", ["-XX:ParallelGCThreads=1"], 20000),
        ]:
            with self.subTest(name):
                self.check_colours(self.coloured(flags, count)[0])

    def test_a_guide_may_name_one_of_several_colours(self):
        self.guide.write_text(GUIDE.replace("cold\n", "3\n").replace(" 1\n", " 3\n"))
        try:
            self.check_colours(self.coloured([], colours=4)[0], cold=3)
        finally:
            self.guide.write_text(GUIDE)

    def test_objects_of_no_entry_are_hot(self):
        self.guide.write_text("# empty\n")
        try:
            rows, _ = self.coloured([], 3000)
            for found in rows.values():
                self.assertEqual(set(found), {(0, 0)}, rows)
        finally:
            self.guide.write_text(GUIDE)

    def test_many_full_collections_keep_the_colours(self):
        rows, _ = self.coloured(["-Xmx160m"], 20000, ["system"] * 6)
        self.check_colours(rows)

    def test_hot_regions_beyond_the_hot_size_borrow_the_cold_place(self):
        rows, text = self.coloured(["-XX:IsothermHotHeapSize=4m", "-Xlog:gc+heap+color"])
        places = {place for (when, kind), found in rows.items() if kind in HOT for place in found}
        self.assertIn((0, 1), places)
        for (when, kind), found in rows.items():
            self.assertEqual({colour for colour, _ in found}, {0 if kind in HOT else 1}, (when, kind, rows))
        self.assertRegex(text, r"after color 0: \d+K in \d+ regions, \d+ humongous, [1-9]\d* borrowed")

    def test_each_collection_logs_bytes_and_regions_by_colour(self):
        _, text = self.coloured(["-Xlog:gc+heap+color"], 20000, ["system"])
        lines = re.findall(r"(before|after) color (\d): (\d+)K in (\d+) regions, (\d+) humongous, (\d+) borrowed", text)
        after = [line for line in lines if line[0] == "after"]
        self.assertEqual({line[1] for line in after}, {"0", "1"})
        self.assertEqual(len(lines), 2 * len(after))
        # Four objects of 1.5 MiB of each colour take two regions of 1 MiB each.
        self.assertEqual([line[4] for line in after[-2:]], ["8", "8"])
        cold = next(line for line in reversed(after) if line[1] == "1")
        # 20,000 objects of seven kinds of 16 bytes to 200 bytes, and the large ones.
        self.assertTrue(10 << 10 < int(cold[2]) < 30 << 10, cold)

    def test_the_heap_s_information_tells_what_the_guide_matched(self):
        _, text = self.coloured(["-Xlog:gc+heap+exit"], 3000, ["system"])
        self.assertRegex(text, r"guide: 8 of 9 entries matched")
        # `isotherm run --java` takes the first number after each of these words.
        self.assertRegex(text.split("colors: ")[1], r"^\d+ regions borrowed")
        self.assertRegex(text.split("guide: ")[1], r"^8 of 9")
        self.assertRegex(text, r"color 1: \d+K in [1-9]\d* regions")


class Inline(Heap):
    """Compiled code allocates objects of each colour by itself, in a buffer of the thread."""

    KINDS = ["class", "array", "site", "bytes", "objects"]
    COMPILERS = {"client": ["-XX:TieredStopAtLevel=1"], "server": ["-XX:-TieredCompilation"]}

    def loop(self, kind, flags, count, every=1, rounds=1):
        """Runs a loop that allocates cold objects."""
        guide = self.path / "loop.guide"
        guide.write_text(LOOP_GUIDE)
        colours = ["-XX:+UseG1GC", "-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={guide}"]
        return self.run_java(*colours, "-Xbatch", *flags, "-cp", self.path, "HeapLoop", kind, count, every, rounds).stdout

    def test_compiled_code_does_not_call_the_runtime_for_each_cold_object(self):
        for compiler, flags in self.COMPILERS.items():
            for kind in self.KINDS:
                with self.subTest(compiler=compiler, kind=kind):
                    text = self.loop(kind, [*flags, "-Xlog:gc+heap+exit"], 1000000)
                    found = re.search(r"colors: (\d+) objects of colors from 1 on allocated by the runtime", text)
                    self.assertTrue(found, text)
                    # What is interpreted at the start is allocated by the runtime.
                    self.assertTrue(0 < int(found[1]) < 100000, found[0])

    def test_collections_can_walk_the_buffers_of_all_colours(self):
        verify = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC", "-Xmx16m", "-Xlog:gc"]
        for compiler, flags in self.COMPILERS.items():
            for kind in self.KINDS:
                with self.subTest(compiler=compiler, kind=kind):
                    text = self.loop(kind, [*flags, *verify], 1000000, every=2)
                    self.assertGreater(text.count("Pause Young"), 1, text)

    def test_the_bytes_of_a_thread_have_its_cold_objects_in_them(self):
        line = self.loop("class", [], 1000).splitlines()[-1]
        self.assertGreaterEqual(int(line.split()[1]), 1000 * 24)


class Recolouring(Heap):
    """The guide file is replaced while the program runs, and collections give objects the colour that their class has now."""

    ITEMS = ["item", "item-array", "large-item-array"]
    FLAGS = {
        "defaults": [],
        "wide references": ["-XX:-UseCompressedOops"],
        "one collector thread": ["-XX:ParallelGCThreads=1"],
        "interpreter": ["-Xint"],
        "verified": ["-XX:+UnlockDiagnosticVMOptions", "-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC"],
        "old at once": ["-XX:MaxTenuringThreshold=0"],
    }

    def steps(self, steps, guides, flags=(), count=20000, colours=2):
        """Runs the program. A step that is a name of guides puts that file in the place of the first, which is that of "start".
        The steps with what they print, [(step, {kind: {colour: objects}})], and the text."""
        for name, text in guides.items():
            (self.path / name).write_text(text)
        table, guide = self.path / "table", self.path / "start"
        # Objects stay young for many collections.
        heap = ["-XX:+UseG1GC", "-Xmx512m", "-Xmn128m", "-XX:G1HeapRegionSize=1m", f"-XX:IsothermHeapColors={colours}"]
        files = [f"-XX:IsothermHeapGuide={guide}", f"-XX:IsothermHeapTable={table}"]
        done = self.run_java(*heap, *files, *flags, "-cp", self.path, "HeapRecolor", table, guide, count, *steps)
        found = []
        for line in done.stdout.splitlines():
            words = re.fullmatch(r"(start|\d+:\w+) ([a-z-]+) (-?\d+) (-?\d+) (\d+)", line)
            if not words:
                continue
            if not found or found[-1][0] != words[1]:
                found.append((words[1], {}))
            kind = found[-1][1].setdefault(words[2], {})
            kind[int(words[3])] = kind.get(int(words[3]), 0) + int(words[5])
        collections = [step for step in steps if step not in guides]
        self.assertEqual(len(found), 1 + len(collections), done.stdout)
        self.assertEqual(done.stdout.count("objects unharmed"), len(collections), done.stdout)
        return found, done.stdout

    def check(self, kinds, items, text):
        """The items are of this colour, the objects of the site are cold, and the rest is hot."""
        for kind, found in kinds.items():
            colour = items if kind in self.ITEMS else 1 if kind == "site" else 0
            self.assertEqual(set(found), {colour}, (kind, kinds, text))

    def test_a_collection_moves_objects_to_the_colour_of_their_class_and_back(self):
        guides = {"start": RECOLOUR_SITE, "cold": RECOLOUR_SITE + RECOLOUR_ITEMS, "hot": RECOLOUR_SITE, "again": RECOLOUR_ITEMS}
        for collection in ["young", "system"]:
            for name, flags in self.FLAGS.items():
                if collection == "young" and name == "old at once":
                    continue
                with self.subTest(collection=collection, flags=name):
                    steps = [collection, "cold", collection, "hot", collection, "again", collection, collection]
                    found, text = self.steps(steps, guides, flags, count=3000 if name == "interpreter" else 20000)
                    for (_, kinds), items in zip(found, [0, 0, 1, 0, 1, 1]):
                        self.check(kinds, items, text)

    def test_objects_that_became_old_are_recoloured_by_a_full_collection(self):
        guides = {"start": RECOLOUR_SITE, "cold": RECOLOUR_ITEMS, "hot": ""}
        steps = ["system", "cold", "young", "system", "young", "hot", "young", "system"]
        found, text = self.steps(steps, guides, ["-Xlog:gc"], count=100000)
        self.check(found[3][1], 1, text)
        self.check(found[-1][1], 0, text)

    def test_old_objects_are_recoloured_where_mixed_collections_take_all_old_regions(self):
        flags = ["-XX:+UnlockExperimentalVMOptions", "-XX:G1MixedGCLiveThresholdPercent=100", "-XX:G1HeapWastePercent=0"]
        # System.gc() returns when the heap is marked; mixed collections follow, of an eighth of the regions each.
        steps = ["young", "young", "cold", "system", *["young"] * 12]
        flags += ["-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxTenuringThreshold=0", "-Xlog:gc"]
        found, text = self.steps(steps, {"start": RECOLOUR_SITE, "cold": RECOLOUR_SITE + RECOLOUR_ITEMS}, flags, count=50000)
        self.assertEqual(set(found[3][1]["item"]), {0}, text)
        self.check(found[-1][1], 1, text)
        self.assertNotIn("Pause Full", text)

    def test_each_collection_logs_what_it_recoloured(self):
        guides = {"start": "", "cold": RECOLOUR_ITEMS, "hot": ""}
        steps = ["young", "cold", "young", "young", "hot", "system"]
        _, text = self.steps(steps, guides, ["-Xlog:gc+heap+color,gc+heap+exit"])
        lines = re.findall(r"after recolored to color (\d): (\d+)K in (\d+) objects", text)
        # The three large arrays of 1.5 MiB, and 20,000 items and arrays of them.
        self.assertEqual([(colour, objects) for colour, _, objects in lines],
                         [("0", "0"), ("1", "40003"), ("0", "0"), ("1", "0"), ("0", "40003"), ("1", "0")], text)
        self.assertTrue(all(4500 < int(kib) < 9000 for _, kib, objects in lines if objects != "0"), lines)
        self.assertEqual(len(re.findall(r"guide: read again, 2 classes, 2 loaded ones of another color than before", text)), 1, text)
        self.assertRegex(text, r"  recolored to color 0: \d+K in 40003 objects")
        self.assertRegex(text, r"  recolored to color 1: \d+K in 40003 objects")
        self.assertRegex(text, r"  guides: 3 read and 0 refused")

    def test_each_collection_that_recolours_is_an_event_of_the_flight_recorder(self):
        recording = self.path / "recolor.jfr"
        flags = [f"-XX:StartFlightRecording=filename={recording}", "-Xlog:gc"]
        self.steps(["young", "cold", "young", "young", "hot", "system"], {"start": "", "cold": RECOLOUR_ITEMS, "hot": ""}, flags)
        printed = subprocess.run([self.java.parent / "jfr", "print", "--events", "GCPhasePauseLevel1", recording], capture_output=True, text=True, check=True)
        events = re.findall(r'name = "Recolored to color (\d): \d+K in (\d+) objects"', printed.stdout)
        self.assertEqual(events, [("1", "40003"), ("0", "40003")], printed.stdout)

    def test_a_guide_that_stays_is_read_once(self):
        _, text = self.steps(["young", "system"], {"start": RECOLOUR_ITEMS}, ["-Xlog:gc+heap+color,gc+heap+exit"])
        self.assertIn("guides: 1 read and 0 refused", text)
        self.assertNotIn("after recolored", text)

    def test_a_wrong_guide_is_refused_and_the_old_one_stays(self):
        guides = {"start": RECOLOUR_SITE + RECOLOUR_ITEMS, "wrong": "class HeapRecolor$Plain cold\nclass A\n", "hot": ""}
        steps = ["young", "wrong", "young", "young", "hot", "young", "system"]
        found, text = self.steps(steps, guides, ["-Xlog:gc+heap+exit"])
        for (_, kinds), items in zip(found, [1, 1, 1, 1, 0, 0]):
            self.check(kinds, items, text)
        warnings = re.findall(r"\[warning\]\[gc,heap,color\].*", text)
        self.assertEqual(len(warnings), 1, text)
        self.assertIn(f"{self.path / 'start'}:2: a line is: class NAME COLOR", warnings[0])
        self.assertIn("guides: 2 read and 1 refused", text)

    def test_objects_go_to_one_of_several_colours(self):
        guides = {"start": "class HeapRecolor$Item 1\n", "next": "class HeapRecolor$Item 3\n", "last": "class HeapRecolor$Item 2\n"}
        found, _ = self.steps(["young", "next", "young", "last", "system"], guides, colours=4)
        self.assertEqual([set(kinds["item"]) for _, kinds in found], [{1}, {1}, {3}, {2}])

    def test_sites_stay_as_they_were_at_the_start(self):
        guides = {"start": "", "sites": RECOLOUR_SITE, "gone": ""}
        found, text = self.steps(["young", "sites", "young", "system"], guides, ["-Xlog:gc+heap+color"])
        self.assertEqual([set(kinds["site"]) for _, kinds in found], [{0}] * 4)
        self.assertEqual(text.count("its sites differ from those of the start"), 1, text)

    def test_a_site_goes_before_a_class_until_the_colour_of_the_class_changes(self):
        guides = {"start": "site HeapRecolor.item@* 1\nclass HeapRecolor$Item 3\n", "next": "class HeapRecolor$Item 2\n"}
        found, _ = self.steps(["young", "young", "next", "young", "system"], guides, colours=4)
        self.assertEqual([set(kinds["item"]) for _, kinds in found], [{1}, {1}, {1}, {2}, {2}])
        found, _ = self.steps(["system", "system"], guides, colours=4)
        self.assertEqual([set(kinds["item"]) for _, kinds in found], [{1}, {1}, {1}])

    def test_threads_that_allocate_meanwhile_keep_right_objects(self):
        guides = {"start": RECOLOUR_SITE}
        steps = ["churn"]
        for i in range(12):
            guides[f"guide{i}"] = RECOLOUR_SITE + (RECOLOUR_ITEMS if i % 2 == 0 else "")
            steps += [f"guide{i}", "system" if i % 3 == 0 else "young"]
        for name in ["defaults", "verified"]:
            with self.subTest(name):
                self.steps(steps, guides, ["-Xmx96m", "-Xmn24m", *self.FLAGS[name]], count=5000)


class Room(Heap):
    """How much fits into a heap of 64 MiB: a list of arrays until OutOfMemoryError."""

    def filled(self, flags, kind):
        done = self.run_java("-XX:+UseG1GC", "-Xmx64m", "-XX:G1HeapRegionSize=1m", *flags, "-cp", self.path, "HeapFill", kind)
        return int(done.stdout)

    def test_each_colour_can_have_the_whole_heap(self):
        self.guide.write_text("site HeapFill.small@* cold\nsite HeapFill.large@* cold\n")
        try:
            colours = ["-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={self.guide}"]
            for kind in ["small", "large", "mixed"]:
                with self.subTest(kind):
                    plain = self.filled([], kind)
                    self.assertGreater(plain, 40 << 20)
                    # A region of each colour may be filled in part.
                    self.assertGreater(self.filled(colours, kind), plain - (4 << 20))
                    self.assertGreater(self.filled([*colours, "-XX:IsothermHotHeapSize=2m"], kind), plain - (4 << 20))
        finally:
            self.guide.write_text(GUIDE)

    def test_a_heap_that_begins_with_few_regions_starts(self):
        cold = self.path / "cold.guide"
        cold.write_text("class java.lang.String cold\nclass java.lang.Object[] cold\n")
        colours = ["-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={cold}"]
        for sizes in [["-Xms8m", "-Xmx4g"], ["-Xms16m", "-Xmx4g"], ["-Xms32m", "-Xmx128m", "-XX:G1HeapRegionSize=32m"]]:
            done = self.run_java("-XX:+UseG1GC", *sizes, *colours, "-version")
            self.assertIn("isotherm", done.stdout + done.stderr)

    def test_a_heap_of_few_regions_works(self):
        colours = ["-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={self.guide}"]
        for size in ["8m", "12m"]:
            self.run_java("-XX:+UseG1GC", f"-Xmx{size}", *colours, "-cp", self.path, "HeapFill", "churn")


class Flags(Heap):
    def test_without_colours_the_heap_is_as_ever(self):
        done = self.run_java("-XX:+UseG1GC", "-Xlog:gc*", "-XX:+PrintFlagsFinal", "-cp", self.path, PROGRAM, "-", 2000)
        self.assertRegex(done.stdout, r"uint IsothermHeapColors += 1 +\{product\} \{default\}")
        self.assertIn("made", done.stdout)
        self.assertNotIn("color ", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_other_collectors_have_no_colours_and_say_so(self):
        for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC"]:
            done = self.run_java(collector, "-XX:IsothermHeapColors=2", "-cp", self.path, PROGRAM, "-", 2000)
            self.assertIn("IsothermHeapColors needs G1", done.stdout + done.stderr)
            self.assertIn("made", done.stdout)

    def test_a_guide_without_colours_is_said_to_do_nothing(self):
        done = self.run_java("-XX:+UseG1GC", f"-XX:IsothermHeapGuide={self.guide}", "-version")
        self.assertIn("need IsothermHeapColors of 2 or more", done.stdout + done.stderr)

    def test_a_wrong_guide_is_refused_by_its_line(self):
        for line, reason in [
            ("class A", "a line is: class NAME COLOR"),
            ("class A cold more", "a line is: class NAME COLOR"),
            ("type A cold", "a line begins with"),
            ("class A 0", "the color is neither"),
            ("class A 2", "the color is neither"),
            ("class A -1", "the color is neither"),
            ("class A[ cold", "brackets of an array class"),
            ("class int[] cold", "arrays of primitive types"),
            ("site A.b cold", "a site is CLASS.METHOD@BCI"),
            ("site b@3 cold", "a site is CLASS.METHOD@BCI"),
            ("site A.b@x cold", "after @ is a bytecode index"),
            ("site A.b@-3 cold", "after @ is a bytecode index"),
            ("class " + "A" * 5000 + " cold", "the line is too long"),
        ]:
            with self.subTest(line[:20]):
                wrong = self.path / "wrong"
                wrong.write_text("# a comment\n" + line + "\n")
                done = self.run_java("-XX:+UseG1GC", "-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={wrong}", "-version", status=1)
                self.assertIn(f"{wrong}:2: {reason}", done.stdout + done.stderr)

    def test_files_that_cannot_be_opened_end_the_virtual_machine(self):
        for flag in ["Guide", "Table"]:
            done = self.run_java("-XX:+UseG1GC", "-XX:IsothermHeapColors=2", f"-XX:IsothermHeap{flag}=/no/such/file", "-version", status=1)
            self.assertIn(f"IsothermHeap{flag}: /no/such/file: No such file", done.stdout + done.stderr)

    def test_nodes_are_one_for_each_colour(self):
        for nodes in ["0", "0,", "0,0,0", "0,x", "-1,0", "0,5000"]:
            done = self.run_java("-XX:+UseG1GC", "-XX:IsothermHeapColors=2", f"-XX:IsothermHeapNodes={nodes}", "-version", status=1)
            self.assertIn("one memory node for each color", done.stdout + done.stderr)


class Emulated(Heap):
    """On emulated memory the regions of the cold colour are slow."""

    def slow_share(self, cold):
        """The share of slow memory in what MemBench accesses, with this class cold."""
        self.guide.write_text(f"class MemBench${cold} cold\n")
        summary = self.path / "summary.json"
        flags = ["-Xmx256m", "-XX:+UseG1GC", "-XX:IsothermHeapColors=2", f"-XX:IsothermHeapGuide={self.guide}"]
        java = [self.java, *flags, "-cp", self.path, "MemBench", "--hot", 32, "--cold", 64, "--passes", 1000]
        run = [ISOTHERM, "run", "--tiers", "emulated:cxl", "--fast", "1GiB", "--cache", "0B", "--summary", summary, "--", *java]
        done = subprocess.run([str(word) for word in run], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(summary.read_text())
        if not found["placed"] or "page trap" in done.stderr:
            self.skipTest(f"no machine is emulated by time here: {done.stderr}")
        counters = found["runtime"]["counters"]
        slow, fast = counters["slow_traffic_bytes"], counters["fast_traffic_bytes"]
        return slow / (slow + fast), counters

    def test_a_guide_decides_how_much_is_accessed_in_slow_memory(self):
        try:
            right, counters = self.slow_share("ColdObject")
            self.assertGreaterEqual(counters["slow_bytes"], 64 << 20)
            wrong, _ = self.slow_share("HotObject")
        finally:
            self.guide.write_text(GUIDE)
        self.assertLess(right, 0.2)
        self.assertGreater(wrong, 0.5)


class Planned(Heap):
    """From a profile to a plan to a run on the heap with colours."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.words = ["-Xms256m", "-Xmx256m", "-XX:+UseG1GC", "-cp", cls.path, "MemBench", "--hot", 32, "--cold", 64, "--passes", 200]
        cls.profile = cls.path / "membench.iso"
        sampled = ["--cache", "0B", "--allocation-interval", "64KiB"]
        cls.recorded = isotherm("record", *sampled, "-o", cls.profile, "--", cls.java, *cls.words)

    def plan(self, share):
        """A plan with this share of the accesses cold, and the sites of MemBench in its guide file."""
        plan, guide = self.path / "membench.plan", self.path / "membench.guide"
        policy = ["--policy", f"cold-set={share}", "--tiers", "emulated:cxl", "--fast", "50%"]
        isotherm("plan", self.profile, *policy, "-o", plan, "--guide", guide)
        lines = guide.read_text().splitlines()
        self.assertTrue(lines[0].startswith("# The guide file"), lines)
        sites = [line for line in lines if not line.startswith("#")]
        self.assertEqual(sites, sorted(sites))
        return plan, [site.split("@")[0] for site in sites if "MemBench" in site]

    def guided(self, plan, *flags):
        """The output of a run by a plan, and its summary."""
        summary = self.path / "summary.json"
        run = ["run", "--plan", plan, "--java", "--java-home", JDK, "--cache", "0B", "--summary", summary]
        done = isotherm(*run, "--", "java", *flags, *self.words)
        found = json.loads(summary.read_text())
        if not found["placed"] or "page trap" in done.stderr:
            self.skipTest(f"no machine is emulated by time here: {done.stderr}")
        return done, found

    def test_each_share_of_the_paper_leaves_the_cold_objects_cold_and_the_hot_ones_hot(self):
        for share in ["1%", "2%", "5%", "10%", "20%"]:
            with self.subTest(share):
                _, sites = self.plan(share)
                self.assertNotIn("site MemBench.makeHot", sites)
                # Making the cold objects may take more than one sample in a hundred.
                if share != "1%":
                    self.assertIn("site MemBench.makeCold", sites)

    def test_the_cold_tier_of_a_planned_run_has_many_bytes_and_few_accesses(self):
        plan, _ = self.plan("5%")
        done, found = self.guided(plan)
        self.assertEqual(done.stdout, self.recorded.stdout)
        counters = found["runtime"]["counters"]
        slow, fast = counters["slow_traffic_bytes"], counters["fast_traffic_bytes"]
        self.assertLess(slow / (slow + fast), 0.1)
        self.assertGreaterEqual(counters["slow_bytes"], 64 << 20)
        heap = found["java_heap"]
        self.assertGreaterEqual(heap["guide_entries_matched"], 1)
        self.assertLessEqual(heap["guide_entries_matched"], heap["guide_entries"])
        self.assertRegex(done.stderr, r"of the plan's \d+ Java sites are cold")
        self.assertIn("were of methods that this run used", done.stderr)

    def test_the_guide_file_of_a_run_goes_with_the_run(self):
        plan, _ = self.plan("5%")
        done, _ = self.guided(plan, "-XX:+PrintFlagsFinal")
        guide = re.search(r"ccstr IsothermHeapGuide += (\S+) ", done.stdout)
        self.assertRegex(guide[1], r"/isotherm-\w{22}/guide-\w{22}$")
        self.assertFalse(pathlib.Path(guide[1]).exists())
        self.assertFalse(pathlib.Path(guide[1]).parent.exists())

    def test_a_plan_of_another_program_matches_nothing_and_says_so(self):
        plan, _ = self.plan("5%")
        plan.write_text(re.sub(r'function ("?)', r"function \1other.", plan.read_text()))
        done, found = self.guided(plan)
        self.assertEqual(found["java_heap"]["guide_entries_matched"], 0)
        self.assertIn("made for another program", done.stderr)

    def test_a_run_without_that_virtual_machine_names_what_builds_it(self):
        plan, _ = self.plan("5%")
        run = ["run", "--plan", plan, "--java", "--java-home", self.path, "--", "java", *self.words]
        done = isotherm(*run, status=1)
        self.assertIn("`make java-heap` builds one", done.stderr)


class Online(Heap):
    """A run without a plan finds the cold class and parts it from the hot one."""

    COUNT = 500_000  # of each class, 32 MB

    def online(self, *options, passes=2000):
        """The objects by colour at the start, where the first may be cold already, and at the end, {(moment, class): {colour: objects}}, the
        output, and the summary."""
        table, summary = self.path / "online.table", self.path / "online.json"
        tiers = ["--tiers", "emulated:cxl", "--fast", "64MiB", "--cache", "0B", "--epoch", "200ms"]
        heap = ["-Xmx256m", "-XX:G1HeapRegionSize=1m", f"-XX:IsothermHeapTable={table}"]
        program = ["java", *heap, "-cp", self.path, "HeapOnline", table, self.COUNT, passes]
        done = isotherm("run", "--java", "--java-home", JDK, *tiers, "--summary", summary, *options, "--", *program)
        found = json.loads(summary.read_text())
        if not found["placed"] or "page trap" in done.stderr:
            self.skipTest(f"no machine is emulated by time here: {done.stderr}")
        rows = {}
        for when, kind, colour, objects in re.findall(r"^(start|end) (hot|cold) (-?\d+) -?\d+ (\d+)$", done.stdout, re.MULTILINE):
            row = rows.setdefault((when, kind), {})
            row[int(colour)] = row.get(int(colour), 0) + int(objects)
        self.assertEqual({sum(row.values()) for row in rows.values()}, {self.COUNT}, done.stdout)
        return rows, done, found

    def test_the_objects_of_the_cold_class_end_up_in_cold_regions_and_those_of_the_hot_class_stay_hot(self):
        rows, done, found = self.online()
        self.assertGreater(rows["end", "cold"].get(1, 0), 0.9 * self.COUNT, (rows, found, done.stderr))
        self.assertGreater(rows["end", "hot"].get(0, 0), 0.9 * self.COUNT, (rows, found, done.stderr))
        heap = found["java_heap"]
        self.assertIn("HeapOnline$Cold", heap["cold_classes"])
        self.assertNotIn("HeapOnline$Hot", heap["cold_classes"])
        self.assertGreaterEqual(heap["guides_read"], 1)
        self.assertGreater(heap["cold_bytes"], 16 << 20)
        self.assertRegex(done.stderr, r"cold at the end, with .* of objects: .*HeapOnline\$Cold")

    def test_a_dry_run_decides_and_moves_nothing(self):
        rows, _, found = self.online("--dry-run", passes=100)
        self.assertEqual(rows["end", "cold"], {0: self.COUNT})
        self.assertIn("HeapOnline$Cold", found["java_heap"]["cold_classes"])
        self.assertEqual(found["java_heap"]["guides_written"], 0)

    def test_runs_that_another_part_places_are_refused(self):
        program = ["--", "java", "-version"]
        for words in [["--policy", "payback"], ["--optimize-after", "1s"], ["--slowdown", "2%"], ["--mover", "staged"]]:
            with self.subTest(words[0]):
                done = isotherm("run", "--java", "--java-home", JDK, *words, *program, status=2)
                self.assertIn("cannot be used with", done.stderr)
        done = isotherm("run", "--java", "--java-home", JDK, "--tiers", "compressed", *program, status=1)
        self.assertIn("--tiers compressed has none", done.stderr)


class Devices(Heap):
    """A run without a plan spreads hot objects over the memory devices of an emulated machine."""

    TIERS = "emulated:L:1,B:1,fast-limit:200MiB/s,limit:600MiB/s"

    def remapped(self, bound, *options, heap=(), passes=180):
        """What a run says whose hot data needs a second device above this bound, and its summary."""
        model, summary = self.path / "bandwidth.toml", self.path / "devices.json"
        model.write_text(f'bounds = ["{bound}"]\n')
        tiers = ["--tiers", self.TIERS, "--fast", "512MiB", "--cache", "0B"]
        program = ["java", "-Xmx256m", "-XX:G1HeapRegionSize=1m", *heap, "-cp", self.path, "HeapOnline", "-", 500_000, passes]
        words = ["run", "--java", "--java-home", JDK, "--remap", model, *options, *tiers, "--summary", summary, "--", *program]
        done = isotherm(*words)
        found = json.loads(summary.read_text())
        if not found["placed"] or "page trap" in done.stderr:
            self.skipTest(f"no machine is emulated by time here: {done.stderr}")
        return done.stderr, found

    def slow_share(self, found):
        """Share of the bytes that came from the devices after the first."""
        counters = found["runtime"]["counters"]
        slow, fast = counters["slow_traffic_bytes"], counters["fast_traffic_bytes"]
        return slow / (slow + fast)

    def test_hot_objects_spread_as_their_bandwidth_rises(self):
        said, found = self.remapped("10MB/s")
        remap = found["remap"]
        self.assertEqual([(change["from_devices"], change["to_devices"]) for change in remap["remaps"][:1]], [(1, 2)], remap)
        self.assertGreaterEqual(len(remap["samples"]), 3, remap)
        self.assertGreater(self.slow_share(found), 0.05, found)
        self.assertRegex(said, r"remaps? \(\d undone\), hot data on \d devices? at the end")

    def test_hot_objects_without_room_on_one_device_take_two_whatever_their_bandwidth(self):
        _, found = self.remapped("1000GB/s", "--device-capacity", "16MiB", passes=60)
        added = found["remap"]["added"][0]
        self.assertEqual((added["from_devices"], added["to_devices"]), (1, 2))
        self.assertGreater(added["hot_bytes"], 16 << 20)
        self.assertEqual(found["remap"]["remaps"], [])
        self.assertGreater(self.slow_share(found), 0.05, found)

    def test_without_a_reason_hot_objects_stay_on_one_device(self):
        said, found = self.remapped("1000GB/s", passes=20)
        self.assertEqual((found["remap"]["devices"], found["remap"]["remaps"], found["remap"]["added"]), (1, [], []))
        self.assertLess(self.slow_share(found), 0.05, found)
        self.assertNotIn("stayed on the devices", said)

    def test_a_dry_run_decides_and_spreads_nothing(self):
        said, found = self.remapped("1000GB/s", "--device-capacity", "16MiB", "--dry-run", passes=20)
        self.assertEqual(found["remap"]["added"][0]["to_devices"], 2)
        self.assertLess(self.slow_share(found), 0.05, found)
        self.assertNotIn("stayed on the devices", said)

    def test_a_program_with_a_table_of_its_own_is_told_that_nothing_spread(self):
        own = [f"-XX:IsothermHeapTable={self.path / 'own.table'}"]
        said, found = self.remapped("1000GB/s", "--device-capacity", "16MiB", heap=own, passes=20)
        self.assertIn("hot objects stayed on the devices that they were on", said)
        self.assertIn("-XX:IsothermHeapTable", said)
        self.assertEqual((found["remap"]["devices"], found["remap"]["devices_used"]), (2, 1))

    def test_the_tiers_must_be_emulated_by_time(self):
        model = self.path / "bandwidth.toml"
        model.write_text('bounds = ["50MB/s"]\n')
        words = ["run", "--java", "--java-home", JDK, "--remap", model, "--tiers", "emulated:tmp", "--", "java", "-version"]
        self.assertIn("--remap: the fast tier of a machine that is emulated by time", isotherm(*words, status=1).stderr)


def isotherm(*words, status=0):
    """Runs the command line, which is to end with this status."""
    done = subprocess.run([str(word) for word in [ISOTHERM, *words]], capture_output=True, text=True)
    if done.returncode != status:
        raise AssertionError(f"{words} ended with {done.returncode}: {done.stderr}")
    return done
