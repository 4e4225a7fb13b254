"""A profile's table of sites, and the cell magic of IPython and Jupyter."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from support import LIMIT_SECONDS, PYTHON, ROOT, isotherm, must

# A large hot list, and enough work for some hundred samples.
CELL = "rows = [bytes(4096) for _ in range(4000)]\\nprint('total', sum(row[i] for i in range(400) for row in rows))\\n"
SHELL = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "isotherm")
def cell(line, text):
    return shell.run_cell_magic("isotherm", line, text)
"""


def interpreter():
    """The interpreter of setup/python, which has IPython and pandas."""
    path = ROOT / "build/python/bin/python3"
    if not path.exists() or subprocess.run([path, "-c", "import IPython, pandas"], capture_output=True).returncode != 0:
        raise unittest.SkipTest("there is no Python with IPython and pandas (setup/python)")
    return str(path)


class Notebook(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="isotherm-notebook-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = pathlib.Path(isotherm())
        self.environment = {**PYTHON, "PATH": f"{program.parent}:{os.environ['PATH']}", "IPYTHONDIR": str(self.folder / "ipython"),
                            "MPLCONFIGDIR": str(self.folder)}

    def words(self, script):
        """The command of a script that runs in the test's folder."""
        return [interpreter(), "-c", f"import os; os.chdir({str(self.folder)!r})\n{SHELL}{script}"]

    def says(self, script):
        return must(self.words(script), **self.environment)

    def test_a_cell_is_recorded_and_its_value_is_the_table_of_sites(self):
        said = self.says(f"""
for _ in range(2):
    table = cell("--quiet", "{CELL}")
print(table.index.name, table["accesses"].sum() > 0, table["location"].str.len().min() > 0)
import isotherm
print(isotherm.sites("cell.iso").equals(table))
print(len(cell("-o other.iso", "{CELL}")) > 0, os.path.exists("other.iso"))
""")
        self.assertIn("site True True\nTrue\n", said)
        self.assertEqual(said.count("total 0\n"), 3)
        self.assertIn("True True\n", said.splitlines(keepends=True)[-1])

    def test_what_fails_is_said_and_raised(self):
        said = self.says("""
import isotherm
def fails(work):
    try:
        work()
    except RuntimeError as error:
        print("raised:", error)
fails(lambda: cell("", "undefined_name"))
fails(lambda: cell("--no-such-flag", "pass"))
fails(lambda: isotherm.sites("missing.iso"))
""")
        self.assertIn("NameError", said)
        self.assertIn("raised: isotherm record ended with status 1", said)
        self.assertIn("--no-such-flag", said)
        self.assertIn("raised: isotherm record ended with status 2", said)
        self.assertRegex(said, r"raised: .*missing\.iso")

    def test_an_interrupt_ends_the_cell_and_keeps_its_profile(self):
        endless = "print('begun')\\nwhile True: sum(range(100000))"
        script = f'print("rows", len(cell("", "{endless}")) >= 0)'
        # A group of its own, as Jupyter gives to a notebook; a test in the background may have the signal ignored.
        notebook = subprocess.Popen(self.words(f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{script}"),
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                                    env={**os.environ, **self.environment})
        self.addCleanup(notebook.stdout.close)
        self.addCleanup(notebook.kill)
        said = ""
        while "begun" not in said:
            line = notebook.stdout.readline()
            self.assertTrue(line, said)
            said += line
        time.sleep(1)
        os.killpg(notebook.pid, signal.SIGINT)
        rest, _ = notebook.communicate(timeout=LIMIT_SECONDS)
        self.assertIn("rows True", said + rest)
        self.assertTrue((self.folder / "cell.iso").exists())
