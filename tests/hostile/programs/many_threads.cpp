// Ten thousand threads one after another, then many at once; each allocates, hands a block to the
// next and frees the one it got. Threads with the smallest stack the system allows as well.
#include <limits.h>
#include <pthread.h>

#include <thread>
#include <vector>

#include "check.hpp"

namespace {

void* pass_on(void* previous) {
  if (previous != nullptr) {
    CHECK(has_pattern(previous, 1000, 3));
    std::free(previous);
  }
  std::free(keep(std::malloc(40)));
  void* block = std::malloc(1000);
  CHECK(block != nullptr);
  fill_pattern(block, 1000, 3);
  return block;
}

void* on_a_small_stack(void*) {
  for (size_t size = 1; size < (1 << 20); size *= 2) {
    void* block = std::calloc(1, size);
    CHECK(block != nullptr);
    std::free(std::realloc(block, size + 7));
  }
  return nullptr;
}

}  // namespace

int main() {
  void* block = nullptr;
  for (int i = 0; i < 10000; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, nullptr, pass_on, block) == 0);
    CHECK(pthread_join(thread, &block) == 0);
  }
  CHECK(has_pattern(block, 1000, 3));
  std::free(block);
  std::printf("10000 threads in sequence\n");

  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 200; ++i) threads.emplace_back([] { std::free(pass_on(nullptr)); });
    for (std::thread& thread : threads) thread.join();
  }
  std::printf("5 times 200 threads at once\n");

  pthread_attr_t attributes;
  CHECK(pthread_attr_init(&attributes) == 0);
  CHECK(pthread_attr_setstacksize(&attributes, 32 << 10) == 0);
  for (int i = 0; i < 500; ++i) {
    pthread_t thread;
    CHECK(pthread_create(&thread, &attributes, on_a_small_stack, nullptr) == 0);
    CHECK(pthread_join(thread, nullptr) == 0);
  }
  std::printf("500 threads on 32 KiB of stack\n");
}
