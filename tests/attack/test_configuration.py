"""Another user's configuration and session files, and those that another user may change.

A program that outlives its run keeps the names of its configuration file and of its session directory in
its environment. The directory in /dev/shm is gone then, and any user may make it again.
"""
import json
import os
import shutil

from support import ATTACKER, ISOTHERM, LIBRARY, ROOT, AttackTest, TwoUserTest

# Allocates at a few sites, more than a site needs for an arena of its own, and frees it all.
ALLOCATES = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *one(size_t bytes) { return memset(malloc(bytes), 1, bytes); }
static char *two(size_t bytes) { return memset(malloc(bytes), 2, bytes); }
int main(void) {
  long sum = 0;
  for (int round = 0; round < 50; ++round) {
    char *first = one(100000), *second = two(200000);
    sum += first[99999] + second[199999];
    free(first);
    free(second);
  }
  printf("%ld\\n", sum);
  return 3;
}
"""
# As above, but waits for a line on standard input first.
WAITS = ALLOCATES.replace("long sum = 0;", "long sum = 0; puts(\"ready\"); fflush(stdout); getchar();")


class Files(AttackTest):
    """Makes configuration files as `isotherm record` writes them."""

    def recorded(self, *command, **options):
        """Records a command; returns its output."""
        profile = self.work / "profile.iso"
        return self.isotherm("record", "--force", "-o", profile, "--", *command, **options)

    def guided(self, *command):
        """Runs a command by a plan that puts all data into slow memory."""
        return self.isotherm("run", "--plan", ROOT / "tests" / "plans" / "slow.plan", "--", *command)

    def start_recorded(self, *command):
        """Starts recording a command."""
        return self.start(ISOTHERM, "record", "-o", self.work / "profile.iso", "--", *command)

    def configuration(self, directory, run=None):
        """A configuration file of the victim's in a directory of its own."""
        directory.mkdir(mode=0o700)
        file = directory / "configuration"
        done = (run or self.recorded)("sh", "-c", 'cp "$ISOTHERM_CONFIG" "$1"', "sh", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        file.chmod(0o600)
        return file

    def surroundings(self, configuration, session):
        return os.environ | {
            "LD_PRELOAD": str(LIBRARY),
            "ISOTHERM_CONFIG": str(configuration),
            "ISOTHERM_SESSION": str(session),
        }

    def assert_refused(self, done, session):
        """The program ran as without Isotherm, printed the reason once, and left nothing."""
        self.assertEqual((done.stdout, done.returncode), ("150\n", 3), done.stderr)
        self.assertIn("belongs to another user, or others may write it", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertEqual([file for file in os.listdir(session) if "." in file], [])


class OwnFiles(Files):
    def test_a_configuration_of_this_user_alone_is_obeyed(self):
        program = self.compile(ALLOCATES)
        file = self.configuration(self.work / "own")
        done = self.run_command(program, env=self.surroundings(file, file.parent))
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("150\n", "", 3))
        self.assertEqual(len([name for name in os.listdir(file.parent) if "." in name]), 1)

    def test_a_configuration_that_others_may_write_is_refused(self):
        program = self.compile(ALLOCATES)
        file = self.configuration(self.work / "own")
        for path, mode in [(file, 0o666), (file, 0o620), (file.parent, 0o777), (file.parent, 0o1777)]:
            before = path.stat().st_mode
            path.chmod(mode)
            with self.subTest(path=path.name, mode=oct(mode)):
                done = self.run_command(program, env=self.surroundings(file, file.parent))
                self.assert_refused(done, file.parent)
            path.chmod(before)

    def test_a_link_to_a_configuration_is_not_followed(self):
        program = self.compile(ALLOCATES)
        file = self.configuration(self.work / "own")
        link = file.parent / "link"
        link.symlink_to(file)
        done = self.run_command(program, env=self.surroundings(link, file.parent))
        self.assertEqual((done.stdout, done.returncode), ("150\n", 3))
        self.assertIn("isotherm: off in process", done.stderr)

    def test_a_pipe_for_a_configuration_is_not_waited_for(self):
        program = self.compile(ALLOCATES)
        folder = self.work / "own"
        folder.mkdir(mode=0o700)
        os.mkfifo(folder / "configuration", 0o600)
        done = self.run_command(program, env=self.surroundings(folder / "configuration", folder))
        self.assertEqual((done.stdout, done.returncode), ("150\n", 3))

    def test_a_configuration_cut_short_under_a_program_does_not_kill_it(self):
        program = self.compile(WAITS)
        for content in [b"", b"\xff" * 4096]:
            shutil.rmtree(self.work / "own", ignore_errors=True)
            file = self.configuration(self.work / "own", self.guided)
            with self.start(program, env=self.surroundings(file, file.parent)) as running:
                self.assertEqual(running.stdout.readline(), "ready\n")
                with open(file, "r+b") as changed:
                    changed.write(content)
                    changed.truncate(len(content))
                out, said = running.communicate("\n", timeout=60)
                self.assertEqual((out, said, running.returncode), ("150\n", "", 3))

    def test_a_program_whose_configuration_is_gone_runs_in_silence(self):
        program = self.compile(ALLOCATES)
        gone = self.work / "gone"
        done = self.run_command(program, env=self.surroundings(gone / "configuration", gone))
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("150\n", "", 3))

    def test_the_session_directory_is_closed_whatever_the_umask(self):
        show = 'cd "$ISOTHERM_SESSION" && stat -c "%a %F" . * && echo "$ISOTHERM_CONFIG"'
        for umask in ["000", "022", "077"]:
            with self.subTest(umask=umask):
                done = self.recorded("sh", "-c", f"{show}", preexec_fn=lambda: os.umask(int(umask, 8)))
                *modes, configuration = done.stdout.splitlines()
                self.assertEqual(modes[0], "700 directory", done.stderr)
                self.assertGreaterEqual(len(modes), 4, "the lock, the configuration, a session file")
                for mode in modes[1:]:
                    self.assertRegex(mode, "^600 regular( empty)? file$")
                # No other user can see this name, so no other user can have made a file of this name.
                self.assertRegex(configuration, "/isotherm-[A-Za-z0-9]{22}/configuration-[A-Za-z0-9]{22}$")


class OtherUsersFiles(Files, TwoUserTest):
    def given_away(self, file):
        """The attacker's copy of a configuration and its directory, readable by all."""
        folder = self.shared_folder() / "isotherm-session"
        shutil.copytree(file.parent, folder)
        self.hand_over(folder)
        return folder / file.name

    def hand_over(self, folder):
        folder.chmod(0o755)
        for path in [folder, *folder.iterdir()]:
            shutil.chown(path, ATTACKER, ATTACKER)

    def test_another_users_configuration_is_refused(self):
        program = self.compile(ALLOCATES)
        theirs = self.given_away(self.configuration(self.work / "own"))
        theirs.chmod(0o644)
        done = self.run_command(program, env=self.surroundings(theirs, theirs.parent))
        self.assert_refused(done, theirs.parent)

    def test_ones_own_configuration_in_another_users_directory_is_refused(self):
        program = self.compile(ALLOCATES)
        theirs = self.given_away(self.configuration(self.work / "own"))
        os.chown(theirs, os.geteuid(), os.getegid())
        done = self.run_command(program, env=self.surroundings(theirs, theirs.parent))
        self.assert_refused(done, theirs.parent)

    def test_nothing_is_written_into_another_users_session_directory(self):
        program = self.compile(ALLOCATES)
        file = self.configuration(self.work / "own")
        theirs = self.given_away(file).parent
        done = self.run_command(program, env=self.surroundings(file, theirs))
        self.assert_refused(done, theirs)

    def test_a_descendant_that_outlives_its_recorder_obeys_no_other_user(self):
        program = self.compile(ALLOCATES)
        pipe, result = self.work / "pipe", self.work / "result"
        os.mkfifo(pipe)
        story = '''
            echo "$ISOTHERM_CONFIG"
            cp "$ISOTHERM_CONFIG" "$1/copy"
            { read line <"$1/pipe"; "$2" >"$1/result" 2>&1; echo "status $?" >>"$1/result"; echo end >"$1/pipe"; } \\
                >/dev/null 2>&1 &'''
        done = self.recorded("sh", "-c", story, "sh", self.work, program)
        self.assertEqual(done.returncode, 0, done.stderr)
        name = done.stdout.strip()
        folder = os.path.dirname(name)
        self.assertFalse(os.path.exists(folder), "the directory goes with its recorder")
        # The attacker knows even the hidden name.
        shutil.copyfile(self.work / "copy", shared := self.shared_folder() / "copy")
        shared.chmod(0o644)
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        made = self.as_attacker("sh", "-c", 'umask 000; mkdir "$1" && cp "$2" "$3"', "sh", folder, shared, name)
        self.assertEqual(made.returncode, 0, made.stderr)
        pipe.write_text("go\n")
        self.assertEqual(pipe.read_text(), "end\n")
        *said, end = result.read_text().splitlines()
        self.assertEqual((said[-1], end), ("150", "status 3"))
        self.assertIn("belongs to another user", "\n".join(said[:-1]))
        self.assertEqual(os.listdir(folder), [os.path.basename(name)])

    def test_another_users_session_file_is_not_obeyed(self):
        story = f'''
            cp "$ISOTHERM_SESSION/$$.0" "$ISOTHERM_SESSION/copy" &&
            chown {ATTACKER} "$ISOTHERM_SESSION/copy" &&
            mv "$ISOTHERM_SESSION/copy" "$ISOTHERM_SESSION/1.7" &&
            exec {self.compile(WAITS)}'''
        with self.start_recorded("sh", "-c", story) as running:
            self.assertEqual(running.stdout.readline(), "ready\n")
            running.communicate("\n", timeout=60)
        profile = self.isotherm("report", "--json", self.work / "profile.iso")
        warnings = [source["warning"] for source in json.loads(profile.stdout)["sources"]]
        self.assertIn("1 session files cannot be used; 1.7: it belongs to another user", warnings)
