#include "edge_list.hpp"

#include <algorithm>

#include "readers.hpp"

Arcs read_edge_list(TextLines* lines) {
  Arcs arcs;
  uint64_t largest = 0;
  do {
    const char* cursor = lines->text();
    if (*cursor == '#' || *cursor == '%' || *cursor == '\n') continue;
    uint64_t source = 0;
    uint64_t target = 0;
    if (!take_number(&cursor, UINT32_MAX - 1, &source) ||
        !take_number(&cursor, UINT32_MAX - 1, &target)) {
      throw FileError(lines->place() + " is no arc: wanted two vertex numbers below 4294967295");
    }
    largest = std::max(largest, std::max(source, target));
    arcs.edges.add({static_cast<uint32_t>(source), static_cast<uint32_t>(target)});
  } while (lines->next());
  arcs.vertex_count = largest + 1;
  return arcs;
}
