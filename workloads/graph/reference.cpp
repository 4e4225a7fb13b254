#include "reference.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace reference {
namespace {

/// Calls `visit` with each arc of a vertex: its number and its target.
template <typename Visit>
void for_each_arc(const Graph& graph, uint64_t vertex, Visit visit) {
  for (uint64_t i = graph.out.offsets[vertex]; i < graph.out.offsets[vertex + 1]; ++i) {
    visit(i, graph.out.targets[i]);
  }
}

/// One root's search of Brandes' algorithm.
struct Paths {
  explicit Paths(uint64_t vertex_count)
      : distance(vertex_count, UINT32_MAX), count(vertex_count), predecessors(vertex_count) {}
  std::vector<uint32_t> distance;
  std::vector<double> count;
  std::vector<std::vector<uint32_t>> predecessors;
  /// The vertices reached, nearest first.
  std::vector<uint32_t> order;
};

Paths count_paths(const Graph& graph, uint32_t root) {
  Paths paths(graph.vertex_count);
  paths.distance[root] = 0;
  paths.count[root] = 1;
  paths.order.push_back(root);
  for (size_t next = 0; next < paths.order.size(); ++next) {
    const uint32_t vertex = paths.order[next];
    for_each_arc(graph, vertex, [&](uint64_t, uint32_t target) {
      if (paths.distance[target] == UINT32_MAX) {
        paths.distance[target] = paths.distance[vertex] + 1;
        paths.order.push_back(target);
      }
      if (paths.distance[target] == paths.distance[vertex] + 1) {
        paths.count[target] += paths.count[vertex];
        paths.predecessors[target].push_back(vertex);
      }
    });
  }
  return paths;
}

/// The root of a vertex's tree; halves the path to it.
uint32_t find_root(std::vector<uint32_t>* parent, uint32_t vertex) {
  while ((*parent)[vertex] != vertex) {
    (*parent)[vertex] = (*parent)[(*parent)[vertex]];
    vertex = (*parent)[vertex];
  }
  return vertex;
}

}  // namespace

std::vector<uint32_t> search(const Graph& graph, uint32_t root) {
  std::vector<uint32_t> distance(graph.vertex_count, UINT32_MAX);
  std::queue<uint32_t> queue;
  distance[root] = 0;
  queue.push(root);
  while (!queue.empty()) {
    const uint32_t vertex = queue.front();
    queue.pop();
    for_each_arc(graph, vertex, [&](uint64_t, uint32_t target) {
      if (distance[target] != UINT32_MAX) return;
      distance[target] = distance[vertex] + 1;
      queue.push(target);
    });
  }
  return distance;
}

std::vector<uint32_t> find_paths(const Graph& graph, const uint32_t* lengths, uint32_t root) {
  using Entry = std::pair<uint64_t, uint32_t>;  // distance, vertex
  std::vector<uint32_t> distance(graph.vertex_count, UINT32_MAX);
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  distance[root] = 0;
  queue.emplace(0, root);
  while (!queue.empty()) {
    const auto [here, vertex] = queue.top();
    queue.pop();
    if (here != distance[vertex]) continue;
    for (uint64_t i = graph.out.offsets[vertex]; i < graph.out.offsets[vertex + 1]; ++i) {
      const uint64_t through = here + lengths[i];
      const uint32_t target = graph.out.targets[i];
      if (through >= distance[target]) continue;
      distance[target] = static_cast<uint32_t>(through);
      queue.emplace(through, target);
    }
  }
  return distance;
}

std::vector<double> rank_pages(const Graph& graph, uint64_t iterations) {
  const double damping = 0.85;
  const auto count = static_cast<double>(graph.vertex_count);
  std::vector<double> rank(graph.vertex_count, 1 / count);
  for (uint64_t turn = 0; turn < iterations; ++turn) {
    std::vector<double> received(graph.vertex_count);
    double dangling = 0;
    for (uint64_t v = 0; v < graph.vertex_count; ++v) {
      const uint64_t degree = graph.out.offsets[v + 1] - graph.out.offsets[v];
      if (degree == 0) dangling += rank[v];
      for_each_arc(graph, v, [&](uint64_t, uint32_t target) {
        received[target] += rank[v] / static_cast<double>(degree);
      });
    }
    for (uint64_t v = 0; v < graph.vertex_count; ++v) {
      rank[v] = (1 - damping) / count + damping * (received[v] + dangling / count);
    }
  }
  return rank;
}

std::vector<double> find_centrality(const Graph& graph, const std::vector<uint32_t>& roots) {
  std::vector<double> score(graph.vertex_count);
  for (const uint32_t root : roots) {
    const Paths paths = count_paths(graph, root);
    std::vector<double> dependency(graph.vertex_count);
    for (size_t next = paths.order.size(); next-- > 1;) {  // the first one is the root
      const uint32_t vertex = paths.order[next];
      for (const uint32_t before : paths.predecessors[vertex]) {
        dependency[before] += paths.count[before] / paths.count[vertex] * (1 + dependency[vertex]);
      }
      score[vertex] += dependency[vertex];
    }
  }
  const double largest = *std::max_element(score.begin(), score.end());
  if (largest != 0) {
    for (double& one : score) one /= largest;
  }
  return score;
}

std::vector<uint32_t> find_components(const Graph& graph) {
  std::vector<uint32_t> parent(graph.vertex_count);
  for (uint64_t v = 0; v < graph.vertex_count; ++v) parent[v] = static_cast<uint32_t>(v);
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    for_each_arc(graph, v, [&](uint64_t, uint32_t target) {
      const uint32_t one = find_root(&parent, static_cast<uint32_t>(v));
      const uint32_t other = find_root(&parent, target);
      parent[std::max(one, other)] = std::min(one, other);
    });
  }
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    parent[v] = find_root(&parent, static_cast<uint32_t>(v));
  }
  return parent;
}

}  // namespace reference
