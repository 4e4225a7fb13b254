"""Inputs that are not regular files, numbers out of range, and texts with terminal control sequences."""
import os
import pathlib
import shutil
import socket

import support

# A command that waits for a pipe waits for ever; the slowest refusal takes a hundredth of this.
REFUSED_WITHIN_S = 60
PLAN = """isotherm-plan 1
policy thermos
value accesses
weight peak-rss
depth 4
command app
tier fast emulated-fast capacity 64MiB placement preferred
tier slow emulated-slow capacity 8GiB placement preferred period 20ms access 1us hot 1us migrate 1us
default slow
standing planned 0 first-touch 0 bound 0 total 0
site 0000000000000005 fast value 1 weight 4KiB  # LABEL -- REASON
"""
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x7f"


class InputsTest(support.AttackTest):
    """Each input of a command, replaced by another kind of file."""

    def setUp(self):
        super().setUp()
        self.pipe = self.work / "pipe"
        os.mkfifo(self.pipe)
        self.socket = self.work / "socket"
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(str(self.socket))

    def refused(self, *command):
        """The sentence with which the command ends; it must end by itself, and as a failure."""
        try:
            done = self.isotherm(*command, timeout=REFUSED_WITHIN_S)
        except AssertionError:
            self.fail(f"still waiting: {command}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("panicked", done.stderr)
        return done.stderr

    def test_pipes_sockets_devices_and_directories_are_refused_as_any_input(self):
        commands = [
            lambda path: ["explain", path, "x"],
            lambda path: ["run", "--plan", path, "--", "true"],
            lambda path: ["compare", path, "--", "true"],
            lambda path: ["plan", path],
            lambda path: ["report", path],
            lambda path: ["simulate", path],
            lambda path: ["simulate", "--format", "text", path],
            lambda path: ["curve", path],
            lambda path: ["import", path, "-o", self.work / "new.iso"],
            lambda path: ["import", "--format", "memprof", path, "-o", self.work / "new.iso"],
            lambda path: ["tiers", "--tiers", path],
            lambda path: ["daemon", "--once", "--dry-run", "--config", path],
            lambda path: ["daemon", "--replay", path],
            lambda path: ["sites", path],
            lambda path: ["sites", "--contexts", path],
            lambda path: ["record", "-o", self.work / "new.iso", "--", path],
        ]
        for path in [self.pipe, self.socket, pathlib.Path("/dev/zero"), self.work]:
            for command in commands:
                said = self.refused(*command(path))
                self.assertIn(str(path), said)

    def test_a_table_of_a_profile_that_is_a_pipe_or_a_device_is_left_out(self):
        program = self.compile("#include <stdlib.h>\nint main(void) { return !malloc(1 << 20); }")
        profile = self.work / "app.iso"
        self.assertEqual(self.isotherm("record", "-o", profile, "--", program).returncode, 0)
        for make in [os.mkfifo, lambda path: os.symlink("/dev/zero", path)]:
            copy = self.work / "copy.iso"
            shutil.copytree(profile, copy)
            table = copy / "counts.parquet"
            table.unlink()
            make(table)
            done = self.isotherm("report", "--text", copy, timeout=REFUSED_WITHIN_S)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("counts.parquet: it could not be read and was left out: it is a", done.stderr)
            shutil.rmtree(copy)

    def test_an_input_that_is_larger_than_its_limit_is_refused_with_the_limit(self):
        large = self.work / "large"
        with open(large, "wb") as file:
            file.truncate(1 << 41)
        for command in [["explain", large, "x"], ["run", "--plan", large, "--", "true"], ["simulate", large],
                        ["tiers", "--tiers", large], ["daemon", "--once", "--dry-run", "--config", large]]:
            self.assertIn("larger than", self.refused(*command))

    def test_a_plan_with_numbers_that_nobody_means_is_refused_with_line_and_remedy(self):
        plan = self.work / "app.plan"
        for sound, wild, line in [("access 1us", "access 99999999s", 8), ("hot 1us", "hot 99999999s", 8),
                                  ("migrate 1us", "migrate 99999999s", 8), ("period 20ms", "period 99999999s", 8),
                                  ("depth 4", "depth 4294967295", 5), ("value 1 ", "value 18446744073709551615 ", 11),
                                  ("weight 4KiB", "weight 16000PiB", 11)]:
            self.assertIn(sound, PLAN)
            plan.write_text(PLAN.replace(sound, wild))
            said = self.refused("run", "--plan", plan, "--", "true")
            self.assertIn(f"line {line}: ", said)
            self.assertIn("out of range", said)
            self.assertIn("correct the line", said)

    def test_no_text_of_a_plan_steers_the_terminal(self):
        plan = self.work / "app.plan"
        plan.write_text(PLAN.replace("LABEL", f"main{ESCAPES}").replace("REASON", f"it fits{ESCAPES}\\u{{1b}}c\\u{{a}}x")
                        .replace("command app", f'command "app{ESCAPES}"').replace("policy thermos", '"policy" "the\x1bc"'))
        program = self.compile("#include <stdlib.h>\nint main(void) { return !malloc(1 << 20); }")
        for command in [["explain", plan, "5"], ["explain", plan, f"none{ESCAPES}"],
                        ["run", "--plan", plan, "--", program], ["explain", self.work / f"no{ESCAPES}.plan", "5"]]:
            done = self.isotherm(*command)
            for text in [done.stdout, done.stderr]:
                steering = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
                self.assertEqual(steering, [], f"{command}: {text!r}")
        explained = self.isotherm("explain", plan, "5")
        self.assertIn("main?]0;owned", explained.stdout)
        self.assertNotIn("\nx", explained.stdout)

    def test_no_name_of_a_program_or_a_function_steers_the_terminal(self):
        program = self.work / f"app{ESCAPES}"
        shutil.copy(self.compile("#include <stdlib.h>\nint main(void) { return !malloc(1 << 20); }"), program)
        profile = self.work / "app.iso"
        recorded = self.isotherm("record", "-o", profile, "--", program)
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        shown = [recorded] + [self.isotherm(*command) for command in [
            ["report", "--text", profile], ["report", "--json", profile], ["curve", profile], ["simulate", profile]]]
        for done in shown:
            for text in [done.stdout, done.stderr]:
                steering = [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]
                self.assertEqual(steering, [], repr(text))
