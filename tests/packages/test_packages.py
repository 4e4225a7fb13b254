"""The .deb, the wheel and the .rpm, each installed and used once."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 600
ARCHIVE = "http://deb.debian.org/debian"
# Programs and their library only: what a user waits for at each start, and loads into each program.
PROGRAM_BYTES_MAX = 20 << 20
# A program of Debian's own: a large hot list, and enough work for some hundred samples.
SCRIPT = "rows = [bytes(4096) for _ in range(4000)]\ntotal = sum(row[i % 4096] for i in range(400) for row in rows)\nprint('total', total)\n"
CONFIGURATION = '[sources]\nbudget = "1%"\n'


def must(*command, **environment):
    """Runs a command that must succeed; returns its output."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=LIMIT_SECONDS,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL, cwd="/")
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with status {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
    return done.stdout + done.stderr


def archive():
    """The archive of this machine's own packages, so that a mirror is used."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"], capture_output=True, text=True).stdout
    found = [line.split()[0] for line in listed.splitlines() if line.endswith(" bookworm")]
    return found[0] if found else ARCHIVE


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for command, package in (("dpkg-shlibdeps", "dpkg-dev"), ("mmdebstrap", "mmdebstrap"), ("rpmbuild", "rpm")):
            if not shutil.which(command):
                raise unittest.SkipTest(f"{command} is not installed (apt-get install {package})")
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root makes a new Debian here")
        # Not under a temporary folder that forbids devices or programs.
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="isotherm-packages-", dir="/var/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.packages = pathlib.Path(os.environ.get("ISOTHERM_PACKAGES") or cls.folder / "packages")
        made = must(ROOT / "packaging/build", cls.packages).split()
        cls.deb, cls.rpm, cls.wheel = (next(path for path in made if path.endswith(end)) for end in (".deb", ".rpm", ".whl"))
        cls.debian = cls.folder / "debian"
        needs = must("dpkg-deb", "--field", cls.deb, "Depends")
        names = re.findall(r"(?:^|, )([a-z0-9.+-]+)", needs)
        must("mmdebstrap", "--quiet", "--aptopt=Acquire::Retries \"5\"", "--variant=essential",
             f"--include={','.join([*names, 'python3', 'python3-pip'])}", "bookworm", cls.debian, archive())

    def inside(self, *command):
        """Runs a command in the new Debian, with its own /proc."""
        enter = 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm" && exec chroot "$0" "$@"'
        return must("unshare", "--mount", "--propagation", "private", "sh", "-c", enter, self.debian, *command)

    def put(self, source):
        """A file of this machine in the new Debian; returns its path there."""
        shutil.copy(source, self.debian / "srv")
        return f"/srv/{pathlib.Path(source).name}"

    def records_and_runs(self, *isotherm):
        """A profile of a script, its report, and a run by its plan, by a way to call the command line."""
        (self.debian / "srv/rows.py").write_text(SCRIPT)
        program = ["/srv/rows.py"] if "-m" in isotherm else ["--", "python3", "/srv/rows.py"]
        self.assertIn("total 0", self.inside(*isotherm, "record", "--force", "-o", "/srv/rows.iso", *program))
        self.assertIn("python3", self.inside(*isotherm, "report", "--text", "/srv/rows.iso"))
        self.inside(*isotherm, "plan", "/srv/rows.iso", "--tiers", "emulated", "--fast", "50%", "-o", "/srv/rows.plan")
        self.assertIn("total 0", self.inside(*isotherm, "run", "--plan", "/srv/rows.plan", *program))

    def files_of_ours(self):
        """What is left of Isotherm in the new Debian's own directories."""
        return [str(path) for path in (self.debian / "usr").rglob("*sotherm*")]

    def test_deb(self):
        self.inside("dpkg", "--install", self.put(self.deb))
        self.records_and_runs("isotherm")
        for path in ("usr/bin/isotherm", "usr/lib/libisotherm.so"):
            self.assertLess((self.debian / path).stat().st_size, PROGRAM_BYTES_MAX)
        for path in ("share/man/man1/isotherm-record.1.gz", "share/bash-completion/completions/isotherm", "lib/systemd/system/isotherm.service"):
            self.assertTrue((self.debian / "usr" / path).is_file(), path)

        # An upgrade keeps the configuration, and reads what was recorded before it.
        configuration = self.debian / "etc/isotherm/daemon.toml"
        configuration.parent.mkdir()
        configuration.write_text(CONFIGURATION)
        self.inside("dpkg", "--install", self.put(self.newer()))
        self.assertEqual(configuration.read_text(), CONFIGURATION)
        self.assertIn("python3", self.inside("isotherm", "report", "--text", "/srv/rows.iso"))

        self.inside("dpkg", "--remove", "isotherm")
        self.assertEqual(self.files_of_ours(), [])
        self.assertTrue(configuration.is_file())

    def newer(self):
        """The .deb of a later version with the same files."""
        opened = self.folder / "opened"
        must("dpkg-deb", "--raw-extract", self.deb, opened)
        control = opened / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^Version: .*$", "Version: 99", control.read_text()))
        must("dpkg-deb", "--root-owner-group", "--build", opened, self.folder / "newer.deb")
        return self.folder / "newer.deb"

    def test_wheel(self):
        self.inside("python3", "-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--no-index", "--break-system-packages", self.put(self.wheel))
        self.records_and_runs("python3", "-m", "isotherm")
        self.assertRegex(self.inside("isotherm", "--version"), r"^isotherm \d")
        self.assertEqual(self.inside("python3", "-c", "import isotherm; print(isotherm.version())").strip(), "0")
        self.inside("python3", "-m", "pip", "uninstall", "--quiet", "--root-user-action=ignore", "--yes", "--break-system-packages", "isotherm")
        self.assertEqual(self.files_of_ours(), [])

    def test_rpm(self):
        listed = must("rpm", "--query", "--package", "--list", self.rpm).split()
        names = [line.split()[-1].removeprefix(".") for line in must("dpkg-deb", "--contents", self.deb).splitlines()]
        files = {name for name in names if not name.endswith("/") and not name.endswith("/copyright")}
        self.assertEqual(set(listed), files)
        other = self.folder / "rpm"
        must("rpm", "--root", other, "--initdb")
        must("rpm", "--root", other, "--install", "--nodeps", "--noscripts", self.rpm)
        self.assertRegex(must(other / "usr/bin/isotherm", "--version"), r"^isotherm \d")

    def test_the_same_build_makes_the_same_files(self):
        again = self.folder / "again"
        must(ROOT / "packaging/build", again, "deb", "wheel")
        for first in (self.deb, self.wheel):
            second = again / pathlib.Path(first).name
            self.assertEqual(pathlib.Path(first).read_bytes(), second.read_bytes(), first)

    def test_an_unknown_kind_is_refused(self):
        done = subprocess.run([ROOT / "packaging/build", self.folder / "none", "snap"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("snap is no kind of package; there are deb, rpm and wheel", done.stderr)


if __name__ == "__main__":
    unittest.main()
