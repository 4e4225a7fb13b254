// Programs with their own SIGSEGV handler: on an alternate stack on the heap, for a write barrier by
// mprotect as in garbage collectors, for a null pointer, and as the last act of the program.
#include <csetjmp>
#include <csignal>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHeapPages = 2048;

unsigned char* barrier_base = nullptr;
volatile sig_atomic_t barrier_faults = 0;
sigjmp_buf back;
volatile uintptr_t fault_address = 0;

void on_fault(int, siginfo_t* info, void*) {
  auto* address = static_cast<unsigned char*>(info->si_addr);
  if (barrier_base != nullptr && address >= barrier_base && address < barrier_base + kHeapPages * kPage) {
    auto* page = reinterpret_cast<unsigned char*>(reinterpret_cast<uintptr_t>(address) & ~(kPage - 1));
    barrier_faults = barrier_faults + 1;
    mprotect(page, kPage, PROT_READ | PROT_WRITE);
    return;
  }
  fault_address = reinterpret_cast<uintptr_t>(address);
  siglongjmp(back, 1);
}

void install() {
  stack_t alternate{};
  alternate.ss_size = 65536;
  alternate.ss_sp = std::malloc(alternate.ss_size);
  CHECK(sigaltstack(&alternate, nullptr) == 0);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  CHECK(sigaction(SIGSEGV, &action, nullptr) == 0);
  struct sigaction read_back {};
  CHECK(sigaction(SIGSEGV, nullptr, &read_back) == 0 && read_back.sa_sigaction == on_fault);
}

void write_barrier(void* memory) {
  barrier_base = static_cast<unsigned char*>(memory);
  std::memset(barrier_base, 1, kHeapPages * kPage);
  for (int round = 0; round < 3; ++round) {
    barrier_faults = 0;
    CHECK(mprotect(barrier_base, kHeapPages * kPage, PROT_READ) == 0);
    for (size_t page = 0; page < kHeapPages; page += 3) barrier_base[page * kPage + 5]++;
    std::printf("round %d: %d barrier faults\n", round, static_cast<int>(barrier_faults));
  }
  CHECK(mprotect(barrier_base, kHeapPages * kPage, PROT_READ | PROT_WRITE) == 0);
  for (size_t page = 0; page < kHeapPages; ++page) CHECK(barrier_base[page * kPage + 5] == (page % 3 == 0 ? 4 : 1));
  barrier_base = nullptr;
}

void null_pointers() {
  volatile int caught = 0;
  for (volatile uintptr_t i = 0; i < 1000; i = i + 1) {
    if (sigsetjmp(back, 1) == 0) {
      write_near_zero(i * 4 + 8);
      CHECK(false);
    }
    CHECK(fault_address == i * 4 + 8);
    caught = caught + 1;
    std::free(keep(std::malloc(static_cast<size_t>(caught) * 100)));
  }
  std::printf("caught %d null pointers\n", static_cast<int>(caught));
}

}  // namespace

int main() {
  install();
  write_barrier(mmap(nullptr, kHeapPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  void* heap = aligned_alloc(kPage, kHeapPages * kPage);
  write_barrier(heap);
  std::free(heap);
  null_pointers();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back([] { std::free(keep(std::calloc(1, 8 << 20))); });
  for (std::thread& thread : threads) thread.join();
  std::printf("dying by the default action\n");
  std::fflush(stdout);
  std::signal(SIGSEGV, SIG_DFL);
  write_near_zero(16);
}
