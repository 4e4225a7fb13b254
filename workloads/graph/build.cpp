#include <algorithm>
#include <cstdio>

#include "../harness/random.hpp"
#include "graph.hpp"

namespace {

[[gnu::noinline]] Array<char> make_names(uint64_t vertex_count) {
  Array<char> names(NEW_ARRAY(char, "names", vertex_count * 16));
#pragma omp parallel for schedule(static)
  for (uint64_t v = 0; v < vertex_count; ++v) {
    std::snprintf(&names[v * 16], 16, "page-%010u", static_cast<uint32_t>(v));
  }
  return names;
}

[[gnu::noinline]] Array<float> make_weights(uint64_t edge_count) {
  Array<float> weights(NEW_ARRAY(float, "weights", edge_count));
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < edge_count; ++i) {
    weights[i] = static_cast<float>(harness::mix(i) >> 40) * 0x1p-24f;
  }
  return weights;
}

/// Counts the arcs of each vertex into offsets[v + 1], then sums up.
template <typename From>
void count_offsets(const EdgeList& list, From from, uint64_t* offsets) {
  std::fill_n(offsets, list.vertex_count + 1, 0);
  for (uint64_t i = 0; i < list.edge_count; ++i) ++offsets[from(list.edges[i]) + 1];
  for (uint64_t v = 0; v < list.vertex_count; ++v) offsets[v + 1] += offsets[v];
}

/// Puts each arc into its row, using offsets[v] as the cursor of row v, and then moves the
/// cursors, which now stand at the rows' ends, back by one place.
template <typename From, typename To>
void fill_targets(const EdgeList& list, From from, To to, uint64_t* offsets, uint32_t* targets) {
  for (uint64_t i = 0; i < list.edge_count; ++i) {
    targets[offsets[from(list.edges[i])]++] = to(list.edges[i]);
  }
  for (uint64_t v = list.vertex_count; v > 0; --v) offsets[v] = offsets[v - 1];
  offsets[0] = 0;
}

ARRAY_MAKER(make_out_offsets, uint64_t, "out_offsets")
ARRAY_MAKER(make_out_targets, uint32_t, "out_targets")
ARRAY_MAKER(make_in_offsets, uint64_t, "in_offsets")
ARRAY_MAKER(make_in_sources, uint32_t, "in_sources")

uint32_t source_of(const Edge& edge) { return edge.source; }
uint32_t target_of(const Edge& edge) { return edge.target; }

}  // namespace

Graph build_graph(const EdgeList& list) {
  Graph graph;
  graph.vertex_count = list.vertex_count;
  graph.edge_count = list.edge_count;
  graph.names = make_names(list.vertex_count);
  graph.weights = make_weights(list.edge_count);
  graph.out.offsets.reset(make_out_offsets(list.vertex_count + 1));
  graph.out.targets.reset(make_out_targets(list.edge_count));
  count_offsets(list, source_of, graph.out.offsets.get());
  fill_targets(list, source_of, target_of, graph.out.offsets.get(), graph.out.targets.get());
  graph.in.offsets.reset(make_in_offsets(list.vertex_count + 1));
  graph.in.targets.reset(make_in_sources(list.edge_count));
  count_offsets(list, target_of, graph.in.offsets.get());
  fill_targets(list, target_of, source_of, graph.in.offsets.get(), graph.in.targets.get());
  return graph;
}
