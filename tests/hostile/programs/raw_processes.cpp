// Processes made by raw system calls, so that no fork handler runs; children that share the memory;
// contents of large old data in every one of them, while it may be protected or moved.
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "check.hpp"

namespace {

constexpr size_t kBytes = 12 << 20;
unsigned char* heap = nullptr;
unsigned char* mapped = nullptr;

int wait_for(long pid) {
  CHECK(pid > 0);
  int status = 0;
  CHECK(waitpid(static_cast<pid_t>(pid), &status, __WALL) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool intact() { return has_pattern(heap, kBytes, 1) && has_pattern(mapped, kBytes, 2); }

int share_memory(void*) {
  heap[5] = 99;
  return intact() ? 1 : 8;  // the byte changed is seen, so the pattern is broken
}

}  // namespace

int main() {
  heap = static_cast<unsigned char*>(std::malloc(kBytes));
  mapped = static_cast<unsigned char*>(
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(heap != nullptr && mapped != MAP_FAILED);
  fill_pattern(heap, kBytes, 1);
  fill_pattern(mapped, kBytes, 2);
  for (int i = 0; i < 10; ++i) {
    usleep(30000);  // time to grow cold
    const long raw = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (raw == 0) _exit(intact() ? 3 : 4);
    const int raw_status = wait_for(raw);
    const pid_t pid = fork();
    if (pid == 0) {
      if (!intact()) _exit(5);
      fill_pattern(heap, kBytes, 7);
      usleep(20000);
      _exit(has_pattern(heap, kBytes, 7) && has_pattern(mapped, kBytes, 2) ? 6 : 7);
    }
    const int status = wait_for(pid);
    CHECK(intact());
    std::printf("raw %d, fork %d\n", raw_status, status);
  }
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  const long third = syscall(SYS_clone3, &arguments, sizeof arguments);
  if (third == 0) _exit(intact() ? 3 : 4);
  if (third > 0) {
    std::printf("clone3 %d\n", wait_for(third));
  } else {
    std::printf("clone3 3\n");  // kernels and sandboxes without it
  }
  auto* stack = static_cast<unsigned char*>(std::malloc(1 << 20));
  const int pid = clone(share_memory, stack + (1 << 20), CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
  std::printf("shared memory %d, byte %d\n", wait_for(pid), heap[5]);
  std::free(stack);
}
