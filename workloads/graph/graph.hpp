// A directed graph in compressed sparse row form.
#pragma once

#include <cstdint>

#include "array.hpp"
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
  Array<uint64_t> offsets;
  Array<uint32_t> targets;
};

/// A graph with all its data. Each array is made by its own function.
struct Graph {
  uint64_t vertex_count = 0;
  uint64_t edge_count = 0;
  /// 16 bytes of text a vertex: never read by the kernels.
  Array<char> names;
  /// A weight per arc, in the order of `out`: read once, for the checksum.
  Array<float> weights;
  Rows out;
  Rows in;
};

/// Builds both directions, names and weights from the raw arcs.
Graph build_graph(const EdgeList& list);
