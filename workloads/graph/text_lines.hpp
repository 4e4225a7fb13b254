// The lines of a text file, with their numbers for sentences about errors.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "edge_list.hpp"

/// Reads one line after the other. A line has at most `kLongest` bytes, which is Matrix Market's
/// limit; a longer one, or one with a zero byte, is a FileError.
class TextLines {
 public:
  TextLines(FILE* stream, std::string path) : stream_(stream), path_(std::move(path)) {}

  /// Moves to the next line; false at the end.
  bool next() {
    if (std::fgets(text_, sizeof text_, stream_) == nullptr) return false;
    ++number_;
    const size_t length = std::strlen(text_);
    const bool whole = length != 0 && (text_[length - 1] == '\n' || std::feof(stream_) != 0);
    if (!whole) throw FileError(place() + " is longer than 1024 bytes, or holds a zero byte");
    return true;
  }

  /// The line, with its line feed where it has one.
  const char* text() const { return text_; }
  std::string place() const { return path_ + " line " + std::to_string(number_); }

 private:
  static constexpr size_t kLongest = 1024;

  FILE* stream_;
  std::string path_;
  uint64_t number_ = 0;
  char text_[kLongest + 2];
};

/// A number of at most `most` at `*cursor`, after blanks; `*cursor` then points behind it. False
/// where there is none or it is larger.
inline bool take_number(const char** cursor, uint64_t most, uint64_t* number) {
  const char* begin = *cursor + std::strspn(*cursor, " \t");
  if (*begin < '0' || *begin > '9') return false;
  char* end = nullptr;
  const unsigned long long read = std::strtoull(begin, &end, 10);  // too many digits: the largest
  if (read > most) return false;
  *number = read;
  *cursor = end;
  return true;
}

/// True where only blanks are left of the line.
inline bool at_end_of_line(const char* cursor) {
  return cursor[std::strspn(cursor, " \t\r\n")] == '\0';
}
