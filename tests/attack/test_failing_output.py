"""Standard error and standard output that cannot be written, from the first byte on."""
import os
import signal

import support

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char *memory = malloc(8 << 20);
    for (int round = 0; round < 600; round++) memset(memory, round % 100, 8 << 20);
    printf("ran\\n");
    return memory[4096] == 99 ? 7 : 8;
}
"""


class FailingOutputTest(support.DaemonTest):
    """Each command with a full device or a closed pipe in the place of an output."""

    def setUp(self):
        super().setUp()
        self.program = self.compile(PROGRAM)

    def outputs(self):
        """A full device, and a pipe without a reader."""
        full = os.open("/dev/full", os.O_WRONLY)
        self.addCleanup(os.close, full)
        reader, closed = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, closed)
        return {"a full device": full, "a closed pipe": closed}

    def test_a_guided_run_is_the_program_whatever_standard_error_is(self):
        profile, plan = self.work / "app.iso", self.work / "app.plan"
        self.assertEqual(self.isotherm("record", "-o", profile, "--", self.program).returncode, 7)
        planned = self.isotherm("plan", profile, "--tiers", "emulated", "-o", plan)
        self.assertEqual(planned.returncode, 0, planned.stderr)
        for name, failing in self.outputs().items():
            done = self.isotherm("run", "--plan", plan, "--", self.program, stderr=failing)
            self.assertEqual((done.returncode, done.stdout), (7, "ran\n"), name)

    def test_an_online_run_and_a_recording_are_the_program_whatever_standard_error_is(self):
        for name, failing in self.outputs().items():
            profile = self.work / "app.iso"
            for command in [["run", "--tiers", "emulated", "--fast", "4MiB"], ["record", "--force", "-o", profile]]:
                done = self.isotherm(*command, "--", self.program, stderr=failing)
                self.assertEqual((done.returncode, done.stdout), (7, "ran\n"), f"{command}: {name}")
            self.assertEqual(self.isotherm("report", "--text", profile).returncode, 0)

    def test_a_program_that_is_refused_is_refused_whatever_standard_error_is(self):
        for name, failing in self.outputs().items():
            for command, status in [(["record", "--", "/no/such"], 1), (["--no-such-flag"], 2), (["record", "ls"], 2)]:
                done = self.isotherm(*command, stderr=failing)
                self.assertEqual(done.returncode, status, f"{command}: {name}")

    def test_the_daemon_outlives_reloads_whatever_standard_error_is(self):
        for name, failing in self.outputs().items():
            daemon = self.start_daemon(stderr=failing)
            for words in ["", 'policy = "history"\n', "no configuration\n"]:
                config = self.work / "daemon.toml"
                config.write_text(words + config.read_text().removeprefix('policy = "history"\n'))
                before = self.epochs(daemon)
                daemon.send_signal(signal.SIGHUP)
                # It reads the configuration before it ends the next epoch.
                self.wait_for(f"two epochs, {name}", lambda: self.epochs(daemon) >= before + 2)
            daemon.terminate()
            self.assertEqual(daemon.wait(support.LIMIT_S), 0, name)

    def test_a_full_standard_output_is_a_failure_that_is_said(self):
        full = self.outputs()["a full device"]
        for command in [["doctor"], ["tiers", "--json"], ["completions", "bash"], ["--help"], ["--version"],
                        ["plan", "--help"], ["daemon", "--print-config"]]:
            done = self.isotherm(*command, stdout=full)
            self.assertEqual(done.returncode, 1, f"{command}: {done.stderr}")
            self.assertIn("standard output cannot be written: No space left on device", done.stderr)

    def test_a_closed_standard_output_ends_a_command_by_the_signal_and_without_a_word(self):
        for command in [["doctor"], ["completions", "bash"], ["--help"], ["daemon", "--print-config"]]:
            closed = self.outputs()["a closed pipe"]
            done = self.isotherm(*command, stdout=closed)
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""), command)
