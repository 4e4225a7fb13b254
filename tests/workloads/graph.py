"""Builds the graph program and runs it; writes graphs in the formats that it reads."""
import functools
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "workloads"
KERNELS = ["bfs", "pagerank", "sssp", "bc", "cc"]
MAGIC = b"\x89CSR\r\n\x1a\n"


def must(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


@functools.cache
def program():
    must(["make", "-s", "-C", ROOT / "workloads", f"OUT={BUILD}", "graph"])
    return BUILD / "graph"


@functools.cache
def sanitized(name):
    """`graph` or `wrong_results`, with checks of every access to memory and of all arithmetic."""
    out = BUILD / "sanitized"
    must(["make", "-s", "-j", os.cpu_count() or 1, "-C", ROOT / "tests" / "workloads", f"OUT={out}"])
    return out / name


def csr(vertices, offsets, targets, arcs=None, version=1, magic=MAGIC):
    arcs = len(targets) if arcs is None else arcs
    head = magic + struct.pack("<3Q", version, vertices, arcs)
    return head + struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(targets)}I", *targets)


def read_csr(path):
    """The number of vertices, and the arcs by source."""
    data = path.read_bytes()
    version, vertices, arcs = struct.unpack_from("<3Q", data, 8)
    assert (data[:8], version) == (MAGIC, 1)
    offsets = struct.unpack_from(f"<{vertices + 1}Q", data, 32)
    targets = struct.unpack_from(f"<{arcs}I", data, 40 + 8 * vertices)
    assert len(data) == 40 + 8 * vertices + 4 * arcs
    return vertices, [(source, target) for source in range(vertices) for target in targets[offsets[source]:offsets[source + 1]]]


def edge_list(arcs):
    return "".join(f"{source}\t{target}\n" for source, target in arcs)


def matrix(vertices, arcs, field="pattern", symmetry="general", value=""):
    entries = "".join(f"{source + 1} {target + 1}{value}\n" for source, target in arcs)
    return f"%%MatrixMarket matrix coordinate {field} {symmetry}\n% made by a test\n{vertices} {vertices} {len(arcs)}\n{entries}"


class GraphTest(unittest.TestCase):
    """A test with a folder of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="isotherm-graph-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run_program(self, binary, *words, **options):
        command = [str(word) for word in (binary, *words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)

    def result(self, *words):
        """What a run that succeeds prints on standard output."""
        done = self.run_program(program(), *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refusal(self, *words, binary=None, **options):
        """The one sentence of a run that is refused."""
        done = self.run_program(binary or program(), *words, **options)
        sentences = [line for line in done.stderr.splitlines() if line.startswith("graph: ")]
        self.assertEqual((done.returncode, len(sentences)), (2, 1), done.stdout + done.stderr)
        return sentences[0]
