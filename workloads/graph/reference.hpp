// Plain sequential implementations of the kernels, from the textbook, to compare results with. They
// share no code with the kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace reference {

/// Distances by breadth-first search with a queue; UINT32_MAX where there is no path.
std::vector<uint32_t> search(const Graph& graph, uint32_t root);

/// Dijkstra's algorithm; UINT32_MAX where there is no path, or none shorter than that.
std::vector<uint32_t> find_paths(const Graph& graph, const uint32_t* lengths, uint32_t root);

/// PageRank with damping 0.85, pushed over the outgoing arcs.
std::vector<double> rank_pages(const Graph& graph, uint64_t iterations);

/// Brandes' algorithm with lists of predecessors, from each root, divided by the largest score.
std::vector<double> find_centrality(const Graph& graph, const std::vector<uint32_t>& roots);

/// The smallest vertex of each vertex's component, by union-find.
std::vector<uint32_t> find_components(const Graph& graph);

}  // namespace reference
