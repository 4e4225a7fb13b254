"""Shared by the attacks: a second user, folders that both can reach, and commands run as either.

The second user is made for the run and removed after it, so nothing of the machine's own users is
touched. Making a user needs root; without it every test that needs one is skipped, with that reason.
"""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / os.environ.get("ISOTHERM_BUILD", "release")
ISOTHERM = BUILD / "isotherm"
LIBRARY = BUILD / "libisotherm.so"
ATTACKER = f"isotherm-test-{os.getpid()}"
# Seconds after which a command counts as hung; the slowest one here takes a tenth of it when alone.
LIMIT_S = 60


class AttackTest(unittest.TestCase):
    """A test with a folder of the victim, who runs the tests, and a folder that any user may write."""

    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="isotherm-attack-"))
        self.addCleanup(shutil.rmtree, self.work, ignore_errors=True)
        self.work.chmod(0o755)

    def shared_folder(self, name="shared"):
        """A folder with the mode of /tmp: every user may make files there, each removes only its own."""
        folder = self.work / name
        folder.mkdir()
        folder.chmod(0o1777)
        return folder

    def run_command(self, *command, **options):
        """Runs a command as the user of the tests; fails the test when it hangs."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": LIMIT_S} | options
        try:
            return subprocess.run([str(word) for word in command], check=False, **options)
        except subprocess.TimeoutExpired:
            self.fail(f"still running after {LIMIT_S} s: {' '.join(map(str, command))}")

    def start(self, *command, **options):
        """Starts a command as the user of the tests, with pipes; it is killed where it outlives the test."""
        pipe = subprocess.PIPE
        options = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True} | options
        running = subprocess.Popen([str(word) for word in command], **options)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        return running

    def isotherm(self, *arguments, **options):
        return self.run_command(ISOTHERM, *arguments, **options)

    def compile(self, source, *flags, name="program"):
        """Compiles C source text in the victim's folder and returns the program's path."""
        program = self.work / name
        text = self.work / f"{name}.c"
        text.write_text(source)
        done = self.run_command("gcc", "-O1", "-o", program, text, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program


class TwoUserTest(AttackTest):
    """A test with a second user, the attacker, who exists while the tests of the class run."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0:
            raise unittest.SkipTest("making a second user needs root")
        make = ["useradd", "--no-create-home", "--user-group", "--shell", "/bin/sh", ATTACKER]
        subprocess.run(make, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        cls.addClassCleanup(subprocess.run, ["userdel", ATTACKER], check=True, stderr=subprocess.DEVNULL)

    def as_attacker(self, *command, **options):
        """Runs a command as the second user, with none of the groups of the user of the tests."""
        change = ["setpriv", f"--reuid={ATTACKER}", f"--regid={ATTACKER}", "--clear-groups", "--"]
        return self.run_command(*change, *command, **options)


class DaemonTest(AttackTest):
    """A test beside a daemon that watches the tests' own process and moves nothing."""

    def start_daemon(self, **options):
        """Starts it; returns it once it answers."""
        self.socket = self.work / "daemon.socket"
        config = self.work / "daemon.toml"
        config.write_text(f'epoch = "200ms"\n[serve]\nsocket = "{self.socket}"\nmetrics = ""\n'
                          f"[processes]\npids = [{os.getpid()}]\n")
        command = [ISOTHERM, "daemon", "--dry-run", "--config", config]
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
        daemon = subprocess.Popen(command, **options)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        self.wait_for("the daemon", lambda: self.epochs(daemon) is not None)
        return daemon

    def epochs(self, daemon):
        """Epochs that the daemon has completed; None before it answers. Fails the test where it has ended."""
        self.assertIsNone(daemon.poll(), "the daemon has ended")
        done = self.isotherm("status", "--json", "--socket", self.socket)
        return json.loads(done.stdout)["epochs"] if done.returncode == 0 else None

    def wait_for(self, what, is_there):
        end = time.monotonic() + LIMIT_S
        while not is_there():
            self.assertLess(time.monotonic(), end, f"{what}: nothing after {LIMIT_S} s")
            time.sleep(0.05)
