"""An installed interface is found by CMake, pkg-config and pip, and programs build with it."""
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

from support import PROGRAMS, ROOT, must, need, python

PROJECT = """cmake_minimum_required(VERSION 3.16)
project(ranks C CXX Fortran)
find_package(isotherm {version} REQUIRED)
foreach(language c cpp f90)
  add_executable(${{language}} "{programs}/ranks.${{language}}")
  target_link_libraries(${{language}} PRIVATE isotherm::interface)
endforeach()
target_compile_features(cpp PRIVATE cxx_std_17)
target_link_libraries(f90 PRIVATE isotherm::fortran)
message(STATUS "package: ${{isotherm_PYTHON}}")
"""


def version():
    return re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE).group(1)


class Install(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="isotherm-install-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.prefix = self.folder / "a prefix"
        must([ROOT / "setup/install-development", "", self.prefix, version()])

    def links_no_runtime(self, program):
        self.assertNotIn("isotherm", must(["readelf", "--dynamic", program]))
        self.assertIn("checksum 328840372", must([program, "14"]))

    def test_cmake_finds_it(self):
        need("cmake", "cmake")
        need("gfortran", "gfortran")
        (self.folder / "CMakeLists.txt").write_text(PROJECT.format(version=version(), programs=PROGRAMS))
        build = self.folder / "build"
        said = must(["cmake", "-S", self.folder, "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={self.prefix}"])
        self.assertIn(f"package: {self.prefix}/share/isotherm/python", said)
        must(["cmake", "--build", build])
        for language in ("c", "cpp", "f90"):
            self.links_no_runtime(build / language)

    def test_pkg_config_finds_it(self):
        need("pkg-config", "pkg-config")

        def ask(*words):
            return shlex.split(must(["pkg-config", *words, "isotherm-interface"], PKG_CONFIG_PATH=f"{self.prefix}/lib/pkgconfig"))

        self.assertEqual(ask("--modversion"), [version()])
        for compiler, source in (("gcc", "ranks.c"), ("g++", "ranks.cpp"), ("gfortran", "ranks.f90")):
            module = ["-J", self.folder, *[pathlib.Path(" ".join(ask("--variable=fortran")))]] if compiler == "gfortran" else []
            must([compiler, "-O2", *ask("--cflags"), *module, PROGRAMS / source, *ask("--libs"), "-o", self.folder / "program"])
            self.links_no_runtime(self.folder / "program")

    def test_pip_installs_it_without_a_network(self):
        target = self.folder / "packages"
        source = self.prefix / "share/isotherm/python"
        must([python(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-index", "--no-deps", "--target", target, source])
        said = must([python(), "-c", "import isotherm; print(isotherm.__version__, isotherm.__file__, isotherm.version())"], PYTHONPATH=str(target))
        self.assertEqual(said.split(), [version(), f"{target}/isotherm/__init__.py", "0"])

    def test_the_source_archive_holds_the_package(self):
        script = f"import sys; sys.path.insert(0, sys.argv[1]); import backend; print(backend.build_sdist({str(self.folder)!r}))"
        name = must([python(), "-c", script, self.prefix / "share/isotherm/python"]).strip()
        listed = subprocess.run(["tar", "-tf", self.folder / name], capture_output=True, text=True, check=True).stdout
        for part in ("PKG-INFO", "pyproject.toml", "backend.py", "isotherm/__init__.py"):
            self.assertIn(f"isotherm-{version()}/{part}", listed)

    def test_a_script_is_a_program_of_this_interpreter(self):
        package = str(self.prefix / "share/isotherm/python")
        (self.folder / "isotherm").write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
        (self.folder / "isotherm").chmod(0o755)
        script = self.folder / "script.py"
        script.touch()

        def said(*words):
            return must([python(), "-m", "isotherm", *words], PYTHONPATH=package, PATH=f"{self.folder}:{os.environ['PATH']}")

        interpreter = must([python(), "-c", "import sys; print(sys.executable)"]).strip()
        self.assertEqual(said("record", "-o", "a.iso", script, "--size", "7"), f"record|-o|a.iso|--|{interpreter}|{script}|--size|7|")
        self.assertEqual(said("record", "--", "perl", script), f"record|--|perl|{script}|", "what follows -- is the user's own")
        self.assertEqual(said("report", "none.py"), "report|none.py|", "no such file, so no script")

    def test_without_a_command_line_the_module_says_where_to_get_one(self):
        done = subprocess.run([python(), "-m", "isotherm", "--version"], capture_output=True, text=True,
                              env={"PYTHONPATH": str(self.prefix / "share/isotherm/python"), "PATH": str(self.folder)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("the command line is neither in this package nor on the path", done.stderr)
