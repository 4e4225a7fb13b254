// Allocations before main (constructors of every priority, static objects), and after it (atexit,
// static destructors, destructor functions), some freed on the other side.
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

void* from_first_constructor = nullptr;

[[gnu::constructor(101)]] void first() {
  from_first_constructor = keep(std::calloc(1, 3 << 20));
  std::free(std::realloc(keep(std::malloc(10)), 100000));
}

[[gnu::constructor]] void from_a_thread() {
  std::thread([] { std::free(keep(std::malloc(12345))); }).join();
}

[[gnu::destructor(101)]] void last() {
  std::free(from_first_constructor);
  std::free(keep(std::malloc(777)));
  dprintf(1, "last destructor\n");
}

struct Registry {
  std::map<std::string, std::unique_ptr<std::vector<int>>> entries;
  Registry() {
    for (int i = 0; i < 500; ++i) entries[std::to_string(i)] = std::make_unique<std::vector<int>>(i, i);
  }
  ~Registry() {
    size_t total = 0;
    for (const auto& entry : entries) total += entry.second->size();
    dprintf(1, "registry held %zu\n", total);
  }
};
Registry registry;
void* for_atexit = nullptr;

}  // namespace

int main() {
  for_atexit = std::malloc(50000);
  std::atexit([] {
    std::free(for_atexit);
    std::free(keep(std::malloc(60000)));
    dprintf(1, "atexit\n");
  });
  registry.entries["main"] = std::make_unique<std::vector<int>>(100000);
  dprintf(1, "main\n");
}
