// The kernels and their arrays. Each array is made by its own function. Every result is the same
// to the last bit for every number of threads.
#pragma once

#include <cstdint>
#include <vector>

#include "array.hpp"
#include "graph.hpp"

/// The distance of a vertex that no path leads to.
constexpr uint32_t kUnreached = UINT32_MAX;

/// Distances by breadth-first search from one root; `kUnreached` where there is no path.
struct Search {
  explicit Search(uint64_t vertex_count);
  Array<uint32_t> distance;
  Array<uint32_t> parent;
  Array<uint32_t> frontier;
  Array<uint32_t> next_frontier;
};

/// Searches level by level; returns the number of vertices reached.
uint64_t search(const Graph& graph, uint32_t root, Search* search);

/// PageRank with damping 0.85, pulled over the incoming arcs.
struct Ranking {
  explicit Ranking(uint64_t vertex_count);
  Array<double> rank;
  /// rank / out-degree of each vertex, which its successors read.
  Array<double> share;
};

/// Runs `iterations` steps from the even distribution. Every sum is taken in a fixed order, so
/// that the result is the same to the last bit for every number of threads.
void rank_pages(const Graph& graph, uint64_t iterations, Ranking* ranking);

/// Lengths of the shortest paths from one root; `kUnreached` where there is no path, or none
/// shorter than 4294967295.
struct ShortestPaths {
  /// Draws the length of each arc, 1 to 255, from the seed and the arc's two vertices.
  ShortestPaths(const Graph& graph, uint64_t seed);
  /// In the order of `graph.out`.
  Array<uint32_t> lengths;
  Array<uint32_t> distance;
  /// The vertices of the bucket that is relaxed. A vertex may be in it more than once, so it grows.
  Array<uint32_t> bucket;
  uint64_t bucket_capacity;
};

/// Relaxes arcs in buckets of distances that are `delta` wide (Meyer and Sanders' delta-stepping,
/// as in the GAP Benchmark Suite); returns the number of vertices reached.
uint64_t find_paths(const Graph& graph, uint32_t root, uint64_t delta, ShortestPaths* paths);

/// Betweenness centrality from a sample of roots, by Brandes' algorithm as in the GAP Benchmark
/// Suite: the scores of all vertices, divided by the largest. Parallel arcs are different paths. A
/// path counts for the vertices between its ends; the suite's code counts the root, too.
struct Centrality {
  explicit Centrality(const Graph& graph);
  Array<double> score;
  /// Number of shortest paths from the root.
  Array<double> path_count;
  Array<double> dependency;
  Array<uint32_t> depth;
  /// The vertices reached, by depth.
  Array<uint32_t> order;
  /// A bit for each arc of `graph.out`: set where a shortest path takes the arc.
  Array<uint64_t> successors;
};

/// Every sum is taken in the order of a vertex's arcs. Returns false where there are more shortest
/// paths between two vertices than a double can count, some 10^308.
bool find_centrality(const Graph& graph, const std::vector<uint32_t>& roots,
                     Centrality* centrality);

/// Weakly connected components.
struct Components {
  explicit Components(uint64_t vertex_count);
  /// The smallest vertex of each vertex's component.
  Array<uint32_t> label;
};

/// Links a few arcs of each vertex, then the rest of those outside the largest component (Sutton,
/// Ben-Nun and Barak's Afforest, as in the GAP Benchmark Suite).
void find_components(const Graph& graph, Components* components);
