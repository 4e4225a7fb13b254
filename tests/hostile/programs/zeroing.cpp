// calloc must give zeros whatever was in the memory before, small and large, in many threads.
#include <malloc.h>

#include <thread>
#include <vector>

#include "check.hpp"

namespace {

bool is_zero(const unsigned char* bytes, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

void dirty_and_ask(unsigned seed) {
  for (size_t size = 1; size <= (16 << 20); size = size * 2 + seed % 3) {
    for (int turn = 0; turn < (size < 100000 ? 20 : 2); ++turn) {
      void* dirty = keep(std::malloc(size));
      CHECK(dirty != nullptr);
      std::memset(dirty, 0xa5, malloc_usable_size(dirty));
      std::free(dirty);
      auto* clean = static_cast<unsigned char*>(keep(std::calloc(1, size)));
      CHECK(clean != nullptr && is_zero(clean, size));
      std::memset(clean, 0x5a, size);
      std::free(clean);
    }
  }
}

}  // namespace

int main() {
  dirty_and_ask(0);
  std::vector<std::thread> threads;
  for (unsigned i = 1; i <= 4; ++i) threads.emplace_back(dirty_and_ask, i);
  for (std::thread& thread : threads) thread.join();
  std::printf("all zero\n");
}
