#include <algorithm>
#include <cmath>

#include "batch.hpp"
#include "kernels.hpp"

namespace {

ARRAY_MAKER(make_scores, double, "score")
ARRAY_MAKER(make_path_counts, double, "path_count")
ARRAY_MAKER(make_dependencies, double, "dependency")
ARRAY_MAKER(make_depths, uint32_t, "depth")
ARRAY_MAKER(make_order, uint32_t, "order")
ARRAY_MAKER(make_successors, uint64_t, "successors")

uint64_t words_of(uint64_t bits) { return (bits + 63) / 64; }

/// Gives the unreached successors of one vertex their depth, and marks the arcs to all successors
/// of that depth.
void expand(const Graph& graph, uint32_t vertex, uint32_t level, Centrality* state, Batch* batch) {
  const uint64_t end = graph.out.offsets[vertex + 1];
  for (uint64_t i = graph.out.offsets[vertex]; i < end; ++i) {
    const uint32_t target = graph.out.targets[i];
    uint32_t depth = __atomic_load_n(&state->depth[target], __ATOMIC_RELAXED);
    if (depth == kUnreached &&
        __atomic_compare_exchange_n(&state->depth[target], &depth, level, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      batch->add(target);
      depth = level;
    }
    // Where another thread was first, the exchange has read its level, which is the same.
    if (depth == level) {
      __atomic_fetch_or(&state->successors[i / 64], uint64_t{1} << i % 64, __ATOMIC_RELAXED);
    }
  }
}

/// The number of shortest paths to one vertex of `level`. Pulled over the incoming arcs: were it
/// pushed, as in the suite, counts beyond 2^53 would depend on the order of the threads.
double count_paths(const Graph& graph, uint32_t vertex, uint32_t level, const Centrality& state) {
  double count = 0;
  const uint64_t end = graph.in.offsets[vertex + 1];
  for (uint64_t i = graph.in.offsets[vertex]; i < end; ++i) {
    const uint32_t source = graph.in.targets[i];
    if (state.depth[source] == level - 1) count += state.path_count[source];
  }
  return count;
}

/// Searches from the root and counts paths. The vertices of level i are those of `order` from
/// levels[i] to levels[i + 1]. False where a count overflows.
bool search_levels(const Graph& graph, Centrality* state, std::vector<uint64_t>* levels) {
  bool finite = true;
  uint64_t tail = 1;
  for (uint32_t level = 1; levels->back() != tail; ++level) {
    const uint64_t begin = levels->back();
    const uint64_t end = tail;
    levels->push_back(end);
#pragma omp parallel
    {
      {
        Batch batch(state->order.get(), &tail);
#pragma omp for schedule(dynamic, 64)
        for (uint64_t i = begin; i < end; ++i) expand(graph, state->order[i], level, state, &batch);
      }
#pragma omp barrier
#pragma omp for schedule(dynamic, 64)
      for (uint64_t i = end; i < tail; ++i) {
        const uint32_t vertex = state->order[i];
        state->path_count[vertex] = count_paths(graph, vertex, level, *state);
        const bool counted = !std::isinf(state->path_count[vertex]);
        if (!counted) __atomic_store_n(&finite, false, __ATOMIC_RELAXED);
      }
    }
  }
  return finite;
}

/// The share of the paths to later vertices that go through this one.
double sum_dependencies(const Graph& graph, uint32_t vertex, const Centrality& state) {
  double sum = 0;
  const uint64_t end = graph.out.offsets[vertex + 1];
  for (uint64_t i = graph.out.offsets[vertex]; i < end; ++i) {
    if ((state.successors[i / 64] >> i % 64 & 1) == 0) continue;
    const uint32_t target = graph.out.targets[i];
    sum += state.path_count[vertex] / state.path_count[target] * (1 + state.dependency[target]);
  }
  return sum;
}

bool add_paths_from(const Graph& graph, uint32_t root, Centrality* state) {
  std::fill_n(state->depth.get(), graph.vertex_count, kUnreached);
  std::fill_n(state->successors.get(), words_of(graph.edge_count), 0);
  state->depth[root] = 0;
  state->path_count[root] = 1;
  state->order[0] = root;
  std::vector<uint64_t> levels = {0};
  if (!search_levels(graph, state, &levels)) return false;
  for (size_t level = levels.size() - 1; level-- > 0;) {
#pragma omp parallel for schedule(dynamic, 64)
    for (uint64_t i = levels[level]; i < levels[level + 1]; ++i) {
      const uint32_t vertex = state->order[i];
      state->dependency[vertex] = sum_dependencies(graph, vertex, *state);
      if (level != 0) state->score[vertex] += state->dependency[vertex];
    }
  }
  return true;
}

}  // namespace

Centrality::Centrality(const Graph& graph)
    : score(make_scores(graph.vertex_count)), path_count(make_path_counts(graph.vertex_count)),
      dependency(make_dependencies(graph.vertex_count)), depth(make_depths(graph.vertex_count)),
      order(make_order(graph.vertex_count)),
      successors(make_successors(words_of(graph.edge_count))) {}

bool find_centrality(const Graph& graph, const std::vector<uint32_t>& roots,
                     Centrality* centrality) {
  double* score = centrality->score.get();
  std::fill_n(score, graph.vertex_count, 0);
  for (const uint32_t root : roots) {
    if (!add_paths_from(graph, root, centrality)) return false;
  }
  const double largest = *std::max_element(score, score + graph.vertex_count);
  if (largest == 0) return true;
#pragma omp parallel for schedule(static)
  for (uint64_t v = 0; v < graph.vertex_count; ++v) score[v] /= largest;
  return true;
}
