// The arcs of a graph as they came from a file or from the R-MAT generator.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "array.hpp"

/// What is wrong with a file: a sentence that names the file and the place.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One arc.
struct Edge {
  uint32_t source;
  uint32_t target;
};

/// The raw arcs as they came. Kept until the end of the program and cold after loading, as the
/// input of many real programs is.
struct EdgeList {
  Array<Edge> edges;
  uint64_t edge_count = 0;
  uint64_t vertex_count = 0;
};

/// Reads a graph of one of three formats from a plain, `.xz` or `.gz` file: binary CSR (see
/// binary_rows.hpp) and Matrix Market by their first bytes or by the names `.csr` and `.mtx`,
/// anything else as an edge list. Throws FileError.
EdgeList read_graph(const std::string& path);

/// `copies` copies of a graph, ids shifted by its vertex count, and between each two neighbours
/// `bridges` random arcs in either direction, so that a search passes from copy to copy.
EdgeList copy_graph(const EdgeList& one, uint64_t copies, uint64_t bridges, uint64_t seed);

/// 2^scale vertices and edge_factor times as many arcs, by the recursive matrix of Graph500
/// (0.57, 0.19, 0.19, 0.05), vertex numbers scrambled. The same for every number of threads.
EdgeList generate_rmat(uint64_t scale, uint64_t edge_factor, uint64_t seed);
