// Jumps over frames that allocated: longjmp from nested calls, siglongjmp out of a handler, in a
// thread, thousands of times. Stack pointers repeat with other callers behind them.
#include <csetjmp>
#include <csignal>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

thread_local jmp_buf back;
thread_local void* last = nullptr;

[[gnu::noinline]] void descend(int depth, unsigned seed) {
  volatile char frame[64];
  frame[0] = static_cast<char>(depth);
  std::free(last);
  last = keep(std::malloc(16 + (seed * 2654435761u + static_cast<unsigned>(depth)) % 5000));
  CHECK(last != nullptr);
  if (depth == 0) longjmp(back, 1 + frame[0]);
  descend(depth - 1, seed);
  frame[1] = frame[0];
}

unsigned jump_many(unsigned count) {
  volatile unsigned landed = 0;
  for (volatile unsigned i = 0; i < count; i = i + 1) {
    if (setjmp(back) == 0) {
      descend(static_cast<int>(i % 40), i);
    } else {
      landed = landed + 1;
    }
  }
  std::free(last);
  last = nullptr;
  return landed;
}

sigjmp_buf from_handler;
void handler(int) { siglongjmp(from_handler, 1); }

}  // namespace

int main() {
  std::printf("main thread landed %u times\n", jump_many(20000));
  std::vector<std::thread> threads;
  unsigned landed[4] = {};
  for (int i = 0; i < 4; ++i) threads.emplace_back([&landed, i] { landed[i] = jump_many(5000); });
  for (std::thread& thread : threads) thread.join();
  std::printf("threads landed %u %u %u %u times\n", landed[0], landed[1], landed[2], landed[3]);

  std::signal(SIGUSR1, handler);
  volatile int signals = 0;
  for (volatile int i = 0; i < 1000; i = i + 1) {
    if (sigsetjmp(from_handler, 1) == 0) {
      std::free(keep(std::malloc(static_cast<size_t>(i) * 31 + 1)));
      std::raise(SIGUSR1);
      CHECK(false);
    }
    signals = signals + 1;
  }
  std::printf("left %d handlers\n", signals);
}
