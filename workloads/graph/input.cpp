#include <cerrno>
#include <cstdio>
#include <cstring>

#include "binary_rows.hpp"
#include "edge_list.hpp"
#include "readers.hpp"

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

/// A stream of the file's bytes, decompressed by the usual tool where the name says so. The tool
/// runs without a preloaded library: it is not part of the program under test.
struct Input {
  FILE* stream = nullptr;
  bool piped = false;
  /// The path without `.xz` or `.gz`.
  std::string name;
};

Input open_input(const std::string& path) {
  const char* tool = ends_with(path, ".xz") ? "xz" : ends_with(path, ".gz") ? "gzip" : nullptr;
  if (tool == nullptr) return {std::fopen(path.c_str(), "r"), false, path};
  const std::string command = std::string("LD_PRELOAD= ") + tool + " -dc -- " + quote(path);
  return {popen(command.c_str(), "r"), true, path.substr(0, path.size() - 3)};
}

/// Closes the stream; false where the tool failed.
bool close_input(const Input& input) {
  return input.piped ? pclose(input.stream) == 0 : std::fclose(input.stream) == 0;
}

/// The next byte, which stays in the stream.
int peek(FILE* stream) {
  const int byte = std::fgetc(stream);
  if (byte != EOF) std::ungetc(byte, stream);
  return byte;
}

Arcs read_arcs(const Input& input, const std::string& path) {
  const bool binary = peek(input.stream) == kRowsMagic[0] || ends_with(input.name, ".csr");
  if (binary) return read_rows(input.stream, path);
  TextLines lines(input.stream, path);
  if (!lines.next()) return {};
  const bool matrix = is_matrix_header(lines.text()) || ends_with(input.name, ".mtx");
  return matrix ? read_matrix(&lines) : read_edge_list(&lines);
}

}  // namespace

EdgeList read_graph(const std::string& path) {
  const Input input = open_input(path);
  if (input.stream == nullptr) throw FileError(path + " cannot be opened: " + std::strerror(errno));
  Arcs arcs = read_arcs(input, path);
  if (!close_input(input) || arcs.edges.count() == 0) {
    throw FileError(path + " could not be read, or holds no arc");
  }
  const uint64_t count = arcs.edges.count();
  return {arcs.edges.take(), count, arcs.vertex_count};
}
