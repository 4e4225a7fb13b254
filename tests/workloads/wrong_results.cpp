// Alters one value of each kernel's result and prints the difference that the check then reports, one
// a line. Ends with status 1 where a right result is reported, or a wrong one is not.
#include <cstdio>
#include <cstdlib>

#include "check.hpp"

namespace {

constexpr uint32_t kAltered = 3;
constexpr uint64_t kIterations = 10;

void demand(bool holds, const char* what) {
  if (holds) return;
  std::printf("%s\n", what);
  std::exit(1);
}

/// Prints the difference that `check` finds once `value` is `wrong`, and puts the value back.
template <typename Value, typename Check>
void alter(Value* value, Value wrong, Check check) {
  demand(check().empty(), "a right result is reported as wrong");
  const Value right = *value;
  *value = wrong;
  const std::string difference = check();
  demand(!difference.empty(), "a wrong result is not found");
  std::printf("%s\n", difference.c_str());
  *value = right;
}

void alter_all(const Graph& graph, uint32_t root) {
  const std::vector<uint32_t> roots = {root, 1, 2};
  Search searched(graph.vertex_count);
  search(graph, root, &searched);
  const auto check_searched = [&] { return check_search(graph, root, searched); };
  alter(&searched.distance[kAltered], 7u, check_searched);
  alter(&searched.parent[kAltered], kAltered, check_searched);
  Ranking ranking(graph.vertex_count);
  rank_pages(graph, kIterations, &ranking);
  alter(&ranking.rank[kAltered], ranking.rank[kAltered] * (1 + 1e-8),
        [&] { return check_ranking(graph, kIterations, ranking); });
  ShortestPaths paths(graph, 1);
  find_paths(graph, root, 2, &paths);
  alter(&paths.distance[kAltered], paths.distance[kAltered] + 1,
        [&] { return check_paths(graph, root, paths); });
  Centrality centrality(graph);
  demand(find_centrality(graph, roots, &centrality), "the paths are not counted");
  alter(&centrality.score[kAltered], 0.125, [&] { return check_centrality(graph, roots, centrality); });
  Components components(graph.vertex_count);
  find_components(graph, &components);
  alter(&components.label[kAltered], kAltered, [&] { return check_components(graph, components); });
}

}  // namespace

int main() {
  const Graph graph = build_graph(generate_rmat(6, 16, 1));
  uint32_t root = kAltered + 1;
  while (graph.out.offsets[root + 1] == graph.out.offsets[root]) ++root;
  alter_all(graph, root);
}
