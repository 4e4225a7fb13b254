"""Terminals that go away under commands that draw on them or wait at them."""
import os
import pathlib
import pty
import signal
import subprocess

import support

OPENED = b"\x1b[?1049h"


class TerminalTest(support.DaemonTest):
    """Each command on a terminal of the test, whose other end is closed."""

    def top(self, **options):
        """Starts `isotherm top` on a terminal; returns it and the terminal's other end, once it waits for a key."""
        self.start_daemon()
        ours, theirs = pty.openpty()
        child = subprocess.Popen([support.ISOTHERM, "top", "--socket", self.socket],
                                 stdin=theirs, stdout=theirs, stderr=theirs, **options)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        os.close(theirs)
        drawn = b""
        while OPENED not in drawn:
            drawn += os.read(ours, 4096)
        waits_at = pathlib.Path(f"/proc/{child.pid}/wchan")
        self.wait_for("a wait for keys", lambda: "poll" in waits_at.read_text(encoding="ascii"))
        return child, ours

    def assert_ends(self, child):
        try:
            return child.wait(timeout=support.LIMIT_S)
        except subprocess.TimeoutExpired:
            self.fail("it goes on without its terminal")

    def test_top_ends_when_its_terminal_goes_away(self):
        # In a session of its own the terminal is the controlling one, and the kernel sends SIGHUP. The tests may run with it ignored.
        def with_signal():
            os.login_tty(os.dup(0))
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
        child, terminal = self.top(preexec_fn=with_signal)
        os.close(terminal)
        self.assertEqual(self.assert_ends(child), -signal.SIGHUP)

    def test_top_ends_when_its_terminal_goes_away_and_no_signal_tells_it(self):
        child, terminal = self.top(start_new_session=True)
        os.close(terminal)
        self.assertNotEqual(self.assert_ends(child), 0)

    def test_top_ends_when_its_terminal_goes_away_while_the_signal_is_ignored(self):
        def ignoring():
            os.login_tty(os.dup(0))
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        child, terminal = self.top(preexec_fn=ignoring)
        os.close(terminal)
        self.assertNotEqual(self.assert_ends(child), 0)

    def test_a_recording_goes_on_to_its_end_without_its_terminal_and_keeps_the_profile(self):
        ours, theirs = pty.openpty()
        profile = self.work / "app.iso"
        program = self.compile("#include <stdlib.h>\n#include <unistd.h>\n"
                               "int main(void) { char *p = malloc(1 << 20); p[0] = 1; write(1, p, 1); sleep(2); return 7; }")
        child = subprocess.Popen([support.ISOTHERM, "record", "-o", profile, "--", program],
                                 stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, start_new_session=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        os.close(theirs)
        child.stdout.read(1)
        os.close(ours)
        child.stdout.close()
        self.assertEqual(self.assert_ends(child), 7)
        self.assertEqual(self.isotherm("report", "--text", profile).returncode, 0)
