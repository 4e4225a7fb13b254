#include <algorithm>

#include "batch.hpp"
#include "kernels.hpp"

namespace {

ARRAY_MAKER(make_distances, uint32_t, "distance")
ARRAY_MAKER(make_parents, uint32_t, "parent")
ARRAY_MAKER(make_frontier, uint32_t, "frontier")
ARRAY_MAKER(make_next_frontier, uint32_t, "next_frontier")

/// Gives the unreached successors of one vertex their distance. Which of several parents wins is
/// a race; the distance is not.
void expand(const Graph& graph, uint32_t vertex, uint32_t level, Search* search, Batch* batch) {
  const uint64_t end = graph.out.offsets[vertex + 1];
  for (uint64_t i = graph.out.offsets[vertex]; i < end; ++i) {
    const uint32_t target = graph.out.targets[i];
    if (__atomic_load_n(&search->distance[target], __ATOMIC_RELAXED) != kUnreached) continue;
    uint32_t expected = kUnreached;
    if (__atomic_compare_exchange_n(&search->distance[target], &expected, level, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      search->parent[target] = vertex;
      batch->add(target);
    }
  }
}

}  // namespace

Search::Search(uint64_t vertex_count)
    : distance(make_distances(vertex_count)), parent(make_parents(vertex_count)),
      frontier(make_frontier(vertex_count)), next_frontier(make_next_frontier(vertex_count)) {}

uint64_t search(const Graph& graph, uint32_t root, Search* search) {
  std::fill_n(search->distance.get(), graph.vertex_count, kUnreached);
  std::fill_n(search->parent.get(), graph.vertex_count, kUnreached);
  search->distance[root] = 0;
  search->parent[root] = root;
  search->frontier[0] = root;
  uint64_t width = 1;
  uint64_t reached = 1;
  for (uint32_t level = 1; width != 0; ++level) {
    uint64_t next_width = 0;
#pragma omp parallel
    {
      Batch batch(search->next_frontier.get(), &next_width);
#pragma omp for schedule(dynamic, 256)
      for (uint64_t i = 0; i < width; ++i) {
        expand(graph, search->frontier[i], level, search, &batch);
      }
    }
    std::swap(search->frontier, search->next_frontier);
    width = next_width;
    reached += width;
  }
  return reached;
}
