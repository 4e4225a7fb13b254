// Small resource limits, set by the program itself and inherited through exec: little address
// space, no file growth, few descriptors, small data segment, small stack.
#include <csignal>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <string>
#include <vector>

#include "check.hpp"

namespace {

void limit(int what, rlim_t value) {
  const rlimit bound{value, value};
  CHECK(setrlimit(static_cast<__rlimit_resource>(what), &bound) == 0);
}

/// What a program does after exec under the limit.
int work() {
  size_t total = 0;
  for (size_t size = 1; size < (2 << 20); size *= 2) {
    void* block = keep(std::malloc(size));
    CHECK(block != nullptr);
    fill_pattern(block, size, 1);
    CHECK(has_pattern(block, size, 1));
    total += size;
    std::free(block);
  }
  const std::vector<std::string> words(1000, std::string(100, 'w'));
  return total > 0 && words.size() == 1000 ? 42 : 1;
}

void run_under(const char* name, const char* self, int what, rlim_t value) {
  const pid_t pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    limit(what, value);
    execl(self, self, "work", nullptr);
    _exit(126);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  std::printf("%s: %s %d\n", name, WIFEXITED(status) ? "status" : "signal",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/// Address space runs out, is given back, and runs out again; small blocks work in between.
void out_of_memory() {
  const pid_t pid = fork();
  if (pid == 0) {
    limit(RLIMIT_DATA, rlim_t{300} << 20);
    for (int round = 0; round < 3; ++round) {
      std::vector<void*> blocks;
      blocks.reserve(100);
      errno = 0;
      while (blocks.size() < 100) {
        void* block = keep(std::malloc(16 << 20));
        if (block == nullptr) break;
        blocks.push_back(block);
      }
      CHECK(blocks.size() < 100 && errno == ENOMEM);
      for (void* block : blocks) std::free(block);
      CHECK(work() == 42);
    }
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  std::printf("memory runs out and comes back: %d\n", status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return work();
  out_of_memory();
  run_under("256 MiB of address space", argv[0], RLIMIT_AS, rlim_t{256} << 20);
  run_under("2 GiB of address space", argv[0], RLIMIT_AS, rlim_t{2} << 30);
  run_under("no file growth", argv[0], RLIMIT_FSIZE, 0);
  run_under("files of 64 KiB", argv[0], RLIMIT_FSIZE, 64 << 10);
  run_under("8 descriptors", argv[0], RLIMIT_NOFILE, 8);
  run_under("3 descriptors", argv[0], RLIMIT_NOFILE, 5);
  run_under("64 MiB of data", argv[0], RLIMIT_DATA, 64 << 20);
  run_under("256 KiB of stack", argv[0], RLIMIT_STACK, 256 << 10);
  run_under("no locked memory", argv[0], RLIMIT_MEMLOCK, 0);
  run_under("no core file", argv[0], RLIMIT_CORE, 0);
}
