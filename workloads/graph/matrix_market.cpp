#include <cctype>

#include "readers.hpp"

namespace {

constexpr const char* kBanner = "%%matrixmarket";

/// What the header line and the size line say.
struct Matrix {
  bool symmetric = false;
  /// pattern, integer or real: an entry has no value, a whole number or a number.
  std::string field;
  uint64_t vertex_count = 0;
  uint64_t entry_count = 0;
};

/// The words of a line, in lower case: the format does not distinguish the case of its header.
std::string normalised(const char* line) {
  std::string words;
  for (const char* cursor = line; *cursor != '\0'; ++cursor) {
    const auto byte = static_cast<unsigned char>(*cursor);
    if (std::isspace(byte) == 0) {
      words += static_cast<char>(std::tolower(byte));
    } else if (!words.empty() && words.back() != ' ') {
      words += ' ';
    }
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return words;
}

Matrix read_header(const TextLines& lines) {
  const std::string header = normalised(lines.text());
  for (const char* field : {"pattern", "integer", "real"}) {
    const std::string start = std::string(kBanner) + " matrix coordinate " + field + " ";
    const bool symmetric = header == start + "symmetric";
    if (symmetric || header == start + "general") return {symmetric, field};
  }
  throw FileError(lines.place() +
                  " is no header of a graph: wanted \"%%MatrixMarket matrix coordinate " +
                  "pattern|integer|real general|symmetric\"");
}

/// Moves to the next line that is neither empty nor a comment; false at the end.
bool next_content(TextLines* lines) {
  while (lines->next()) {
    if (lines->text()[0] != '%' && !at_end_of_line(lines->text())) return true;
  }
  return false;
}

void read_size(TextLines* lines, Matrix* matrix) {
  if (!next_content(lines)) {
    throw FileError(lines->place() + " is the last one: wanted rows, columns and entries");
  }
  const char* cursor = lines->text();
  uint64_t columns = 0;
  if (!take_number(&cursor, UINT32_MAX - 1, &matrix->vertex_count) ||
      !take_number(&cursor, UINT32_MAX - 1, &columns) ||
      !take_number(&cursor, UINT64_MAX, &matrix->entry_count) || !at_end_of_line(cursor)) {
    throw FileError(lines->place() +
                    " is no size: wanted rows and columns below 4294967295, and entries");
  }
  if (matrix->vertex_count != columns) {
    throw FileError(lines->place() + " has " + std::to_string(matrix->vertex_count) + " rows and " +
                    std::to_string(columns) + " columns: the matrix of a graph is square");
  }
}

/// Moves `*cursor` behind a value of the field. False where there is none.
bool skip_value(const std::string& field, const char** cursor) {
  if (field == "pattern") return true;
  const char* begin = *cursor + std::strspn(*cursor, " \t");
  if (begin == *cursor) return false;
  char* end = nullptr;
  if (field == "integer") {
    static_cast<void>(std::strtoll(begin, &end, 10));
  } else {
    static_cast<void>(std::strtod(begin, &end));
  }
  *cursor = end;
  return end != begin;
}

void read_entry(const TextLines& lines, const Matrix& matrix, Growing* edges) {
  const char* cursor = lines.text();
  uint64_t row = 0;
  uint64_t column = 0;
  if (!take_number(&cursor, matrix.vertex_count, &row) || row == 0 ||
      !take_number(&cursor, matrix.vertex_count, &column) || column == 0 ||
      !skip_value(matrix.field, &cursor) || !at_end_of_line(cursor)) {
    throw FileError(lines.place() + " is no entry: wanted a row and a column from 1 to " +
                    std::to_string(matrix.vertex_count) +
                    (matrix.field == "pattern" ? ", and no value" : " and one value"));
  }
  const auto source = static_cast<uint32_t>(row - 1);
  const auto target = static_cast<uint32_t>(column - 1);
  edges->add({source, target});
  if (matrix.symmetric && source != target) edges->add({target, source});
}

}  // namespace

bool is_matrix_header(const char* line) {
  return normalised(line).compare(0, std::strlen(kBanner), kBanner) == 0;
}

Arcs read_matrix(TextLines* lines) {
  Matrix matrix = read_header(*lines);
  read_size(lines, &matrix);
  Arcs arcs;
  arcs.vertex_count = matrix.vertex_count;
  uint64_t entries = 0;
  for (; next_content(lines); ++entries) {
    if (entries == matrix.entry_count) {
      throw FileError(lines->place() + " is one entry more than the " +
                      std::to_string(matrix.entry_count) + " that the size line states");
    }
    read_entry(*lines, matrix, &arcs.edges);
  }
  if (entries != matrix.entry_count) {
    throw FileError(lines->place() + " is the last one: the file has " + std::to_string(entries) +
                    " of " + std::to_string(matrix.entry_count) + " entries");
  }
  return arcs;
}
