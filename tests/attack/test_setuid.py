"""Programs that run with more rights than the user who starts them."""
import os
import shutil

from support import BUILD, LIBRARY, TwoUserTest

SETUID = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void) {
  char *block = malloc(3 << 20);
  memset(block, 1, 3 << 20);
  printf("%d %d %d\\n", getuid() == geteuid(), geteuid() == 0, block[1000]);
  return 3;
}
"""


class Setuid(TwoUserTest):
    def setUp(self):
        super().setUp()
        # Beside the program, so that the attacker reaches both; without the symbols it is quickly copied.
        self.library = self.work / "libisotherm.so"
        shutil.copyfile(LIBRARY, self.library)
        self.library.chmod(0o755)
        flags = ["-L", BUILD, f"-Wl,--no-as-needed,-rpath,{self.work}", "-lisotherm"]
        self.program = self.compile(SETUID, *flags)

    def configuration(self, owner):
        """A configuration that the program would obey, with one user's rights."""
        folder = self.work / "configuration"
        folder.mkdir(mode=0o700)
        file = folder / "configuration"
        done = self.isotherm("record", "-o", self.work / "profile.iso", "--",
                             "sh", "-c", 'cp "$ISOTHERM_CONFIG" "$1"', "sh", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in [file, folder]:
            os.chown(path, owner, -1)
        return file

    def surroundings(self, configuration, session):
        return os.environ | {
            "ISOTHERM_CONFIG": str(configuration),
            "ISOTHERM_SESSION": str(session),
            "ISOTHERM_VERBOSE": "1",
        }

    def closed(self, name):
        """A directory of root's, as /etc is, in which only root may make a file."""
        folder = self.work / name
        folder.mkdir(mode=0o755)
        return folder

    def test_a_setuid_program_linked_to_the_library_obeys_no_variable(self):
        session = self.closed("etc")
        file = self.configuration(os.geteuid())
        self.program.chmod(0o4755)
        done = self.as_attacker(self.program, env=self.surroundings(file, session))
        # The real user, the effective user root, the block as written; and no message.
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("0 1 1\n", "", 3))
        self.assertEqual(os.listdir(session), [])

    def test_the_same_program_without_other_rights_obeys_them(self):
        session = self.closed("etc")
        file = self.configuration(os.geteuid())
        done = self.run_command(self.program, env=self.surroundings(file, session))
        self.assertEqual((done.stdout, done.returncode), ("1 1 1\n", 3), done.stderr)
        self.assertIn("isotherm: state", done.stderr)
        self.assertEqual(len(os.listdir(session)), 1)
