#include "check.hpp"

#include <cmath>
#include <cstdio>

#include "reference.hpp"

namespace {

constexpr double kTolerance = 1e-9;

bool agree(uint32_t got, uint32_t wanted) { return got == wanted; }
bool agree(double got, double wanted) { return std::abs(got - wanted) <= kTolerance * wanted; }

std::string text(uint32_t value) { return value == kUnreached ? "none" : std::to_string(value); }
std::string text(double value) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.17g", value);
  return digits;
}

/// Compares one value of each vertex. `what` names the value, such as "bfs: the distance".
template <typename Value>
std::string compare(const std::string& what, const Value* got, const std::vector<Value>& wanted) {
  for (size_t v = 0; v < wanted.size(); ++v) {
    if (agree(got[v], wanted[v])) continue;
    return what + " of vertex " + std::to_string(v) + " is " + text(got[v]) +
           ", and by the plain implementation " + text(wanted[v]);
  }
  return "";
}

/// For each vertex, whether its parent is one level nearer to the root and has an arc to it.
std::vector<bool> find_parents(const Graph& graph, const Search& search) {
  std::vector<bool> found(graph.vertex_count);
  for (uint64_t parent = 0; parent < graph.vertex_count; ++parent) {
    if (search.distance[parent] == kUnreached) continue;
    for (uint64_t i = graph.out.offsets[parent]; i < graph.out.offsets[parent + 1]; ++i) {
      const uint32_t vertex = graph.out.targets[i];
      const bool is_next = search.distance[vertex] == search.distance[parent] + 1;
      if (is_next && search.parent[vertex] == parent) found[vertex] = true;
    }
  }
  return found;
}

std::string from(uint32_t root) { return " from vertex " + std::to_string(root); }

}  // namespace

std::string check_search(const Graph& graph, uint32_t root, const Search& search) {
  const std::string difference = compare("bfs: the distance" + from(root), search.distance.get(),
                                         reference::search(graph, root));
  if (!difference.empty()) return difference;
  const std::vector<bool> found = find_parents(graph, search);
  for (uint64_t v = 0; v < graph.vertex_count; ++v) {
    if (v == root || search.distance[v] == kUnreached || found[v]) continue;
    return "bfs: the parent" + from(root) + " of vertex " + std::to_string(v) + " is " +
           text(search.parent[v]) + ", which is not before it on a shortest path";
  }
  return "";
}

std::string check_paths(const Graph& graph, uint32_t root, const ShortestPaths& paths) {
  return compare("sssp: the distance" + from(root), paths.distance.get(),
                 reference::find_paths(graph, paths.lengths.get(), root));
}

std::string check_ranking(const Graph& graph, uint64_t iterations, const Ranking& ranking) {
  return compare("pagerank: the rank", ranking.rank.get(),
                 reference::rank_pages(graph, iterations));
}

std::string check_centrality(const Graph& graph, const std::vector<uint32_t>& roots,
                             const Centrality& centrality) {
  return compare("bc: the score", centrality.score.get(),
                 reference::find_centrality(graph, roots));
}

std::string check_components(const Graph& graph, const Components& components) {
  return compare("cc: the smallest vertex in the component", components.label.get(),
                 reference::find_components(graph));
}
