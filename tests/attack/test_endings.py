"""How runs and their programs end: killed, with threads and descendants left over, or before they began."""
import contextlib
import os
import select
import shutil
import signal
import time

from support import ISOTHERM, LIMIT_S, AttackTest, TwoUserTest

WAITS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
  puts(getenv("ISOTHERM_SESSION"));
  fflush(stdout);
  getchar();
  for (int round = 0; round < 50; ++round) {
    char *block = memset(malloc(1000000), round, 1000000);
    if (block[999999] != round) return 1;
    free(block);
  }
  puts("done");
  return 3;
}
"""
ENDS_ALONE = """
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words) {
  char *volatile block = malloc(8);
  if (count > 1) prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  syscall(SYS_exit, 3);
}
"""
# Preloaded into the run: its guard starts late, as on a machine that is loaded.
LATE_GUARD = """
#include <errno.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_a_moment(void) {
  if (strcmp(program_invocation_name, "isotherm-session-guard") == 0) usleep(500000);
}
"""
GUARD = b"isotherm-session-guard"
EMULATED = ["--tiers", "emulated", "--fast", "64MiB", "--epoch", "100ms"]


def children(process):
    """The command lines of a process's children, by process; those that end meanwhile are left out."""
    found = {}
    for task in os.listdir(f"/proc/{process}/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{process}/task/{task}/children", encoding="ascii") as file:
                born = file.read().split()
            for child in born:
                with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{child}/cmdline", "rb") as line:
                    found[int(child)] = line.read().split(b"\0")
    return found


class Endings(AttackTest):
    def recorded(self, *command, **options):
        profile = self.work / "profile.iso"
        return self.isotherm("record", "--force", "-o", profile, "--", *command, **options)

    def waiting(self, *how, **options):
        """A run whose program waits for a line: the run, the session directory, the guard."""
        running = self.start(ISOTHERM, *how, "--", self.compile(WAITS), **options)
        directory = running.stdout.readline().strip()
        self.assertTrue(os.path.isdir(directory), directory)
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        guards = [child for child, line in children(running.pid).items() if line[0] == GUARD]
        self.assertEqual(len(guards), 1)
        return running, directory, guards[0]

    def wait_for_end(self, process):
        """Waits until a process that is not a child has ended."""
        watched = select.poll()
        watched.register(process, select.POLLIN)
        self.assertTrue(watched.poll(LIMIT_S * 1000), "the process still runs")
        os.close(process)

    def test_a_killed_run_leaves_no_session_directory(self):
        late = self.compile(LATE_GUARD, "-D_GNU_SOURCE", "-shared", "-fPIC", name="late.so")
        for how in [["record", "-o", self.work / "profile.iso"], ["run", *EMULATED]]:
            with self.subTest(how=how[0]):
                running, directory, guard = self.waiting(*how, env=os.environ | {"LD_PRELOAD": str(late)})
                handle = os.pidfd_open(guard)
                # The first signal of a service manager or a terminal must not end the guard before the run.
                for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]:
                    os.kill(guard, number)
                running.kill()
                self.wait_for_end(handle)
                self.assertFalse(os.path.exists(directory))
                # The program continues, with its files gone, and prints nothing.
                self.assertEqual(running.communicate("\n", timeout=LIMIT_S), ("done\n", ""))

    def test_a_run_that_is_killed_before_its_guard_is_ready_leaves_no_session_directory(self):
        late = self.compile(LATE_GUARD, "-D_GNU_SOURCE", "-shared", "-fPIC", name="late.so")
        command = [ISOTHERM, "record", "-o", self.work / "profile.iso", "--", "true"]
        running = self.start(*command, env=os.environ | {"LD_PRELOAD": str(late)})
        end = time.monotonic() + LIMIT_S
        while not (guards := [child for child, line in children(running.pid).items() if GUARD in line]):
            self.assertLess(time.monotonic(), end, "no guard was started")
        with open(f"/proc/{guards[0]}/cmdline", "rb") as line:
            directory = line.read().split(b"\0")[1]
        self.assertTrue(os.path.isdir(directory), directory)
        handle = os.pidfd_open(guards[0])
        running.kill()
        self.wait_for_end(handle)
        self.assertFalse(os.path.exists(directory))

    def test_a_run_that_ends_takes_its_guard_along(self):
        running, directory, guard = self.waiting("record", "-o", self.work / "profile.iso")
        handle = os.pidfd_open(guard)
        running.communicate("\n", timeout=LIMIT_S)
        self.wait_for_end(handle)
        self.assertEqual(running.returncode, 3)
        self.assertFalse(os.path.exists(directory))

    def test_what_a_killed_run_and_its_guard_leave_goes_with_the_next_run(self):
        running, directory, guard = self.waiting("record", "-o", self.work / "profile.iso")
        for process in [guard, running.pid]:
            os.kill(process, signal.SIGKILL)
        running.communicate("\n", timeout=LIMIT_S)
        self.assertTrue(os.path.exists(directory))
        self.assertEqual(self.recorded("true").returncode, 0)
        self.assertFalse(os.path.exists(directory))

    def test_a_program_that_ends_its_last_thread_alone_ends(self):
        program = self.compile(ENDS_ALONE)
        profile = ["--force", "-o", self.work / "profile.iso"]
        for how in [["run", *EMULATED], ["record", "--source", "trapped-pages", *profile]]:
            for mode in [[], ["strict"]]:
                with self.subTest(how=how[0], mode=mode):
                    done = self.isotherm(*how, "--", program, *mode)
                    self.assertEqual(done.returncode, 3, done.stderr)

    def test_descendants_that_outlive_their_recorder_are_counted_and_silent(self):
        pipe, result = self.work / "pipe", self.work / "result"
        os.mkfifo(pipe)
        # A child without an exec since its fork, and two with their own programs.
        story = '''
            { read line <"$1/pipe"; sh -c 'echo "a new program: $(echo yes)"' >"$1/result" 2>&1
              echo end >"$1/pipe"; } >/dev/null 2>&1 &
            sleep 1000 >/dev/null 2>&1 &
            echo $! '''
        done = self.recorded("sh", "-c", story, "sh", self.work)
        os.kill(int(done.stdout), signal.SIGKILL)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = "isotherm: warning: 2 descendants of the program still run and are no longer observed\n"
        self.assertIn(said, done.stderr)
        pipe.write_text("go\n")
        self.assertEqual(pipe.read_text(), "end\n")
        self.assertEqual(result.read_text(), "a new program: yes\n")


class OtherUsersLock(TwoUserTest):
    def test_another_users_lock_keeps_no_directory(self):
        running = self.start(ISOTHERM, "record", "-o", self.work / "profile.iso", "--",
                             self.compile(WAITS), preexec_fn=lambda: os.umask(0))
        directory = running.stdout.readline().strip()
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        locked = self.as_attacker("flock", "--shared", "--nonblock", f"{directory}/owner", "echo", "locked")
        self.assertIn("Permission denied", locked.stderr)
        self.assertEqual(locked.stdout, "")
        running.communicate("\n", timeout=LIMIT_S)
        self.assertFalse(os.path.exists(directory))
