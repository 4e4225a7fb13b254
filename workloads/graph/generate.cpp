#include "../harness/random.hpp"
#include "edge_list.hpp"

namespace {

/// The quadrant chosen by `draw` at one level of the recursive matrix, as (row bit, column bit).
void choose_quadrant(uint32_t draw, uint32_t* row, uint32_t* column) {
  const auto limit = [](double share) { return static_cast<uint32_t>(share * 4294967295.0); };
  *row = draw >= limit(0.57 + 0.19);
  *column = (draw >= limit(0.57) && draw < limit(0.57 + 0.19)) || draw >= limit(0.57 + 0.19 + 0.19);
}

Edge draw_rmat_edge(uint64_t scale, uint64_t seed, uint64_t number) {
  harness::Random random(harness::mix(seed) + number);
  uint32_t source = 0;
  uint32_t target = 0;
  for (uint64_t level = 0; level < scale; ++level) {
    uint32_t row;
    uint32_t column;
    choose_quadrant(static_cast<uint32_t>(random.next() >> 32), &row, &column);
    source = source << 1 | row;
    target = target << 1 | column;
  }
  return {source, target};
}

/// A bijection of the numbers below 2^scale: multiplication by an odd number, and a shift-xor.
uint32_t scramble(uint32_t vertex, uint64_t scale) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << scale) - 1);
  uint32_t value = (vertex * 2654435761u) & mask;
  value ^= value >> (scale / 2 + 1);
  return (value * 2246822519u) & mask;
}

}  // namespace

[[gnu::noinline]] EdgeList copy_graph(const EdgeList& one, uint64_t copies, uint64_t bridges,
                                      uint64_t seed) {
  EdgeList all;
  all.vertex_count = one.vertex_count * copies;
  all.edge_count = one.edge_count * copies + (copies - 1) * 2 * bridges;
  all.edges.reset(NEW_ARRAY(Edge, "arcs", all.edge_count));
  uint64_t next = 0;
  for (uint64_t copy = 0; copy < copies; ++copy) {
    const auto shift = static_cast<uint32_t>(copy * one.vertex_count);
    for (uint64_t i = 0; i < one.edge_count; ++i) {
      all.edges[next++] = {one.edges[i].source + shift, one.edges[i].target + shift};
    }
  }
  harness::Random random(seed);
  for (uint64_t copy = 0; copy + 1 < copies; ++copy) {
    const uint64_t here = copy * one.vertex_count;
    const uint64_t there = here + one.vertex_count;
    for (uint64_t i = 0; i < bridges; ++i) {
      const auto a = static_cast<uint32_t>(here + random.below(one.vertex_count));
      const auto b = static_cast<uint32_t>(there + random.below(one.vertex_count));
      all.edges[next++] = {a, b};
      all.edges[next++] = {b, a};
    }
  }
  return all;
}

[[gnu::noinline]] EdgeList generate_rmat(uint64_t scale, uint64_t edge_factor, uint64_t seed) {
  EdgeList list;
  list.vertex_count = uint64_t{1} << scale;
  list.edge_count = list.vertex_count * edge_factor;
  list.edges.reset(NEW_ARRAY(Edge, "arcs", list.edge_count));
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < list.edge_count; ++i) {
    const Edge edge = draw_rmat_edge(scale, seed, i);
    list.edges[i] = {scramble(edge.source, scale), scramble(edge.target, scale)};
  }
  return list;
}
