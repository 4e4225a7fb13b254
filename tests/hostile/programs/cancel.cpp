// pthread_cancel (deferred) of threads that allocate and block, with cleanup handlers that free. Neither malloc nor
// free is a cancellation point, also while a cancellation is pending.
#include <pthread.h>

#include <vector>

#include "check.hpp"

namespace {

int cleaned = 0;

void clean(void* block) {
  std::free(block);
  std::free(keep(std::malloc(100000)));
  __atomic_fetch_add(&cleaned, 1, __ATOMIC_RELAXED);
}

void* work(void*) {
  void* block = std::malloc(5000);
  pthread_cleanup_push(clean, block);
  for (;;) {
    std::free(keep(std::malloc(777)));
    std::free(keep(std::malloc(300000)));
    pthread_testcancel();
    usleep(100);
  }
  pthread_cleanup_pop(1);
  return nullptr;
}

// Allocates and frees blocks of many sizes and of threads' first uses while its own cancellation is pending.
void* work_while_pending(void*) {
  CHECK(pthread_cancel(pthread_self()) == 0);
  for (std::size_t bytes = 16; bytes <= std::size_t{64} << 20; bytes *= 2) {
    void* block = keep(std::calloc(1, bytes));
    std::free(keep(std::realloc(block, bytes + 1)));
  }
  pthread_testcancel();
  return nullptr;
}

int cancel_while_pending() {
  int cancelled = 0;
  for (int round = 0; round < 25; ++round) {
    pthread_t thread;
    CHECK(pthread_create(&thread, nullptr, work_while_pending, nullptr) == 0);
    void* result = nullptr;
    CHECK(pthread_join(thread, &result) == 0);
    cancelled += result == PTHREAD_CANCELED;
  }
  return cancelled;
}

}  // namespace

int main() {
  std::printf("cancelled %d with a cancellation pending\n", cancel_while_pending());
  int cancelled = 0;
  for (int round = 0; round < 25; ++round) {
    std::vector<pthread_t> threads(8);
    for (pthread_t& thread : threads) CHECK(pthread_create(&thread, nullptr, work, nullptr) == 0);
    usleep(1000);
    for (const pthread_t thread : threads) CHECK(pthread_cancel(thread) == 0);
    for (const pthread_t thread : threads) {
      void* result = nullptr;
      CHECK(pthread_join(thread, &result) == 0);
      cancelled += result == PTHREAD_CANCELED;
    }
  }
  std::printf("cancelled %d, cleaned %s\n", cancelled, cleaned <= cancelled ? "as expected" : "too often");
}
