// Compares the kernels' results with those of the plain implementations in reference.hpp. Each
// function returns the first difference as a sentence, or an empty string.
//
// Whole numbers must be equal. Ranks and scores may differ by one part in 10^9: the plain
// implementations take their sums in another order.
#pragma once

#include <string>
#include <vector>

#include "kernels.hpp"

std::string check_search(const Graph& graph, uint32_t root, const Search& search);
std::string check_paths(const Graph& graph, uint32_t root, const ShortestPaths& paths);
std::string check_ranking(const Graph& graph, uint64_t iterations, const Ranking& ranking);
std::string check_centrality(const Graph& graph, const std::vector<uint32_t>& roots,
                             const Centrality& centrality);
std::string check_components(const Graph& graph, const Components& components);
