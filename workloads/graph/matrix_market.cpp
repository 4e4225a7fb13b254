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

bool read_header(const TextLines& lines, Matrix* matrix, std::string* error) {
  const std::string header = normalised(lines.text());
  for (const char* field : {"pattern", "integer", "real"}) {
    const std::string start = std::string(kBanner) + " matrix coordinate " + field + " ";
    matrix->field = field;
    matrix->symmetric = header == start + "symmetric";
    if (matrix->symmetric || header == start + "general") return true;
  }
  *error = lines.place() + " is no header of a graph: wanted \"%%MatrixMarket matrix coordinate " +
           "pattern|integer|real general|symmetric\"";
  return false;
}

/// Moves to the next line that is neither empty nor a comment.
bool next_content(TextLines* lines, std::string* error) {
  while (lines->next(error)) {
    if (lines->text()[0] != '%' && !at_end_of_line(lines->text())) return true;
  }
  return false;
}

bool read_size(TextLines* lines, Matrix* matrix, std::string* error) {
  if (!next_content(lines, error)) {
    if (error->empty()) {
      *error = lines->place() + " is the last one: wanted rows, columns and entries";
    }
    return false;
  }
  const char* cursor = lines->text();
  uint64_t columns = 0;
  if (!take_number(&cursor, UINT32_MAX - 1, &matrix->vertex_count) ||
      !take_number(&cursor, UINT32_MAX - 1, &columns) ||
      !take_number(&cursor, UINT64_MAX, &matrix->entry_count) || !at_end_of_line(cursor)) {
    *error = lines->place() + " is no size: wanted rows and columns below 4294967295, and entries";
    return false;
  }
  if (matrix->vertex_count != columns) {
    *error = lines->place() + " has " + std::to_string(matrix->vertex_count) + " rows and " +
             std::to_string(columns) + " columns: the matrix of a graph is square";
    return false;
  }
  return true;
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

bool read_entry(const TextLines& lines, const Matrix& matrix, Growing* edges, std::string* error) {
  const char* cursor = lines.text();
  uint64_t row = 0;
  uint64_t column = 0;
  if (!take_number(&cursor, matrix.vertex_count, &row) || row == 0 ||
      !take_number(&cursor, matrix.vertex_count, &column) || column == 0 ||
      !skip_value(matrix.field, &cursor) || !at_end_of_line(cursor)) {
    *error = lines.place() + " is no entry: wanted a row and a column from 1 to " +
             std::to_string(matrix.vertex_count) +
             (matrix.field == "pattern" ? ", and no value" : " and one value");
    return false;
  }
  const auto source = static_cast<uint32_t>(row - 1);
  const auto target = static_cast<uint32_t>(column - 1);
  edges->add({source, target});
  if (matrix.symmetric && source != target) edges->add({target, source});
  return true;
}

}  // namespace

bool is_matrix_header(const char* line) {
  return normalised(line).compare(0, std::strlen(kBanner), kBanner) == 0;
}

bool read_matrix(TextLines* lines, Arcs* arcs, std::string* error) {
  Matrix matrix;
  if (!read_header(*lines, &matrix, error) || !read_size(lines, &matrix, error)) return false;
  uint64_t entries = 0;
  for (; next_content(lines, error); ++entries) {
    if (entries == matrix.entry_count) {
      *error = lines->place() + " is one entry more than the " +
               std::to_string(matrix.entry_count) + " that the size line states";
      return false;
    }
    if (!read_entry(*lines, matrix, &arcs->edges, error)) return false;
  }
  if (error->empty() && entries != matrix.entry_count) {
    *error = lines->place() + " is the last one: the file has " + std::to_string(entries) + " of " +
             std::to_string(matrix.entry_count) + " entries";
  }
  arcs->vertex_count = matrix.vertex_count;
  return error->empty();
}
