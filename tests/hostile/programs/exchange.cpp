// Blocks made by one thread, grown by a second, freed by a third or after the first has ended; all
// content checked. The order of sizes is random by a fixed seed.
#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr unsigned kSeed = 20240517;
constexpr int kThreads = 4;
constexpr int kSlots = 512;

struct Block {
  unsigned char* bytes;
  size_t size;
  unsigned seed;
};

std::array<std::atomic<Block*>, kSlots> slots;
std::atomic<long> alive{0};

uint64_t step(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  return *state ^= *state << 17;
}

size_t draw_size(uint64_t* state) {
  const uint64_t draw = step(state);
  return draw % 100 < 90 ? draw % 600 + 1 : draw % 100 < 99 ? draw % 40000 + 1 : draw % (3 << 20) + 1;
}

void retire(Block* block) {
  CHECK(has_pattern(block->bytes, block->size, block->seed));
  std::free(block->bytes);
  delete block;
  --alive;
}

void work(unsigned number) {
  uint64_t state = (uint64_t{kSeed} << 8) + number + 1;
  for (int turn = 0; turn < 6000; ++turn) {
    std::atomic<Block*>& slot = slots[step(&state) % kSlots];
    Block* block = slot.exchange(nullptr);
    if (block == nullptr || turn % 3 == 0) {
      const size_t size = draw_size(&state);
      auto* fresh = new Block{static_cast<unsigned char*>(std::malloc(size)), size, number};
      CHECK(fresh->bytes != nullptr);
      fill_pattern(fresh->bytes, size, number);
      ++alive;
      if (Block* old = slot.exchange(fresh)) retire(old);
    } else if (turn % 3 == 1) {
      const size_t size = draw_size(&state);
      const size_t kept = size < block->size ? size : block->size;
      block->bytes = static_cast<unsigned char*>(std::realloc(block->bytes, size));
      CHECK(block->bytes != nullptr && has_pattern(block->bytes, kept, block->seed));
      block->size = size;
      block->seed = number + 100;
      fill_pattern(block->bytes, size, block->seed);
      if (Block* old = slot.exchange(block)) retire(old);
      block = nullptr;
    }
    if (block != nullptr) retire(block);
  }
}

}  // namespace

int main() {
  std::printf("seed %u\n", kSeed);
  for (unsigned generation = 0; generation < 3; ++generation) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) threads.emplace_back(work, generation * kThreads + i);
    for (std::thread& thread : threads) thread.join();
  }
  for (std::atomic<Block*>& slot : slots) {
    if (Block* block = slot.exchange(nullptr)) retire(block);
  }
  std::printf("alive at the end: %ld\n", alive.load());
}
