// Memory that the program mapped through the C library is unmapped by a raw system call, without a
// preloaded library's knowledge, and the address is used again: privately, shared, and by children.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <initializer_list>

#include "check.hpp"

namespace {

constexpr size_t kBytes = 16 << 20;

unsigned char* map(void* wish, int sharing) {
  void* memory = mmap(wish, kBytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<unsigned char*>(memory);
}

}  // namespace

int main() {
  for (const int sharing : {MAP_PRIVATE, MAP_SHARED}) {
    unsigned char* memory = map(nullptr, MAP_PRIVATE);
    fill_pattern(memory, kBytes, 6);
    CHECK(syscall(SYS_munmap, memory, kBytes) == 0);
    unsigned char* again = map(memory, sharing);
    for (size_t i = 0; i < kBytes; ++i) CHECK(again[i] == 0);
    const pid_t pid = fork();
    if (pid == 0) {
      fill_pattern(again, kBytes, 7);
      _exit(has_pattern(again, kBytes, 7) ? 3 : 4);
    }
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    const bool seen = has_pattern(again, kBytes, 7);
    std::printf("child %d, the parent sees its writes: %d\n", WEXITSTATUS(status), seen);
    CHECK(munmap(again, kBytes) == 0);
  }
}
