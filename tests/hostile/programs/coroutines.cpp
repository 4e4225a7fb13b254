// Coroutines on stacks from malloc: allocations under stack pointers that point into the heap, switched
// away in the middle, finished on another thread, their stacks freed and used again.
#include <ucontext.h>

#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kStack = 64 << 10;
constexpr int kCoroutines = 50;

struct Coroutine {
  ucontext_t context;
  ucontext_t* scheduler = nullptr;
  unsigned char* stack = nullptr;
  int number = 0;
  bool done = false;
  size_t sum = 0;
};

[[gnu::noinline]] void descend(Coroutine* self, int depth) {
  volatile unsigned char local[200];
  local[0] = static_cast<unsigned char>(depth);
  void* block = keep(std::malloc(static_cast<size_t>(depth * 97 + self->number) + 1));
  if (depth > 0) descend(self, depth - 1);
  if (depth % 3 == 0) swapcontext(&self->context, self->scheduler);
  self->sum += local[0];
  std::free(block);
}

void enter(unsigned low, unsigned high) {
  auto* self = reinterpret_cast<Coroutine*>(static_cast<uintptr_t>(high) << 32 | low);
  for (int i = 0; i < 10; ++i) descend(self, 12);
  self->done = true;
  swapcontext(&self->context, self->scheduler);
}

size_t run_all() {
  std::vector<Coroutine> coroutines(kCoroutines);
  ucontext_t scheduler;
  for (int i = 0; i < kCoroutines; ++i) {
    Coroutine& one = coroutines[static_cast<size_t>(i)];
    one.number = i;
    one.scheduler = &scheduler;
    one.stack = static_cast<unsigned char*>(std::malloc(kStack));
    CHECK(getcontext(&one.context) == 0);
    one.context.uc_stack.ss_sp = one.stack;
    one.context.uc_stack.ss_size = kStack;
    const auto address = reinterpret_cast<uintptr_t>(&one);
    makecontext(&one.context, reinterpret_cast<void (*)()>(enter), 2,
                static_cast<unsigned>(address), static_cast<unsigned>(address >> 32));
  }
  size_t sum = 0;
  for (int running = kCoroutines; running > 0;) {
    running = 0;
    for (Coroutine& one : coroutines) {
      if (one.done) continue;
      swapcontext(&scheduler, &one.context);
      ++running;
    }
  }
  for (Coroutine& one : coroutines) {
    sum += one.sum;
    std::free(one.stack);
  }
  return sum;
}

}  // namespace

int main() {
  std::printf("main %zu\n", run_all());
  size_t sums[3] = {};
  std::vector<std::thread> threads;
  for (size_t& sum : sums) threads.emplace_back([&sum] { sum = run_all(); });
  for (std::thread& thread : threads) thread.join();
  for (const size_t sum : sums) std::printf("thread %zu\n", sum);
}
