// Loads and unloads a library that allocates in constructors, C++ statics and thread locals, over and
// over, from one thread and from several; its blocks are freed after it is unloaded.
#include <dlfcn.h>

#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

size_t load_and_use(const std::string& path, int number) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) dprintf(2, "%s\n", dlerror());
  CHECK(library != nullptr);
  auto use = reinterpret_cast<char* (*)(int)>(dlsym(library, "plugin_use"));
  CHECK(use != nullptr);
  char* text = use(number);
  CHECK(dlclose(library) == 0);
  const size_t length = std::strlen(text);
  std::free(text);
  return length;
}

}  // namespace

int main(int, char** argv) {
  const std::string self = argv[0];
  const std::string path = self.substr(0, self.rfind('/') + 1) + "plugin.so";
  size_t length = 0;
  for (int i = 0; i < 300; ++i) length += load_and_use(path, i);
  std::printf("one thread: %zu\n", length);
  std::vector<std::thread> threads;
  size_t lengths[4] = {};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&lengths, &path, i] {
      for (int turn = 0; turn < 50; ++turn) lengths[i] += load_and_use(path, turn);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("threads: %zu %zu %zu %zu\n", lengths[0], lengths[1], lengths[2], lengths[3]);
  CHECK(dlopen("/no/such/library.so", RTLD_NOW) == nullptr && dlerror() != nullptr);
  std::printf("a missing library is refused\n");
}
