"""Links that a second user plants where root is about to write."""
import support

PROGRAM = """
#include <stdlib.h>
#include <string.h>
int main(void) {
    char *memory = malloc(8 << 20);
    for (int round = 0; round < 200; round++) memset(memory, round, 8 << 20);
    return memory[4096] == 0;
}
"""
TABLES = ["meta", "sites", "extents", "counts", "sources", "frames-000000", "heat-000000",
          "resident-000000", "epochs-000000"]
PRECIOUS = "precious\n"
# Makes a link at each name that it reads from standard input.
PLANTING = """
import os, sys
target = sys.argv[1]
for name in sys.stdin.read().splitlines():
    os.symlink(target, name)
"""


class OutputsTest(support.TwoUserTest):
    """Root writes into a directory that belongs to the attacker, which no kernel setting protects."""

    def setUp(self):
        super().setUp()
        self.theirs = self.shared_folder() / "theirs"
        self.assertEqual(self.as_attacker("mkdir", self.theirs).returncode, 0)
        self.precious = self.work / "precious"
        self.precious.write_text(PRECIOUS)
        self.program = self.compile(PROGRAM)

    def plant(self, names, target=None):
        """The attacker makes links to the victim's file at these names in the attacker's own directory."""
        script = self.work / "planting.py"
        script.write_text(PLANTING)
        text = "\n".join(str(self.theirs / name) for name in names)
        done = self.as_attacker("python3", script, target or self.precious, input=text)
        self.assertEqual(done.returncode, 0, done.stderr)

    def plant_for_next_processes(self, name):
        """The hidden names that were once used for a file, for the process ids of the next moment."""
        with open("/proc/loadavg", encoding="ascii") as loads:
            last = int(loads.read().split()[-1])
        self.plant(f".{name}.{pid}.tmp" for pid in range(last, last + 3000))

    def record(self, profile, *flags):
        return self.isotherm("record", "--epoch", "100ms", *flags, "-o", profile, "--", self.program)

    def assert_untouched(self):
        self.assertEqual(self.precious.read_text(), PRECIOUS)

    def test_root_writes_a_plan_and_a_report_and_no_planted_link_is_followed(self):
        profile = self.work / "app.iso"
        done = self.record(profile)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, command in [
            ("app.plan", ["plan", profile, "--tiers", "emulated", "-o"]),
            ("app.html", ["report", profile, "-o"]),
            ("app.json", ["report", profile, "--json", "-o"]),
        ]:
            self.plant_for_next_processes(name)
            done = self.isotherm(*command, self.theirs / name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_untouched()
            self.assertTrue((self.theirs / name).stat().st_size > 0)

    def test_root_records_into_a_planted_directory_and_no_link_in_it_is_followed(self):
        profile = self.theirs / "app.iso"
        self.assertEqual(self.as_attacker("mkdir", profile).returncode, 0)
        self.plant(f"app.iso/.{table}.parquet.tmp" for table in TABLES)
        done = self.record(profile)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_untouched()
        left = [path.name for path in profile.iterdir() if path.name.endswith(".tmp")]
        self.assertEqual(left, [], "left-over temporary names are removed")
        self.assertEqual(self.isotherm("report", "--json", profile).returncode, 0)

    def test_a_file_that_is_itself_a_link_of_another_user_is_refused(self):
        profile = self.work / "app.iso"
        self.assertEqual(self.record(profile).returncode, 0)
        self.plant(["app.plan"])
        done = self.isotherm("plan", profile, "--tiers", "emulated", "-o", self.theirs / "app.plan")
        self.assertEqual(done.returncode, 1)
        self.assertIn("link that belongs to another user", done.stderr)
        self.assert_untouched()

    def test_no_profile_and_no_file_is_taken_from_a_directory_that_a_link_leads_to(self):
        other = self.work / "other.iso"
        self.assertEqual(self.record(other).returncode, 0)
        (other / "notes.txt").write_text(PRECIOUS)
        before = sorted((path.name, path.read_bytes()) for path in other.iterdir())
        self.plant([".app.iso.gone", ".app.iso.before", "linked.iso"], other)
        # The second one has to put the first aside, and the link is in the way.
        for name, status in [("app.iso", 0), ("app.iso", 1), ("linked.iso", 1)]:
            done = self.record(self.theirs / name, "--force")
            self.assertEqual(done.returncode, status, done.stderr)
            after = sorted((path.name, path.read_bytes()) for path in other.iterdir())
            self.assertEqual(after, before)
