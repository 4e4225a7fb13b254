"""A debugger that calls functions in a program under the runtime."""
import re

from support import LIBRARY, ROOT, AttackTest

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  char *block = malloc(100);
  puts("here");
  free(block);
  return 3;
}
"""
# As the program would call it; without debugging information of the C library a debugger knows no types.
CALL_MALLOC = "((void *(*)(unsigned long)) malloc)"
EXPORTS = (ROOT / "crates" / "runtime" / "exports.txt").read_text().split()


class Debugger(AttackTest):
    def debugged(self, *commands):
        """Runs gdb's commands where the program prints "here", and the program to its end."""
        program = self.compile(PROGRAM, "-g")
        words = ["gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off",
                 "-ex", f"set exec-wrapper env LD_PRELOAD={LIBRARY}", "-ex", "break puts", "-ex", "run"]
        for command in [*commands, "continue"]:
            words += ["-ex", command]
        done = self.run_command(*words, program)
        self.assertRegex(done.stdout, r"exited with code 03\]", done.stderr)
        return done.stdout

    def require_calls(self):
        """Skips where gdb can call no function at all: gdb 13 does not know the size of the registers of processors with tiles."""
        program = self.compile(PROGRAM, "-g")
        done = self.run_command("gdb", "-batch", "-nx", "-iex", "set debuginfod enabled off", "-ex", "break puts",
                                "-ex", "run", "-ex", "print ((int (*)(void)) getpid)() != 0", program)
        if "$1 = 1" not in done.stdout:
            self.skipTest(f"gdb can call no function on this processor: {done.stderr.strip().splitlines()[-1:]}")

    def test_a_debugger_may_call_malloc_in_a_running_program(self):
        self.require_calls()
        shown = self.debugged(
            "print malloc(100)",
            f"print {CALL_MALLOC}(100) != 0",
            f"print {{char[4]}} (({CALL_MALLOC}(8)))",
            # A debugger makes the program allocate memory for its own strings.
            'set var $text = "text"',
            'print ((unsigned long (*)(const char *)) strlen)("a string of gdb\'s")',
        )
        self.assertIn("$1 = 1", shown)
        self.assertRegex(shown, r"\$\d+ = 17")
        self.assertNotIn("SIG", shown)

    def test_a_debugger_finds_each_exported_name_where_the_program_does(self):
        shown = self.debugged(*[f"info address {name}" for name in EXPORTS])
        found = re.findall(r'^Symbol "(\w+)" is (?:a function )?at (?:address )?(0x[0-9a-f]+)', shown, re.M)
        found = {name: int(address, 16) for name, address in found}
        listing = self.run_command("nm", "-D", "--defined-only", "--format=posix", LIBRARY).stdout
        offsets = {line.split()[0]: int(line.split()[2], 16) for line in listing.splitlines()}
        bias = found["malloc"] - offsets["malloc"]
        self.assertEqual(bias % 4096, 0)
        self.assertGreater(len(found), 40, shown[-2000:])
        # Where the C library's own debugging information is installed it may come first.
        ours = range(bias, bias + LIBRARY.stat().st_size)
        wrong = {name for name, address in found.items() if address in ours and address != bias + offsets[name]}
        self.assertEqual(wrong, set())
        for name in ["malloc", "free", "calloc", "realloc", "posix_memalign", "_Znwm", "_ZdlPv"]:
            self.assertEqual(found[name], bias + offsets[name], name)
