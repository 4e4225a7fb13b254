// A library that allocates while it is loaded, while it is used and while it is unloaded.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

std::map<int, std::string> table = [] {
  std::map<int, std::string> made;
  for (int i = 0; i < 100; ++i) made[i] = std::string(50, static_cast<char>('a' + i % 26));
  return made;
}();

char* from_constructor = nullptr;
thread_local std::vector<int> per_thread;

[[gnu::constructor]] void load() { from_constructor = strdup("made by the constructor"); }
[[gnu::destructor]] void unload() { std::free(from_constructor); }

}  // namespace

/// Adds up what the library holds, and returns a block that the caller frees.
extern "C" char* plugin_use(int number) {
  per_thread.assign(static_cast<size_t>(number) + 1, number);
  const std::string text = table[number % 100] + from_constructor + std::to_string(per_thread.size());
  return strdup(text.c_str());
}
