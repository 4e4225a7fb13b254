// A directed graph in compressed sparse row form, and the two kernels that run on it.
#pragma once

#include <cstdint>
#include <memory>

#include "edge_list.hpp"

/// The arcs of each vertex side by side: those of v are targets[offsets[v]] up to
/// targets[offsets[v + 1]].
///
/// ```text
/// offsets   0     2  3        (one more than there are vertices)
///           |     |  |
/// targets   1  2  2           vertex 0 -> 1, 2; vertex 1 -> 2
/// ```
struct Rows {
  std::unique_ptr<uint64_t[]> offsets;
  std::unique_ptr<uint32_t[]> targets;
};

/// A graph with all its data. Each array is made by its own function.
struct Graph {
  uint64_t vertex_count = 0;
  uint64_t edge_count = 0;
  /// 16 bytes of text a vertex: never read by the kernels.
  std::unique_ptr<char[]> names;
  /// A weight per arc, in the order of `out`: read once, for the checksum.
  std::unique_ptr<float[]> weights;
  Rows out;
  Rows in;
};

/// Builds both directions, names and weights from the raw arcs.
Graph build_graph(const EdgeList& list);

/// Distances by breadth-first search from one root; UINT32_MAX where there is no path.
struct Search {
  explicit Search(uint64_t vertex_count);
  std::unique_ptr<uint32_t[]> distance;
  std::unique_ptr<uint32_t[]> parent;
  std::unique_ptr<uint32_t[]> frontier;
  std::unique_ptr<uint32_t[]> next_frontier;
};

/// Searches level by level; returns the number of vertices reached.
uint64_t search(const Graph& graph, uint32_t root, Search* search);

/// PageRank with damping 0.85, pulled over the incoming arcs.
struct Ranking {
  explicit Ranking(uint64_t vertex_count);
  std::unique_ptr<double[]> rank;
  /// rank / out-degree of each vertex, which its successors read.
  std::unique_ptr<double[]> share;
};

/// Runs `iterations` steps from the even distribution. Every sum is taken in a fixed order, so
/// that the result is the same to the last bit for every number of threads.
void rank_pages(const Graph& graph, uint64_t iterations, Ranking* ranking);
