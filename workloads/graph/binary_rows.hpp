// Binary CSR: a graph as the kernels use it, in a file. All numbers are little-endian.
//
// ```text
//   byte 0       magic       89 43 53 52 0d 0a 1a 0a  (a transfer as text changes it)
//        8       version     u64, 1
//       16       vertices    u64, n: 1 to 4294967294
//       24       arcs        u64, m
//       32       offsets     u64 each, n + 1: begins with 0, never descends, ends with m
//       40 + 8n  targets     u32 each, m: below n
// ```
//
// Three vertices and two arcs take 32 + 4 * 8 + 2 * 4 = 72 bytes. A reader must refuse a file that
// ends early, that goes on behind its last target, or whose offsets or targets break these rules.
#pragma once

#include <cstdint>
#include <string>

#include "graph.hpp"

constexpr unsigned char kRowsMagic[8] = {0x89, 'C', 'S', 'R', '\r', '\n', 0x1a, '\n'};
constexpr uint64_t kRowsVersion = 1;

/// Writes the outgoing arcs. After a FileError the file is incomplete, and no reader takes it.
void write_rows(const std::string& path, const Graph& graph);
