// Command-line options of the workloads: sizes with units, counts, words and switches.
//
// Every program names its options once; the same table makes the help text, checks the input and
// fills the variables. A bad argument ends the program with status 2 and one sentence that names
// the error and the valid input.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace harness {

/// Reads a size such as 512, 64KiB, 256MiB or 1GiB. Returns false where the text is no size.
inline bool parse_bytes(const std::string& text, uint64_t* bytes) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  char* end = nullptr;
  errno = 0;
  const uint64_t number = std::strtoull(text.c_str(), &end, 10);
  if (errno != 0) return false;
  const struct { const char* name; unsigned shift; } units[] = {
      {"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  for (const auto& unit : units) {
    if (std::strcmp(end, unit.name) != 0) continue;
    if (number > (UINT64_MAX >> unit.shift)) return false;
    *bytes = number << unit.shift;
    return true;
  }
  return false;
}

/// A size in the largest unit that divides it.
inline std::string format_bytes(uint64_t bytes) {
  const struct { const char* name; unsigned shift; } units[] = {{"GiB", 30}, {"MiB", 20}, {"KiB", 10}};
  for (const auto& unit : units) {
    if (bytes != 0 && bytes % (uint64_t{1} << unit.shift) == 0) {
      return std::to_string(bytes >> unit.shift) + unit.name;
    }
  }
  return std::to_string(bytes) + "B";
}

/// The options of one program.
class Options {
 public:
  Options(const char* program, const char* purpose) : program_(program), purpose_(purpose) {}

  /// A size in bytes, at least `least` and at most `most`.
  void bytes(const char* name, uint64_t* value, uint64_t least, uint64_t most, const char* text) {
    add(name, "SIZE", format_bytes(*value), text, [=](const std::string& word) {
      uint64_t read = 0;
      if (!parse_bytes(word, &read)) fail(name, word, "a size such as 256MiB");
      if (read < least || read > most) {
        fail(name, word, "a size from " + format_bytes(least) + " to " + format_bytes(most));
      }
      *value = read;
    });
  }

  /// A whole number from `least` to `most`.
  void count(const char* name, uint64_t* value, uint64_t least, uint64_t most, const char* text) {
    add(name, "N", std::to_string(*value), text, [=](const std::string& word) {
      const std::string range = std::to_string(least) + " to " + std::to_string(most);
      char* end = nullptr;
      errno = 0;
      const uint64_t read = std::strtoull(word.c_str(), &end, 10);
      const bool digits = !word.empty() && word[0] >= '0' && word[0] <= '9' && *end == '\0';
      if (!digits || errno != 0 || read < least || read > most) {
        fail(name, word, "a whole number from " + range);
      }
      *value = read;
    });
  }

  /// One of the words in `choices`, separated by `|`.
  void word(const char* name, std::string* value, const char* choices, const char* text) {
    add(name, choices, *value, text, [=](const std::string& given) {
      const std::string all = std::string("|") + choices + "|";
      if (given.empty() || all.find("|" + given + "|") == std::string::npos) {
        fail(name, given, std::string("one of ") + choices);
      }
      *value = given;
    });
  }

  /// A file that the program reads or writes.
  void file(const char* name, std::string* value, const char* text) {
    add(name, "FILE", *value, text, [=](const std::string& given) {
      if (given.empty()) fail(name, given, "a file name");
      *value = given;
    });
  }

  /// A switch, which takes no value.
  void flag(const char* name, bool* value, const char* text) {
    add(name, "", "", text, [=](const std::string&) { *value = true; });
  }

  /// Reads the command line, or prints the help text and ends.
  void parse(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      if (name == "--help" || name == "-h") help();
      std::string value;
      bool has_value = false;
      if (const size_t equals = name.find('='); equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.resize(equals);
        has_value = true;
      }
      const Option* option = find(name);
      if (option == nullptr) {
        refuse("unknown option \"" + name + "\"; " + program_ + " --help lists the options");
      }
      const bool takes_value = !option->hint.empty();
      if (has_value && !takes_value) refuse(name + " takes no value");
      if (!has_value && takes_value) {
        if (i + 1 == argc) refuse(name + " needs a value, " + option->hint);
        value = argv[++i];
      }
      option->read(value);
    }
  }

  /// Ends the program with status 2 and one sentence.
  [[noreturn]] void refuse(const std::string& sentence) const {
    std::fprintf(stderr, "%s: %s\n", program_, sentence.c_str());
    std::exit(2);
  }

 private:
  struct Option {
    std::string name, hint, initial, text;
    std::function<void(const std::string&)> read;
  };

  void add(const char* name, const char* hint, const std::string& initial, const char* text,
           std::function<void(const std::string&)> read) {
    options_.push_back({name, hint, initial, text, std::move(read)});
  }

  const Option* find(const std::string& name) const {
    for (const Option& option : options_) {
      if (option.name == name) return &option;
    }
    return nullptr;
  }

  [[noreturn]] void fail(const std::string& name, const std::string& got,
                         const std::string& wanted) const {
    refuse(name + " wants " + wanted + ", not \"" + got + "\"");
  }

  [[noreturn]] void help() const {
    std::printf("%s: %s\n\nusage: %s [options]\n\n", program_, purpose_, program_);
    for (const Option& option : options_) {
      const char* blank = option.hint.empty() ? "" : " ";
      std::printf("  %s%s%s\n        %s", option.name.c_str(), blank, option.hint.c_str(),
                  option.text.c_str());
      if (!option.initial.empty()) std::printf(" [%s]", option.initial.c_str());
      std::printf("\n");
    }
    std::printf("  --help\n        print this\n");
    std::exit(0);
  }

  const char* program_;
  const char* purpose_;
  std::vector<Option> options_;
};

}  // namespace harness
