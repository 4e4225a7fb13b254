#include "run.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "../harness/result.hpp"
#include "check.hpp"
#include "kernels.hpp"
#include "optimize.hpp"

namespace {

/// What every kernel's run needs.
struct Job {
  const Graph& graph;
  const Settings& settings;
  const harness::Options& options;
};

bool is_chosen(const Settings& settings, const std::string& kernel) {
  if (settings.kernel == "both") return kernel == "bfs" || kernel == "pagerank";
  return settings.kernel == "all" || settings.kernel == kernel;
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

/// Ends the program at a difference.
void demand_none(const std::string& difference) {
  if (difference.empty()) return;
  std::fflush(stdout);
  std::fprintf(stderr, "graph: %s\n", difference.c_str());
  std::exit(1);
}

void print_agreement(const Job& job, const char* kernel) {
  if (job.settings.check) std::printf("%s: agrees with the plain implementation\n", kernel);
}

/// Every seventh distance of one root.
void add_distances(const Graph& graph, const uint32_t* distance, harness::Checksum* checksum) {
  for (uint64_t v = 0; v < graph.vertex_count; v += 7) checksum->add(uint64_t{distance[v]});
}

const char* name_of_largest(const Graph& graph, const double* values) {
  const double* largest = std::max_element(values, values + graph.vertex_count);
  return &graph.names[static_cast<uint64_t>(largest - values) * 16];
}

/// Searches from every root.
void run_searches(const Job& job, Search* state, harness::Stopwatch* watch) {
  harness::Checksum checksum;
  uint64_t reached = 0;
  for (const uint32_t root : draw_roots(job.graph, job.settings)) {
    watch->start();
    reached += search(job.graph, root, state);
    watch->stop();
    add_distances(job.graph, state->distance.get(), &checksum);
    if (job.settings.check) demand_none(check_search(job.graph, root, *state));
  }
  std::printf("bfs: reached %llu checksum %016llx\n", static_cast<unsigned long long>(reached),
              checksum.value());
  print_agreement(job, "bfs");
}

/// Ranks, then names the first page: the one use of the names.
void run_ranking(const Job& job, Ranking* state, harness::Stopwatch* watch) {
  watch->start();
  rank_pages(job.graph, job.settings.iterations, state);
  watch->stop();
  harness::Checksum checksum;
  for (uint64_t v = 0; v < job.graph.vertex_count; ++v) checksum.add(state->rank[v]);
  std::printf("pagerank: best %s checksum %016llx\n",
              name_of_largest(job.graph, state->rank.get()), checksum.value());
  if (job.settings.check) {
    demand_none(check_ranking(job.graph, job.settings.iterations, *state));
  }
  print_agreement(job, "pagerank");
}

/// Finds the shortest paths from every root.
void run_paths(const Job& job, ShortestPaths* state, harness::Stopwatch* watch) {
  harness::Checksum checksum;
  uint64_t reached = 0;
  for (const uint32_t root : draw_roots(job.graph, job.settings)) {
    watch->start();
    reached += find_paths(job.graph, root, job.settings.delta, state);
    watch->stop();
    add_distances(job.graph, state->distance.get(), &checksum);
    if (job.settings.check) demand_none(check_paths(job.graph, root, *state));
  }
  std::printf("sssp: reached %llu checksum %016llx\n", static_cast<unsigned long long>(reached),
              checksum.value());
  print_agreement(job, "sssp");
}

/// Finds the scores by the paths from all roots together.
void run_centrality(const Job& job, Centrality* state, harness::Stopwatch* watch) {
  const std::vector<uint32_t> roots = draw_roots(job.graph, job.settings);
  watch->start();
  const bool counted = find_centrality(job.graph, roots, state);
  watch->stop();
  if (!counted) {
    job.options.refuse("bc cannot count the shortest paths between two vertices of this graph: "
                       "there are more than 1e308");
  }
  harness::Checksum checksum;
  for (uint64_t v = 0; v < job.graph.vertex_count; ++v) checksum.add(state->score[v]);
  std::printf("bc: best %s checksum %016llx\n", name_of_largest(job.graph, state->score.get()),
              checksum.value());
  if (job.settings.check) demand_none(check_centrality(job.graph, roots, *state));
  print_agreement(job, "bc");
}

/// Counts the components and the vertices of the largest.
void print_components(const Graph& graph, const uint32_t* label) {
  harness::Checksum checksum;
  std::vector<uint32_t> sizes(graph.vertex_count);
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    checksum.add(uint64_t{label[v]});
    ++sizes[label[v]];
  }
  const auto none = std::count(sizes.begin(), sizes.end(), 0u);
  std::printf("cc: components %llu largest %llu checksum %016llx\n",
              static_cast<unsigned long long>(sizes.size()) - static_cast<unsigned long long>(none),
              static_cast<unsigned long long>(*std::max_element(sizes.begin(), sizes.end())),
              checksum.value());
}

void run_components(const Job& job, Components* state, harness::Stopwatch* watch) {
  watch->start();
  for (uint64_t i = 0; i < job.settings.searches; ++i) find_components(job.graph, state);
  watch->stop();
  print_components(job.graph, state->label.get());
  if (job.settings.check) demand_none(check_components(job.graph, *state));
  print_agreement(job, "cc");
}

/// A kernel's arrays, where it is chosen, and its time.
template <typename State>
struct Kernel {
  const char* name;
  std::optional<State> state;
  harness::Stopwatch watch;

  template <typename... Arguments>
  Kernel(const Settings& settings, const char* kernel, const Arguments&... arguments)
      : name(kernel) {
    if (is_chosen(settings, kernel)) state.emplace(arguments...);
  }

  void run(const Job& job, void (*function)(const Job&, State*, harness::Stopwatch*)) {
    if (state) function(job, &*state, &watch);
  }

  /// The two first kernels print a time even where they did not run.
  void print_time(bool always) const {
    if (!state && !always) return;
    harness::print_measure((std::string(name) + "_seconds").c_str(), watch.seconds());
  }
};

/// The first repetition, and the mean of the later ones, where there are any.
void print_repetitions(uint64_t count, double first_seconds, double all_seconds) {
  if (count < 2) return;
  harness::print_measure("first_seconds", first_seconds);
  harness::print_measure("later_seconds",
                         (all_seconds - first_seconds) / static_cast<double>(count - 1));
}

}  // namespace

void run_kernels(const Graph& graph, const Settings& settings, const harness::Options& options) {
  const Job job{graph, settings, options};
  Kernel<Search> searches(settings, "bfs", graph.vertex_count);
  Kernel<Ranking> ranking(settings, "pagerank", graph.vertex_count);
  Kernel<ShortestPaths> paths(settings, "sssp", graph, settings.seed);
  Kernel<Centrality> centrality(settings, "bc", graph);
  Kernel<Components> components(settings, "cc", graph.vertex_count);
  const auto seconds = [&] {
    return searches.watch.seconds() + ranking.watch.seconds() + paths.watch.seconds() +
           centrality.watch.seconds() + components.watch.seconds();
  };
  Optimization optimization;
  double first_seconds = 0;
  for (uint64_t i = 0; i < settings.repeat; ++i) {
    if (settings.optimize && i == 0) optimization.start();
    searches.run(job, run_searches);
    ranking.run(job, run_ranking);
    paths.run(job, run_paths);
    centrality.run(job, run_centrality);
    components.run(job, run_components);
    if (i == 0) first_seconds = seconds();
    if (settings.optimize && i == 0) optimization.move();
  }
  searches.print_time(true);
  ranking.print_time(true);
  paths.print_time(false);
  centrality.print_time(false);
  components.print_time(false);
  harness::print_measure("kernel_seconds", seconds());
  print_repetitions(settings.repeat, first_seconds, seconds());
  if (settings.optimize) optimization.print();
}
