// 65,536 call sites of malloc, each with a live block, four rounds; freed in another order.
#include <vector>

#include "check.hpp"

namespace {

void** next_slot = nullptr;
size_t next_size = 0;

// Each expansion is one call instruction, hence one return address. noipa and the asm in between
// keep the compiler from merging equal calls.
#define SITE                                        \
  *next_slot++ = std::malloc(next_size++ % 200 + 1); \
  asm volatile("" ::: "memory");
#define SITES_16 SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE SITE
#define SITES_256                                                                           \
  SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 \
      SITES_16 SITES_16 SITES_16 SITES_16 SITES_16 SITES_16

template <int Number>
[[gnu::noinline]] void allocate_256() {
  SITES_256
}

template <int Number>
void allocate_from_all() {
  if constexpr (Number > 0) {
    allocate_from_all<Number - 1>();
    allocate_256<Number>();
  }
}

}  // namespace

int main() {
  constexpr size_t kSites = 65536;
  std::vector<void*> blocks(kSites * 4);
  for (int round = 0; round < 4; ++round) {
    next_slot = &blocks[kSites * static_cast<size_t>(round)];
    allocate_from_all<256>();
  }
  CHECK(next_slot == &blocks[0] + blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    CHECK(blocks[i] != nullptr);
    *static_cast<unsigned char*>(blocks[i]) = static_cast<unsigned char>(i);
  }
  size_t good = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t place = i * 40503 % blocks.size();
    good += *static_cast<unsigned char*>(blocks[place]) == static_cast<unsigned char>(place);
    std::free(blocks[place]);
  }
  std::printf("%zu blocks from %zu sites\n", good, kSites);
}
