// Allocations made inside the C library and freed by the program, and the reverse.
#include <dirent.h>
#include <execinfo.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <malloc.h>
#include <netdb.h>
#include <regex.h>
#include <wchar.h>
#include <wordexp.h>

#include <regex>
#include <string>
#include <vector>

#include "check.hpp"

int main() {
  char* copy = strdup("duplicated");
  char* part = strndup("duplicated", 4);
  wchar_t* wide = wcsdup(L"wide");
  char* printed = nullptr;
  CHECK(asprintf(&printed, "%s %s %ls %d", copy, part, wide, 5) > 0);
  std::printf("%s\n", printed);
  std::free(copy);
  std::free(part);
  std::free(wide);
  printed = static_cast<char*>(std::realloc(printed, 100000));
  std::printf("%s\n", printed);
  std::free(printed);

  char* stream_text = nullptr;
  size_t stream_size = 0;
  FILE* stream = open_memstream(&stream_text, &stream_size);
  for (int i = 0; i < 20000; ++i) std::fprintf(stream, "%d,", i);
  std::fclose(stream);
  std::printf("memory stream of %zu\n", stream_size);
  FILE* reader = fmemopen(stream_text, stream_size, "r");
  char* line = static_cast<char*>(std::malloc(1));
  size_t capacity = 1;
  std::printf("one line of %zd\n", getdelim(&line, &capacity, 'x', reader));
  std::fclose(reader);
  std::free(line);
  std::free(stream_text);

  char* here = getcwd(nullptr, 0);
  char* real = realpath("/proc/../etc", nullptr);
  std::printf("getcwd %d, realpath %s\n", here != nullptr, real);
  std::free(here);
  std::free(real);

  dirent** entries = nullptr;
  const int count = scandir("/etc/init.d/..", &entries, nullptr, alphasort);
  std::printf("scandir %d\n", count > 0);
  for (int i = 0; i < count; ++i) std::free(entries[i]);
  std::free(entries);
  glob_t matches{};
  CHECK(glob("/etc/host*", 0, nullptr, &matches) == 0);
  std::printf("glob %d\n", matches.gl_pathc > 0);
  globfree(&matches);
  wordexp_t words{};
  CHECK(wordexp("a b $((1+2)) 'c d'", &words, WRDE_NOCMD) == 0);
  std::printf("wordexp %zu %s\n", words.we_wordc, words.we_wordv[2]);
  wordfree(&words);

  regex_t pattern;
  CHECK(regcomp(&pattern, "(a|b)*c{2,40}(x+y?)+", REG_EXTENDED) == 0);
  std::printf("regexec %d\n", regexec(&pattern, "ababccxxyx", 0, nullptr, 0));
  regfree(&pattern);
  std::printf("std::regex %d\n", std::regex_match("2024-05-06", std::regex("(\\d+)-(\\d+)-(\\d+)")));

  iconv_t converter = iconv_open("UTF-16LE", "UTF-8");
  char text[] = "gr\xc3\xbc\xc3\x9f";
  char converted[64];
  char* in = text;
  char* out = converted;
  size_t in_left = sizeof text;
  size_t out_left = sizeof converted;
  CHECK(iconv(converter, &in, &in_left, &out, &out_left) != static_cast<size_t>(-1));
  std::printf("iconv left %zu\n", out_left);
  iconv_close(converter);

  addrinfo* addresses = nullptr;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  std::printf("getaddrinfo %d\n", getaddrinfo("127.0.0.1", "80", &hints, &addresses));
  freeaddrinfo(addresses);
  setlocale(LC_ALL, "C.UTF-8");
  setenv("HOSTILE", std::string(5000, 'v').c_str(), 1);
  std::printf("getenv %zu\n", std::strlen(getenv("HOSTILE")));
  unsetenv("HOSTILE");

  void* frames[10];
  char** symbols = backtrace_symbols(frames, backtrace(frames, 10));
  std::printf("backtrace_symbols %d\n", symbols != nullptr);
  std::free(symbols);
  std::vector<double> values(200000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7919 % 200003);
  qsort(values.data(), values.size(), sizeof(double), [](const void* a, const void* b) {
    const double x = *static_cast<const double*>(a);
    const double y = *static_cast<const double*>(b);
    return x < y ? -1 : x > y;
  });
  std::printf("qsort %.0f %.0f\n", values[0], values[199999]);
  const struct mallinfo2 info = mallinfo2();
  std::printf("mallinfo2 answers %d\n", info.arena + 1 > 0);
}
