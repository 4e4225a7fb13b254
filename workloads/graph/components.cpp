#include <algorithm>
#include <vector>

#include "../harness/random.hpp"
#include "kernels.hpp"

namespace {

/// Arcs of each vertex that are linked before the largest component is known.
constexpr uint64_t kRounds = 2;
/// Vertices that tell the largest component.
constexpr uint64_t kSamples = 1024;

ARRAY_MAKER(make_labels, uint32_t, "label")

uint32_t load(const uint32_t* label, uint32_t vertex) {
  return __atomic_load_n(&label[vertex], __ATOMIC_RELAXED);
}

/// Joins two trees: the larger root gets the smaller vertex as its parent. A label never grows, so
/// that the root of a tree is its smallest vertex.
void link(uint32_t a, uint32_t b, uint32_t* label) {
  uint32_t one = load(label, a);
  uint32_t other = load(label, b);
  while (one != other) {
    const uint32_t high = std::max(one, other);
    const uint32_t low = std::min(one, other);
    uint32_t parent = load(label, high);
    if (parent == low) return;
    if (parent == high && __atomic_compare_exchange_n(&label[high], &parent, low, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      return;
    }
    one = load(label, load(label, high));
    other = load(label, low);
  }
}

/// Makes every vertex the child of its tree's root.
void compress(uint64_t vertex_count, uint32_t* label) {
#pragma omp parallel for schedule(dynamic, 16384)
  for (uint64_t v = 0; v < vertex_count; ++v) {
    uint32_t root = load(label, static_cast<uint32_t>(v));
    while (root != load(label, root)) root = load(label, root);
    __atomic_store_n(&label[v], root, __ATOMIC_RELAXED);
  }
}

/// Links the arcs of a vertex from number `first` up to number `last`, of which the vertex may have
/// fewer.
void link_arcs(const Rows& rows, uint64_t vertex, uint64_t first, uint64_t last, uint32_t* label) {
  const uint32_t* targets = &rows.targets[rows.offsets[vertex]];
  const uint64_t end = std::min(rows.offsets[vertex + 1] - rows.offsets[vertex], last);
  for (uint64_t i = first; i < end; ++i) link(static_cast<uint32_t>(vertex), targets[i], label);
}

/// The most frequent label of a sample.
uint32_t largest_component(uint64_t vertex_count, const uint32_t* label) {
  harness::Random random(kSamples);
  std::vector<uint32_t> sample(kSamples);
  for (uint32_t& one : sample) one = label[random.below(vertex_count)];
  std::sort(sample.begin(), sample.end());
  uint32_t best = sample[0];
  long most = 0;
  for (auto begin = sample.begin(); begin != sample.end();) {
    const auto end = std::upper_bound(begin, sample.end(), *begin);
    if (end - begin > most) best = *begin;
    most = std::max<long>(most, end - begin);
    begin = end;
  }
  return best;
}

}  // namespace

Components::Components(uint64_t vertex_count) : label(make_labels(vertex_count)) {}

void find_components(const Graph& graph, Components* components) {
  uint32_t* label = components->label.get();
#pragma omp parallel for schedule(static)
  for (uint64_t v = 0; v < graph.vertex_count; ++v) label[v] = static_cast<uint32_t>(v);
  for (uint64_t round = 0; round < kRounds; ++round) {
#pragma omp parallel for schedule(dynamic, 16384)
    for (uint64_t v = 0; v < graph.vertex_count; ++v) {
      link_arcs(graph.out, v, round, round + 1, label);
    }
    compress(graph.vertex_count, label);
  }
  const uint32_t largest = largest_component(graph.vertex_count, label);
#pragma omp parallel for schedule(dynamic, 16384)
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    // An arc between the largest component and a vertex outside is linked from outside.
    if (load(label, static_cast<uint32_t>(v)) == largest) continue;
    link_arcs(graph.out, v, kRounds, UINT64_MAX, label);
    link_arcs(graph.in, v, 0, UINT64_MAX, label);
  }
  compress(graph.vertex_count, label);
}
