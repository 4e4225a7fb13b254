// The readers of the three formats. Each returns the arcs of a file, or throws FileError. None trusts a
// count that a file states.
#pragma once

#include "arc_buffer.hpp"
#include "text_lines.hpp"

/// The arcs of a file, and the number of its vertices.
struct Arcs {
  Growing edges;
  uint64_t vertex_count = 0;
};

/// `source target` lines (blanks or tabs between; what follows is not read; lines that begin with
/// # or % are comments). `lines` is at the first line.
Arcs read_edge_list(TextLines* lines);

/// The line that begins every Matrix Market file.
bool is_matrix_header(const char* line);

/// A sparse square matrix: an entry in row i and column j is the arc from i to j, numbered from 1;
/// a symmetric one stores one of each two entries. Values are checked and not used. `lines` is at
/// the first line.
Arcs read_matrix(TextLines* lines);

/// Binary CSR; see binary_rows.hpp.
Arcs read_rows(FILE* stream, const std::string& path);
