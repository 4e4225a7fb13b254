// Every power of two as an alignment up to 64 MiB, several sizes each, by every function that takes
// one; the whole usable size is written and read back.
#include <malloc.h>

#include <new>
#include <vector>

#include "check.hpp"

namespace {

bool aligned(const void* pointer, size_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0;
}

void use(void* block, size_t size, size_t alignment) {
  CHECK(block != nullptr && aligned(block, alignment));
  const size_t usable = malloc_usable_size(block);
  CHECK(usable >= size);
  fill_pattern(block, usable < (1 << 20) ? usable : 1 << 20, 5);
  static_cast<unsigned char*>(block)[usable - 1] = 7;
}

}  // namespace

int main() {
  int count = 0;
  for (size_t alignment = 1; alignment <= (64 << 20); alignment *= 2) {
    for (const size_t size : {size_t{1}, size_t{24}, size_t{4096}, size_t{70001}, alignment, alignment + 1}) {
      std::vector<void*> blocks;
      for (int i = 0; i < 3; ++i) {
        blocks.push_back(memalign(alignment, size));
        use(blocks.back(), size, alignment);
        blocks.push_back(aligned_alloc(alignment, size));
        use(blocks.back(), size, alignment);
        if (alignment >= sizeof(void*)) {
          void* block = nullptr;
          CHECK(posix_memalign(&block, alignment, size) == 0);
          use(block, size, alignment);
          blocks.push_back(block);
        }
      }
      for (void* block : blocks) {
        void* moved = std::realloc(block, size + 100);
        CHECK(moved != nullptr);
        std::free(moved);
        ++count;
      }
      void* made = ::operator new(size, std::align_val_t{alignment});
      CHECK(aligned(made, alignment));
      std::memset(made, 3, size);
      ::operator delete(made, size, std::align_val_t{alignment});
    }
  }
  for (size_t size = 1; size < 5000; ++size) {
    void* block = keep(std::malloc(size));
    CHECK(aligned(block, size < 16 ? 8 : 16));
    use(block, size, 8);
    std::free(block);
  }
  void* page = valloc(100);
  use(page, 100, 4096);
  std::free(page);
  std::printf("%d blocks aligned\n", count);
}
