// A program that defines the malloc family itself: a preloaded library must leave it alone, or
// serve everything; blocks of one must never reach the other.
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

alignas(64) unsigned char pool[512 << 20];
size_t used = 0;
long calls = 0;

/// Takes memory from the static pool; each block has its size before it. Never releases any.
void* take(size_t size, size_t alignment) {
  if (alignment < 16) alignment = 16;
  if (size > sizeof pool / 2) {
    errno = ENOMEM;
    return nullptr;
  }
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  const size_t room = size + alignment + 16;
  const size_t begin = __atomic_fetch_add(&used, (room + 15) & ~size_t{15}, __ATOMIC_RELAXED);
  if (begin + room > sizeof pool) {
    errno = ENOMEM;
    return nullptr;
  }
  auto address = reinterpret_cast<uintptr_t>(pool + begin) + 16;
  address = (address + alignment - 1) & ~(uintptr_t{alignment} - 1);
  reinterpret_cast<size_t*>(address)[-1] = size;
  return reinterpret_cast<void*>(address);
}

bool ours(const void* block) { return block >= pool && block < pool + sizeof pool; }

}  // namespace

extern "C" {
void* malloc(size_t size) { return take(size, 16); }
void free(void* block) {
  if (block != nullptr && !ours(block)) {
    dprintf(2, "a foreign block was given to the program's free\n");
    _exit(1);
  }
}
void* calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
  return take(bytes, 16);
}
void* realloc(void* block, size_t size) {
  void* fresh = take(size, 16);
  if (block == nullptr || fresh == nullptr) return fresh;
  const size_t old = static_cast<size_t*>(block)[-1];
  return std::memcpy(fresh, block, old < size ? old : size);
}
void* memalign(size_t alignment, size_t size) { return take(size, alignment); }
void* aligned_alloc(size_t alignment, size_t size) { return take(size, alignment); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  *out = take(size, alignment);
  return *out == nullptr ? ENOMEM : 0;
}
size_t malloc_usable_size(void* block) { return block == nullptr ? 0 : static_cast<size_t*>(block)[-1]; }
}

int main() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (size_t turn = 0; turn < 1000; ++turn) {
        const std::vector<std::string> words(10, std::string(50, 'm'));
        void* block = keep(std::malloc(turn));
        CHECK(ours(block) && words.size() == 10);
        std::free(std::realloc(block, turn * 2));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  char* text = nullptr;
  CHECK(asprintf(&text, "%d", 5) == 1 && ours(text));
  std::free(text);
  std::printf("served by the program itself: %s\n", calls > 1000 ? "yes" : "no");
}
