"""Builds the package (PEP 517) with the standard library alone: `pip install` works without a network.

A wheel holds the modules, and so runs on every machine. With the setting `programs`, a prefix that `make install` filled, it holds `isotherm` and
its library, too, for the one platform that the setting `platform` names: packaging/build makes that one.
"""
import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = sorted((HERE / "isotherm").glob("*.py"))
VERSION = re.search(r'^__version__ = "(.+)"$', (HERE / "isotherm/__init__.py").read_text(), re.MULTILINE).group(1)
TITLE = f"isotherm-{VERSION}"
METADATA = f"""Metadata-Version: 2.1
Name: isotherm
Version: {VERSION}
Summary: Names for arrays, profiles of phases and placement on request, for programs that Isotherm runs
License: Apache-2.0 OR MIT
Requires-Python: >=3.8
Provides-Extra: numpy
Requires-Dist: numpy>=1.22; extra == "numpy"
Provides-Extra: pandas
Requires-Dist: pandas>=1.5; extra == "pandas"
"""
ANYWHERE = "any"
# The command that pip makes, and the programs in the prefix and in the wheel; the agent is there if a JDK was when it was built.
COMMAND = "[console_scripts]\nisotherm = isotherm.__main__:main\n"
PROGRAMS = ["bin/isotherm", "lib/libisotherm.so"]
AGENT = "lib/libisotherm-java.so"
EXECUTABLE = 0o100755 << 16


def of_programs(prefix):
    """The contents of the programs by their paths in the wheel."""
    names = [*PROGRAMS, *([AGENT] if (prefix / AGENT).is_file() else [])]
    return {f"isotherm/{name}": (prefix / name).read_bytes() for name in names}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings = config_settings or {}
    platform = settings.get("platform", ANYWHERE)
    files = {f"isotherm/{path.name}": path.read_bytes() for path in SOURCES}
    programs = of_programs(pathlib.Path(settings["programs"])) if "programs" in settings else {}
    files |= programs
    if programs:
        files[f"{TITLE}.dist-info/entry_points.txt"] = COMMAND.encode()
    files[f"{TITLE}.dist-info/METADATA"] = METADATA.encode()
    pure = "false" if programs else "true"
    files[f"{TITLE}.dist-info/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: isotherm\nRoot-Is-Purelib: {pure}\nTag: py3-none-{platform}\n".encode()
    record = f"{TITLE}.dist-info/RECORD"
    digests = ((name, hashlib.sha256(data).digest(), len(data)) for name, data in files.items())
    rows = [f"{name},sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()},{size}" for name, digest, size in digests]
    files[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    name = f"{TITLE}-py3-none-{platform}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            # A fixed date: the same sources make the same file.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            if path in programs:
                entry.external_attr = EXECUTABLE
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    name = f"{TITLE}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz") as archive:
        for path in [HERE / "pyproject.toml", HERE / "backend.py", *SOURCES]:
            archive.add(path, f"{TITLE}/{path.relative_to(HERE)}")
        information = tarfile.TarInfo(f"{TITLE}/PKG-INFO")
        information.size = len(METADATA.encode())
        archive.addfile(information, io.BytesIO(METADATA.encode()))
    return name
