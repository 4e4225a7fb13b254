"""The inputs of the graph program: three formats with the same results, and what is refused."""
import gzip
import lzma

from graph import GraphTest, csr, edge_list, matrix, read_csr, sanitized

HEADER = "%%MatrixMarket matrix coordinate pattern general\n"
# A file's name and content, and words of the sentence that refuses it.
REFUSED_MATRICES = [
    ("header.mtx", "%%MatrixMarket matrix array real general\n2 2\n1.0\n", "line 1 is no header of a graph"),
    ("complex.mtx", "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 2 1 0\n", "line 1 is no header of a graph"),
    ("skew.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n", "line 1 is no header of a graph"),
    ("plain.mtx", "1 2\n2 1\n", "line 1 is no header of a graph"),
    ("no-size.mtx", HEADER + "% nothing else\n", "line 2 is the last one: wanted rows, columns and entries"),
    ("words.mtx", HEADER + "two 2 1\n1 2\n", "line 2 is no size"),
    ("negative.mtx", HEADER + "-2 -2 1\n1 2\n", "line 2 is no size"),
    ("four.mtx", HEADER + "2 2 1 1\n1 2\n", "line 2 is no size"),
    ("huge.mtx", HEADER + "4294967295 4294967295 1\n1 2\n", "line 2 is no size"),
    ("absurd.mtx", HEADER + "99999999999999999999999 2 1\n1 2\n", "line 2 is no size"),
    ("oblong.mtx", HEADER + "2 3 1\n1 2\n", "line 2 has 2 rows and 3 columns: the matrix of a graph is square"),
    ("zero.mtx", HEADER + "2 2 1\n0 1\n", "line 3 is no entry: wanted a row and a column from 1 to 2, and no value"),
    ("outside.mtx", HEADER + "2 2 1\n1 3\n", "line 3 is no entry"),
    ("value.mtx", HEADER + "2 2 1\n1 2 1.5\n", "line 3 is no entry"),
    ("no-value.mtx", HEADER.replace("pattern", "integer") + "2 2 1\n1 2\n", "line 3 is no entry: wanted a row and a column from 1 to 2 and one value"),
    ("no-number.mtx", HEADER.replace("pattern", "real") + "2 2 1\n1 2 x\n", "line 3 is no entry"),
    ("fraction.mtx", HEADER.replace("pattern", "integer") + "2 2 1\n1 2 1.5\n", "line 3 is no entry"),
    ("few.mtx", HEADER + "2 2 3\n1 2\n2 1\n", "line 4 is the last one: the file has 2 of 3 entries"),
    ("billions.mtx", HEADER + "2 2 18446744073709551615\n1 2\n", "the file has 1 of 18446744073709551615 entries"),
    ("many.mtx", HEADER + "2 2 1\n1 2\n\n2 1\n", "line 5 is one entry more than the 1 that the size line states"),
    ("long.mtx", HEADER + "%" + "x" * 1024 + "\n2 2 1\n1 2\n", "line 2 is longer than 1024 bytes"),
    ("byte.mtx", HEADER.encode() + b"2 2 1\n1\0 2\n", "line 3 is longer than 1024 bytes, or holds a zero byte"),
    ("empty.mtx", HEADER + "2 2 0\n", "holds no arc"),
]
REFUSED_EDGE_LISTS = [
    ("words.el", "# arcs\n0 1\none two\n", "line 3 is no arc: wanted two vertex numbers below 4294967295"),
    ("one.el", "0 1\n7\n", "line 2 is no arc"),
    ("negative.el", "0 -1\n", "line 1 is no arc"),
    ("large.el", "0 4294967295\n", "line 1 is no arc"),
    ("empty.el", "", "holds no arc"),
    ("no-arcs.el", "# nothing\n", "holds no arc"),
    ("broken.el.gz", b"no gzip", "could not be read, or holds no arc"),
]
RIGHT = csr(3, [0, 2, 2, 3], [1, 2, 0])
REFUSED_ROWS = [
    ("empty.csr", b"", "ends within the 32 bytes of the header"),
    ("header.csr", RIGHT[:31], "ends within the 32 bytes of the header"),
    ("text.csr", "0 1\n" * 10, "is no binary CSR: its first 8 bytes are others"),
    ("magic", b"\x89PNG" + RIGHT[4:], "is no binary CSR: its first 8 bytes are others"),
    ("version.csr", csr(3, [0, 2, 2, 3], [1, 2, 0], version=2), "is binary CSR of version 2, and only version 1 is known"),
    ("no-vertices.csr", csr(0, [0], []), "states 0 vertices: wanted 1 to 4294967294"),
    ("vertices.csr", csr(4294967295, [0], []), "states 4294967295 vertices"),
    ("offsets.csr", RIGHT[:50], "ends within its offsets"),
    ("absurd-offsets.csr", csr(4294967294, [0], []), "ends within its offsets"),
    ("first.csr", csr(3, [1, 2, 2, 3], [1, 2, 0]), "offset 0 is 1: offsets begin with 0, never descend and end with the number of arcs, 3"),
    ("descending.csr", csr(3, [0, 2, 1, 3], [1, 2, 0]), "offset 2 is 1: "),
    ("beyond.csr", csr(3, [0, 2, 9, 3], [1, 2, 0]), "offset 2 is 9: "),
    ("last.csr", csr(3, [0, 2, 2, 2], [1, 2, 0]), "offset 3 is 2: "),
    ("target.csr", csr(3, [0, 2, 2, 3], [1, 3, 0]), "target 1 is 3: the graph has 3 vertices"),
    ("targets.csr", RIGHT[:-1], "ends within its targets"),
    ("absurd-targets.csr", csr(1, [0, 1 << 62], [0], arcs=1 << 62), "ends within its targets"),
    ("more.csr", RIGHT + b"\0", "goes on behind its last target"),
    ("no-arcs.csr", csr(2, [0, 0, 0], []), "holds no arc"),
]


class Inputs(GraphTest):
    def results(self, *words):
        return self.result("--kernel", "all", "--iterations", 10, "--roots", 4, *words)

    def test_every_format_gives_the_same_results(self):
        rows = self.folder / "graph.csr"
        self.result("--rmat", 10, "--write", rows)
        vertices, arcs = read_csr(rows)
        self.assertEqual((vertices, len(arcs)), (1024, 16384))
        arcs.append((vertices - 1, vertices - 1))  # an edge list has no vertices behind its last arc
        offsets = [sum(source < vertex for source, _ in arcs) for vertex in range(vertices + 1)]
        rows.write_bytes(csr(vertices, offsets, [target for _, target in arcs]))
        wanted = self.results("--input", rows)
        texts = {
            "graph.el": edge_list(arcs), "graph.mtx": matrix(vertices, arcs), "quote's.txt": matrix(vertices, arcs, "integer", value=" -7"),
            "real.mtx": matrix(vertices, arcs, "real", value=" 1.5e-3"), "crlf.mtx": matrix(vertices, arcs).replace("\n", "\r\n"),
            "upper.mtx": matrix(vertices, arcs).replace("matrix coordinate pattern general", "MATRIX Coordinate Pattern General"),
        }
        files = [self.write(name, text) for name, text in texts.items()]
        files += [self.write("renamed", rows.read_bytes()), self.write("graph.csr.gz", gzip.compress(rows.read_bytes()))]
        files += [self.write(f"{name}.gz", gzip.compress(texts[name].encode())) for name in ("graph.el", "graph.mtx")]
        files += [self.write(f"{name}.xz", lzma.compress(texts[name].encode())) for name in ("graph.el", "graph.mtx")]
        for path in files:
            with self.subTest(path=path.name):
                self.assertEqual(self.results("--input", path), wanted)

    def test_a_graph_that_is_written_and_read_keeps_all_but_the_order_of_sums(self):
        rows = self.folder / "graph.csr"
        self.result("--rmat", 10, "--write", rows)
        generated, read = (self.results(*words).splitlines() for words in (["--rmat", 10], ["--input", rows]))
        for kernel, before, after in zip(["graph", "bfs", "pagerank", "sssp", "bc", "cc"], generated, read, strict=True):
            length = len(before) - (16 if kernel in ("pagerank", "bc") else 0)  # the digits of the checksum
            self.assertEqual(before[:length], after[:length])

    def test_a_symmetric_matrix_has_the_arcs_of_both_directions(self):
        both = [(1, 0), (0, 1), (2, 2), (2, 1), (1, 2)]
        half = matrix(3, [(1, 0), (2, 2), (2, 1)], symmetry="symmetric")
        self.assertEqual(self.results("--input", self.write("half.mtx", half)), self.results("--input", self.write("both.el", edge_list(both))))

    def test_malformed_files_are_refused_in_one_sentence(self):
        for name, content, words in REFUSED_MATRICES + REFUSED_EDGE_LISTS + REFUSED_ROWS:
            with self.subTest(name=name):
                path = self.write(name, content)
                sentence = self.refusal("--input", path, binary=sanitized("graph"))
                self.assertIn(f"graph: {path} ", sentence)
                self.assertIn(words, sentence)

    def test_files_that_cannot_be_read_or_written_are_refused(self):
        self.assertIn("cannot be opened: No such file", self.refusal("--input", self.folder / "absent"))
        self.assertIn("could not be read", self.refusal("--input", self.folder))
        self.assertIn("cannot be written: No such file", self.refusal("--rmat", 4, "--write", self.folder / "absent" / "graph.csr"))
        self.assertIn("cannot be written: No space left", self.refusal("--rmat", 4, "--write", "/dev/full"))

    def test_options_are_checked(self):
        self.assertIn("--check takes no value", self.refusal("--check=yes"))
        self.assertIn("--kernel wants one of bfs|sssp|pagerank|bc|cc|both|all", self.refusal("--kernel", "tc"))
        self.assertIn("--delta wants a whole number from 1", self.refusal("--delta", 0))
