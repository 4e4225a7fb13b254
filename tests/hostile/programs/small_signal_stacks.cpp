// Threads with alternate stacks for signals that hold little more than the frame of a signal, as Rust's threads have, between pages
// that no access may reach. They read memory at random for long enough to be sampled some hundred times.
#include <csignal>
#include <ctime>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kDataBytes = size_t{48} << 20;

volatile sig_atomic_t handled = 0;

void on_signal(int) { handled = handled + 1; }

double worked() {
  timespec time{};
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Gives the thread a stack of so many bytes with a page below it that no access may reach.
void use_stack(size_t bytes) {
  const size_t pages = (bytes + kPage - 1) / kPage;
  auto* area = static_cast<char*>(mmap(nullptr, (pages + 2) * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(area != MAP_FAILED);
  CHECK(mprotect(area + kPage, pages * kPage, PROT_READ | PROT_WRITE) == 0);
  stack_t stack{};
  stack.ss_sp = area + kPage;
  stack.ss_size = bytes;
  CHECK(sigaltstack(&stack, nullptr) == 0);
  stack_t read_back{};
  CHECK(sigaltstack(nullptr, &read_back) == 0 && read_back.ss_sp == stack.ss_sp && read_back.ss_size == bytes);
}

void read_at_random(size_t stack_bytes) {
  if (stack_bytes != 0) use_stack(stack_bytes);
  auto* data = static_cast<unsigned char*>(std::malloc(kDataBytes));
  CHECK(data != nullptr);
  fill_pattern(data, kDataBytes, 7);
  uint64_t state = stack_bytes + 1;
  const double end = worked() + 0.3;
  while (worked() < end) {
    for (int i = 0; i < 10000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const size_t place = (state >> 20) % kDataBytes;
      CHECK(data[place] == pattern_byte(place, 7));
    }
  }
  std::free(data);
}

}  // namespace

int main() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
  const size_t frame = std::max<size_t>(getauxval(AT_MINSIGSTKSZ), 2048);
  std::vector<std::thread> threads;
  for (const size_t bytes : {size_t{0}, frame, frame + 512, frame + 1024, size_t{8192}, size_t{65536}}) {
    threads.emplace_back(read_at_random, bytes);
  }
  for (auto& thread : threads) thread.join();
  use_stack(8192);
  CHECK(raise(SIGUSR1) == 0 && handled == 1);
  std::puts("read with stacks of every size");
}
