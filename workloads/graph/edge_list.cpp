#include "edge_list.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../harness/random.hpp"

namespace {

bool ends_with(const std::string& text, const char* tail) {
  const size_t length = std::strlen(tail);
  return text.size() >= length && text.compare(text.size() - length, length, tail) == 0;
}

/// The path as one word for the shell.
std::string quote(const std::string& path) {
  std::string quoted = "'";
  for (const char c : path) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// A stream of the file's text, decompressed by the usual tool where the name says so. The tool
/// runs without a preloaded library: it is not part of the program under test.
struct Input {
  FILE* stream = nullptr;
  bool piped = false;
};

Input open_input(const std::string& path) {
  const char* tool = ends_with(path, ".xz") ? "xz" : ends_with(path, ".gz") ? "gzip" : nullptr;
  if (tool == nullptr) return {std::fopen(path.c_str(), "r"), false};
  const std::string command = std::string("LD_PRELOAD= ") + tool + " -dc -- " + quote(path);
  return {popen(command.c_str(), "r"), true};
}

/// Closes the stream; false where the tool failed.
bool close_input(const Input& input) {
  return input.piped ? pclose(input.stream) == 0 : std::fclose(input.stream) == 0;
}

/// A number at `*cursor`, which then points behind it. False where there is none or it is too big.
bool read_vertex(const char** cursor, uint32_t* vertex) {
  char* end = nullptr;
  const char* begin = *cursor + std::strspn(*cursor, " \t");
  if (*begin < '0' || *begin > '9') return false;
  const unsigned long number = std::strtoul(begin, &end, 10);
  if (number >= UINT32_MAX) return false;
  *vertex = static_cast<uint32_t>(number);
  *cursor = end;
  return true;
}

/// The arcs read so far, in a buffer that doubles.
class Growing {
 public:
  void add(Edge edge) {
    if (count_ == capacity_) grow();
    edges_[count_++] = edge;
  }
  uint64_t count() const { return count_; }

  /// A buffer of exactly the arcs read.
  [[gnu::noinline]] std::unique_ptr<Edge[]> take() {
    std::unique_ptr<Edge[]> exact(new Edge[count_]);
    if (count_ != 0) std::memcpy(exact.get(), edges_.get(), count_ * sizeof(Edge));
    edges_.reset();
    return exact;
  }

 private:
  [[gnu::noinline]] void grow() {
    capacity_ = capacity_ == 0 ? 1 << 16 : capacity_ * 2;
    std::unique_ptr<Edge[]> larger(new Edge[capacity_]);
    if (count_ != 0) std::memcpy(larger.get(), edges_.get(), count_ * sizeof(Edge));
    edges_ = std::move(larger);
  }

  std::unique_ptr<Edge[]> edges_;
  uint64_t count_ = 0;
  uint64_t capacity_ = 0;
};

/// The quadrant chosen by `draw` at one level of the recursive matrix, as (row bit, column bit).
void choose_quadrant(uint32_t draw, uint32_t* row, uint32_t* column) {
  const auto limit = [](double share) { return static_cast<uint32_t>(share * 4294967295.0); };
  *row = draw >= limit(0.57 + 0.19);
  *column = (draw >= limit(0.57) && draw < limit(0.57 + 0.19)) || draw >= limit(0.57 + 0.19 + 0.19);
}

Edge draw_rmat_edge(uint64_t scale, uint64_t seed, uint64_t number) {
  harness::Random random(harness::mix(seed) + number);
  uint32_t source = 0;
  uint32_t target = 0;
  for (uint64_t level = 0; level < scale; ++level) {
    uint32_t row;
    uint32_t column;
    choose_quadrant(static_cast<uint32_t>(random.next() >> 32), &row, &column);
    source = source << 1 | row;
    target = target << 1 | column;
  }
  return {source, target};
}

/// A bijection of the numbers below 2^scale: multiplication by an odd number, and a shift-xor.
uint32_t scramble(uint32_t vertex, uint64_t scale) {
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << scale) - 1);
  uint32_t value = (vertex * 2654435761u) & mask;
  value ^= value >> (scale / 2 + 1);
  return (value * 2246822519u) & mask;
}

}  // namespace

bool read_edge_list(const std::string& path, EdgeList* list, std::string* error) {
  const Input input = open_input(path);
  if (input.stream == nullptr) {
    *error = path + " cannot be opened: " + std::strerror(errno);
    return false;
  }
  Growing edges;
  uint32_t largest = 0;
  char line[256];
  for (uint64_t number = 1; std::fgets(line, sizeof line, input.stream) != nullptr; ++number) {
    if (line[0] == '#' || line[0] == '%' || line[0] == '\n') continue;
    const char* cursor = line;
    Edge edge;
    if (!read_vertex(&cursor, &edge.source) || !read_vertex(&cursor, &edge.target)) {
      *error = path + " line " + std::to_string(number) +
               " is no arc: wanted two vertex numbers below 4294967295";
      close_input(input);
      return false;
    }
    largest = std::max(largest, std::max(edge.source, edge.target));
    edges.add(edge);
  }
  if (!close_input(input) || edges.count() == 0) {
    *error = path + " could not be read, or holds no arc";
    return false;
  }
  list->edge_count = edges.count();
  list->vertex_count = uint64_t{largest} + 1;
  list->edges = edges.take();
  return true;
}

[[gnu::noinline]] EdgeList copy_graph(const EdgeList& one, uint64_t copies, uint64_t bridges,
                                      uint64_t seed) {
  EdgeList all;
  all.vertex_count = one.vertex_count * copies;
  all.edge_count = one.edge_count * copies + (copies - 1) * 2 * bridges;
  all.edges.reset(new Edge[all.edge_count]);
  uint64_t next = 0;
  for (uint64_t copy = 0; copy < copies; ++copy) {
    const auto shift = static_cast<uint32_t>(copy * one.vertex_count);
    for (uint64_t i = 0; i < one.edge_count; ++i) {
      all.edges[next++] = {one.edges[i].source + shift, one.edges[i].target + shift};
    }
  }
  harness::Random random(seed);
  for (uint64_t copy = 0; copy + 1 < copies; ++copy) {
    const uint64_t here = copy * one.vertex_count;
    const uint64_t there = here + one.vertex_count;
    for (uint64_t i = 0; i < bridges; ++i) {
      const auto a = static_cast<uint32_t>(here + random.below(one.vertex_count));
      const auto b = static_cast<uint32_t>(there + random.below(one.vertex_count));
      all.edges[next++] = {a, b};
      all.edges[next++] = {b, a};
    }
  }
  return all;
}

[[gnu::noinline]] EdgeList generate_rmat(uint64_t scale, uint64_t edge_factor, uint64_t seed) {
  EdgeList list;
  list.vertex_count = uint64_t{1} << scale;
  list.edge_count = list.vertex_count * edge_factor;
  list.edges.reset(new Edge[list.edge_count]);
#pragma omp parallel for schedule(static)
  for (uint64_t i = 0; i < list.edge_count; ++i) {
    const Edge edge = draw_rmat_edge(scale, seed, i);
    list.edges[i] = {scramble(edge.source, scale), scramble(edge.target, scale)};
  }
  return list;
}
