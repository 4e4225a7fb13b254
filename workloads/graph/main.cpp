// Kernels of the GAP Benchmark Suite on a graph read from a file or generated (R-MAT).
//
// Order of allocation, which determines first touch: raw arcs, names, weights (all cold once
// loaded), then both directions of the graph, then the arrays of the kernels.
#include <string>

#include "../harness/options.hpp"
#include "../harness/result.hpp"
#include "../harness/threads.hpp"
#include "binary_rows.hpp"
#include "graph.hpp"
#include "run.hpp"

namespace {

EdgeList load(const Settings& settings, const harness::Options& options) {
  if (settings.input.empty()) {
    return generate_rmat(settings.rmat, settings.edge_factor, settings.seed);
  }
  const EdgeList list = read_graph(settings.input);
  if (list.vertex_count * settings.copies >= UINT32_MAX) {
    options.refuse("--copies " + std::to_string(settings.copies) +
                   " makes more than 4294967295 vertices");
  }
  return copy_graph(list, settings.copies, settings.bridges, settings.seed);
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
  if (!settings.output.empty()) return write_rows(settings.output, graph);
  harness::print_measure("load_seconds", load_time.seconds());
  run_kernels(graph, settings, options);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  harness::Options options("graph", "kernels of the GAP Benchmark Suite in compressed sparse rows");
  options.file("--input", &settings.input,
               "an edge list, Matrix Market or binary CSR, plain, .xz or .gz; without it, R-MAT");
  options.file("--write", &settings.output, "write the graph as binary CSR, and run no kernel");
  options.count("--copies", &settings.copies, 1, 100000,
                "copies of the input, joined by a few arcs");
  options.count("--bridges", &settings.bridges, 0, 1000000, "arcs each way between two copies");
  options.count("--rmat", &settings.rmat, 1, 31, "R-MAT: 2^N vertices");
  options.count("--edge-factor", &settings.edge_factor, 1, 1024, "R-MAT: arcs per vertex");
  options.word("--kernel", &settings.kernel, "bfs|sssp|pagerank|bc|cc|both|all",
               "what to run; both: bfs and pagerank");
  options.count("--roots", &settings.roots, 1, 100000, "bfs, sssp, bc: roots of one repetition");
  options.count("--iterations", &settings.iterations, 1, 1000000, "steps of PageRank");
  options.count("--delta", &settings.delta, 1, UINT32_MAX, "sssp: width of a bucket of distances");
  options.count("--searches", &settings.searches, 1, 100000,
                "cc: searches for all components of one repetition");
  options.flag("--check", &settings.check, "compare the results with plain implementations");
  options.count("--seed", &settings.seed, 0, UINT64_MAX, "seed of the random numbers");
  options.count("--threads", &settings.threads, 1, 1024, "threads");
  options.count("--repeat", &settings.repeat, 1, 1000000, "times the kernels run");
  options.flag("--optimize", &settings.optimize,
               "profile the first repetition, then have Isotherm move the data");
  options.parse(argc, argv);
  if (settings.optimize && settings.repeat < 2) {
    options.refuse("--optimize needs --repeat 2 or more: the first repetition is profiled, and the "
                   "later ones run on the data that was moved");
  }
  arrays_have_names = settings.optimize;
  try {
    harness::with_threads(options, settings.threads, "the graph needs more memory than there is; take a smaller --rmat or --copies",
                          [&] { run(settings, options); });
  } catch (const FileError& error) {
    options.refuse(error.what());
  }
}
