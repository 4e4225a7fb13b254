// An interval timer fires every 200 microseconds while all threads allocate. The handler allocates
// too, but only where it interrupted no allocation (elsewhere no allocator gives any guarantee).
#include <csignal>
#include <sys/time.h>
#include <time.h>

#include <atomic>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

thread_local volatile sig_atomic_t inside = 1;
std::atomic<long> handled{0};
std::atomic<long> allocated{0};

void handler(int) {
  const int saved = errno;
  ++handled;
  if (!inside) {
    inside = 1;
    void* block = std::malloc(static_cast<size_t>(handled.load()) % 3000 + 1);
    CHECK(block != nullptr);
    std::memset(block, 1, 1);
    std::free(block);
    ++allocated;
    inside = 0;
  }
  errno = saved;
}

bool before(const timespec& now, const timespec& end) {
  return now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec);
}

/// Allocates, and between two allocations leaves a window in which the handler may. For a second, and on a busy
/// machine for as long as it takes until some handlers did.
void churn(timespec end) {
  std::vector<std::pair<unsigned char*, size_t>> blocks(64);
  timespec now{};
  for (unsigned turn = 0; (turn % 64 != 0) || allocated <= 10 ||
                          (clock_gettime(CLOCK_MONOTONIC, &now), before(now, end));
       ++turn) {
    auto& [block, size] = blocks[turn % blocks.size()];
    if (block != nullptr) CHECK(block[0] == 9 && block[size - 1] == 9);
    std::free(block);
    size = turn * 2654435761u % 70000 + 1;
    block = static_cast<unsigned char*>(std::malloc(size));
    CHECK(block != nullptr);
    block[0] = block[size - 1] = 9;
    inside = 0;
    for (volatile int spin = 0; spin < 200; spin = spin + 1) {
    }
    inside = 1;
  }
  for (auto& [block, size] : blocks) std::free(block);
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  itimerval timer{{0, 200}, {0, 200}};
  CHECK(setitimer(ITIMER_REAL, &timer, nullptr) == 0);
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += 1;
  std::thread other(churn, end);
  churn(end);
  other.join();
  timer = {};
  setitimer(ITIMER_REAL, &timer, nullptr);
  std::printf("signals were handled: %s\n", handled > 10 ? "yes" : "no");
  std::printf("handlers allocated: %s\n", allocated > 10 ? "yes" : "no");
}
