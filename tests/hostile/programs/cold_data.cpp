// Large old data that grows cold, then is read and written by several threads at once, discarded in
// parts, grown by realloc and freed by another thread: nothing may be lost, torn or swapped.
#include <sys/mman.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kBytes = 24 << 20;
constexpr size_t kWords = kBytes / sizeof(uint64_t);
constexpr int kThreads = 4;

/// Each word holds its own index times an odd number plus how often it was raised.
uint64_t* make(bool on_heap) {
  void* memory = on_heap ? std::malloc(kBytes)
                         : mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != nullptr && memory != MAP_FAILED);
  auto* words = static_cast<uint64_t*>(memory);
  for (size_t i = 0; i < kWords; ++i) words[i] = i << 20;
  return words;
}

/// Adds one to scattered words, atomically: all threads meet in the same pages.
void raise_words(uint64_t* words, unsigned seed, size_t count) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    __atomic_fetch_add(&words[(state >> 33) % kWords], 1, __ATOMIC_RELAXED);
  }
}

/// How often all words together were raised; every index must be right.
size_t count_raises(const uint64_t* words) {
  size_t raises = 0;
  for (size_t i = 0; i < kWords; ++i) {
    CHECK(words[i] >> 20 == i);
    raises += words[i] & 0xfffff;
  }
  return raises;
}

void discard(uint64_t* words) {
  auto* bytes = reinterpret_cast<unsigned char*>(words);
  CHECK(madvise(bytes + kBytes / 2, kBytes / 4, MADV_DONTNEED) == 0);
  for (size_t i = kWords / 2; i < kWords / 4 * 3; ++i) CHECK(words[i] == 0);
  CHECK(words[kWords / 2 - 1] >> 20 == kWords / 2 - 1 && words[kWords / 4 * 3] >> 20 == kWords / 4 * 3);
}

}  // namespace

int main() {
  for (const bool on_heap : {true, false}) {
    uint64_t* words = make(on_heap);
    std::vector<uint64_t*> idle;
    for (int i = 0; i < 3; ++i) idle.push_back(make(on_heap));
    usleep(100000);
    for (int round = 0; round < 5; ++round) {
      std::vector<std::thread> threads;
      for (unsigned i = 0; i < kThreads; ++i) {
        threads.emplace_back(raise_words, words, static_cast<unsigned>(round) * 10 + i, 20000);
      }
      for (std::thread& thread : threads) thread.join();
      usleep(20000);
    }
    std::printf("%s: %zu raises\n", on_heap ? "heap" : "mapping", count_raises(words));
    for (uint64_t* other : idle) CHECK(count_raises(other) == 0);
    if (on_heap) {
      auto* grown = static_cast<uint64_t*>(std::realloc(words, kBytes * 2));
      CHECK(grown != nullptr && count_raises(grown) == 5u * kThreads * 20000);
      std::thread([grown] { std::free(grown); }).join();
      for (uint64_t* other : idle) std::free(other);
    } else {
      discard(words);
      for (uint64_t* other : idle) CHECK(munmap(other, kBytes) == 0);
      CHECK(munmap(words, kBytes) == 0);
    }
  }
}
