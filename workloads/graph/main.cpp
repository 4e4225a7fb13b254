// Breadth-first search and PageRank on a graph read from a file or generated (R-MAT).
//
// Order of allocation, which determines first touch: raw arcs, names, weights (all cold once
// loaded), then both directions of the graph, then the arrays of the kernels.
#include <omp.h>

#include <algorithm>
#include <new>
#include <string>
#include <vector>

#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "binary_rows.hpp"
#include "graph.hpp"

namespace {

struct Settings {
  std::string input;
  std::string output;
  uint64_t copies = 1;
  uint64_t bridges = 16;
  uint64_t rmat = 19;
  uint64_t edge_factor = 16;
  std::string kernel = "both";
  uint64_t roots = 16;
  uint64_t iterations = 200;
  uint64_t seed = 1;
  uint64_t threads = 2;
  uint64_t repeat = 1;
};

EdgeList load(const Settings& settings, const harness::Options& options) {
  if (settings.input.empty()) return generate_rmat(settings.rmat, settings.edge_factor, settings.seed);
  EdgeList list;
  std::string error;
  if (!read_graph(settings.input, &list, &error)) options.refuse(error);
  if (list.vertex_count * settings.copies >= UINT32_MAX) {
    options.refuse("--copies " + std::to_string(settings.copies) +
                   " makes more than 4294967295 vertices");
  }
  return copy_graph(list, settings.copies, settings.bridges, settings.seed);
}

/// Roots with successors, drawn by the seed.
std::vector<uint32_t> draw_roots(const Graph& graph, const Settings& settings) {
  harness::Random random(settings.seed);
  std::vector<uint32_t> roots;
  for (uint64_t tries = 0; roots.size() < settings.roots && tries < 1000000; ++tries) {
    const auto vertex = static_cast<uint32_t>(random.below(graph.vertex_count));
    if (graph.out.offsets[vertex + 1] != graph.out.offsets[vertex]) roots.push_back(vertex);
  }
  return roots;
}

/// Searches from every root; the checksum covers the number of vertices at each distance.
void run_searches(const Graph& graph, const Settings& settings, Search* state,
                  harness::Stopwatch* watch) {
  harness::Checksum checksum;
  uint64_t reached = 0;
  for (const uint32_t root : draw_roots(graph, settings)) {
    watch->start();
    reached += search(graph, root, state);
    watch->stop();
    for (uint64_t v = 0; v < graph.vertex_count; v += 7) {
      checksum.add(uint64_t{state->distance[v]});
    }
  }
  std::printf("bfs: reached %llu checksum %016llx\n", static_cast<unsigned long long>(reached),
              checksum.value());
}

/// Ranks, then names the first page: the one use of the names.
void run_ranking(const Graph& graph, const Settings& settings, Ranking* state,
                 harness::Stopwatch* watch) {
  watch->start();
  rank_pages(graph, settings.iterations, state);
  watch->stop();
  harness::Checksum checksum;
  for (uint64_t v = 0; v < graph.vertex_count; ++v) checksum.add(state->rank[v]);
  const double* ranks = state->rank.get();
  const auto best = static_cast<uint64_t>(std::max_element(ranks, ranks + graph.vertex_count) - ranks);
  std::printf("pagerank: best %s checksum %016llx\n", &graph.names[best * 16], checksum.value());
}

void run(const Settings& settings, const harness::Options& options) {
  harness::Stopwatch load_time;
  load_time.start();
  const EdgeList list = load(settings, options);
  const Graph graph = build_graph(list);
  load_time.stop();
  double weight = 0;
  for (uint64_t i = 0; i < graph.edge_count; i += 1000) weight += graph.weights[i];
  std::printf("graph: %llu vertices %llu arcs weight %.6f\n",
              static_cast<unsigned long long>(graph.vertex_count),
              static_cast<unsigned long long>(graph.edge_count), weight);
  std::string error;
  if (!settings.output.empty()) {
    if (!write_rows(settings.output, graph, &error)) options.refuse(error);
    return;
  }

  Search search_state(graph.vertex_count);
  Ranking ranking_state(graph.vertex_count);
  harness::Stopwatch search_time;
  harness::Stopwatch ranking_time;
  for (uint64_t i = 0; i < settings.repeat; ++i) {
    if (settings.kernel != "pagerank") run_searches(graph, settings, &search_state, &search_time);
    if (settings.kernel != "bfs") run_ranking(graph, settings, &ranking_state, &ranking_time);
  }
  harness::print_measure("load_seconds", load_time.seconds());
  harness::print_measure("bfs_seconds", search_time.seconds());
  harness::print_measure("pagerank_seconds", ranking_time.seconds());
  harness::print_measure("kernel_seconds", search_time.seconds() + ranking_time.seconds());
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("graph", "breadth-first search and PageRank in compressed sparse rows");
  options.file("--input", &settings.input,
               "an edge list, Matrix Market or binary CSR, plain, .xz or .gz; without it, R-MAT");
  options.file("--write", &settings.output, "write the graph as binary CSR, and run no kernel");
  options.count("--copies", &settings.copies, 1, 100000, "copies of the input, joined by a few arcs");
  options.count("--bridges", &settings.bridges, 0, 1000000, "arcs each way between two copies");
  options.count("--rmat", &settings.rmat, 1, 31, "R-MAT: 2^N vertices");
  options.count("--edge-factor", &settings.edge_factor, 1, 1024, "R-MAT: arcs per vertex");
  options.word("--kernel", &settings.kernel, "bfs|pagerank|both", "what to run");
  options.count("--roots", &settings.roots, 1, 100000, "searches of one repetition");
  options.count("--iterations", &settings.iterations, 1, 1000000, "steps of PageRank");
  options.count("--seed", &settings.seed, 0, UINT64_MAX, "seed of the random numbers");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernels run");
  options.parse(argc, argv);
  omp_set_num_threads(static_cast<int>(settings.threads));
  try {
    run(settings, options);
  } catch (const std::bad_alloc&) {
    options.refuse("the graph needs more memory than there is; take a smaller --rmat or --copies");
  }
}
