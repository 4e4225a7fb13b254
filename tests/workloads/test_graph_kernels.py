"""The results of the graph kernels."""
import gzip
import itertools
import lzma
import resource

from graph import KERNELS, ROOT, GraphTest, edge_list, must, sanitized

# Beside the repository: web graphs, with the vertices and arcs that their README states.
WEB_GRAPHS = {"cnr-2000.el.xz": (lzma, 325557, 3216152), "web-NotreDame.txt.gz": (gzip, 325729, 1497134)}
EXTRACT_LINES = 40000
# Of `--rmat 12 --iterations 10`, when there were these two kernels only.
FIRST_VERSION = [
    "graph: 4096 vertices 65536 arcs weight 34.825771",
    "bfs: reached 47364 checksum 97c5d0a3cad10d9f",
    "pagerank: best page-0000000000 checksum b5e4bd3fbd4ae810",
]


class Kernels(GraphTest):
    def checked(self, *words):
        output = self.result("--kernel", "all", "--check", *words)
        for kernel in KERNELS:
            self.assertIn(f"{kernel}: agrees with the plain implementation\n", output)
        return output

    def web_graph(self, name):
        path = ROOT.parent / "shared" / "graphs" / name
        if not path.exists():
            self.skipTest(f"there is no {path}")
        return path

    def test_every_kernel_agrees_with_its_plain_implementation(self):
        for words in (["--rmat", 10], ["--rmat", 1], ["--rmat", 12, "--edge-factor", 2, "--seed", 7], ["--rmat", 9, "--delta", 300],
                      ["--rmat", 9, "--delta", 1], ["--rmat", 8, "--repeat", 2]):
            with self.subTest(words=words):
                self.checked("--roots", 5, "--iterations", 20, *words)

    def test_an_extract_of_each_web_graph_agrees_with_the_plain_implementations(self):
        for name, (packing, _, _) in WEB_GRAPHS.items():
            with packing.open(self.web_graph(name), "rt") as whole:
                extract = "".join(itertools.islice(whole, EXTRACT_LINES))
            self.checked("--input", self.write("extract.el", extract), "--roots", 4, "--iterations", 20, "--copies", 2)

    def test_a_whole_web_graph_has_the_published_size(self):
        for name, (_, vertices, arcs) in WEB_GRAPHS.items():
            output = self.result("--input", self.web_graph(name), "--kernel", "cc", "--check")
            self.assertTrue(output.startswith(f"graph: {vertices} vertices {arcs} arcs "), output)
            self.assertIn("cc: agrees", output)

    def test_results_do_not_depend_on_the_number_of_threads(self):
        for words in (["--rmat", 11], ["--rmat", 14, "--edge-factor", 1]):
            one, two, five = (self.result("--kernel", "all", "--iterations", 10, "--threads", threads, *words) for threads in (1, 2, 5))
            self.assertEqual(one, two)
            self.assertEqual(one, five)

    def test_the_width_of_buckets_does_not_change_distances(self):
        narrow, wide = (self.result("--rmat", 11, "--kernel", "sssp", "--delta", delta) for delta in (1, 4294967295))
        self.assertEqual(narrow, wide)

    def test_results_of_small_graphs_are_those_known_by_hand(self):
        # A path, a pair and a circle: vertex 1 is in the middle of the one path of two arcs.
        path = self.write("small.el", "0 1\n1 2\n3 4\n5 5\n")
        output = self.checked("--input", path, "--roots", 100)
        self.assertIn("graph: 6 vertices 4 arcs", output)
        self.assertIn("bc: best page-0000000001 ", output)
        self.assertIn("cc: components 3 largest 3 ", output)

    def test_both_runs_the_two_first_kernels_as_each_alone(self):
        both = self.result("--rmat", 8)
        self.assertEqual(both, self.result("--rmat", 8, "--kernel", "both"))
        alone = [self.result("--rmat", 8, "--kernel", kernel).splitlines() for kernel in ("bfs", "pagerank")]
        self.assertEqual(both.splitlines(), [alone[0][0], alone[0][1], alone[1][1]])

    def test_results_of_breadth_first_search_and_pagerank_are_those_of_the_first_version(self):
        self.assertEqual(self.result("--rmat", 12, "--iterations", 10).splitlines(), FIRST_VERSION)

    def test_a_graph_with_more_paths_than_a_double_counts_is_refused(self):
        # 64 parallel arcs from each vertex to the next one: 64^n paths of n arcs.
        chain = edge_list((vertex, vertex + 1) for vertex in range(250) for _ in range(64))
        sentence = self.refusal("--input", self.write("chain.el", chain), "--kernel", "bc", "--roots", 100)
        self.assertIn("more than 1e308", sentence)

    def test_a_graph_that_does_not_fit_is_refused(self):
        limit = (512 << 20, 512 << 20)
        sentence = self.refusal("--rmat", 24, "--threads", 1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
        self.assertIn("needs more memory than there is", sentence)

    def test_a_wrong_result_is_found_by_the_check(self):
        lines = must([sanitized("wrong_results")]).splitlines()
        self.assertEqual([line.split(":")[0] for line in lines], ["bfs", "bfs", "pagerank", "sssp", "bc", "cc"], lines)
        for line in lines:
            self.assertIn(" of vertex 3 is ", line)
